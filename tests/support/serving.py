"""A real `grv serve` in a process of its own, before a model that counts its candidates."""

from __future__ import annotations

import hashlib
import json
import signal
import socket
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .commands import start
from .servers import FaultyServer, Received

CHECK = {"kind": "math", "answer": "42"}
RIGHT, WRONG = "It is \\boxed{42}", "It is \\boxed{41}"


def check(answer: object = 42) -> dict[str, Any]:
    """The field `grv` of a request whose answer is a number."""
    return {"check": {"kind": "math", "answer": str(answer)}}


class Model(FaultyServer):
    """A model whose every n-th candidate is right, counted over prompt and seed.

    `served` counts the candidates, by prompt and seed.
    """

    def __init__(
        self, every: int = 3, script: Callable[[Received], Any] | None = None, **more: Any
    ) -> None:
        self.served: Counter[tuple[str, int]] = Counter()
        self._every = every
        super().__init__(script or (), text=self._numbered, **more)

    @contextmanager
    def taking(self, seconds: float) -> Iterator[None]:
        """Take this long for every response meanwhile."""
        self.seconds = seconds
        try:
            yield
        finally:
            self.seconds = 0.0
            time.sleep(seconds)  # responses under way are counted before the next test begins

    def always_right(self) -> None:
        """From now on, every candidate is right."""
        self._every = 1

    def _numbered(self, request: Received, seed: int) -> str:
        self.served[request.prompt, seed] += 1
        return (
            RIGHT if self._every and seed % self._every == 0 else f"It is \\boxed{{{1000 + seed}}}"
        )


@dataclass
class Server:
    """A running server."""

    process: subprocess.Popen[str]
    url: str
    lines: list[str] = field(default_factory=list)

    @property
    def root(self) -> str:
        """The address without its path."""
        return self.url.removesuffix("/v1").removesuffix("/mcp")

    @property
    def address(self) -> tuple[str, int]:
        """Host and port."""
        host, _, port = self.root.removeprefix("http://").rpartition(":")
        return host, int(port)

    def events(self, name: str | None = None) -> list[dict[str, Any]]:
        """The events so far; every line of the log is JSON."""
        found = [json.loads(line) for line in [*self.lines]]
        return [each for each in found if name is None or each["event"] == name]

    def stop(self, number: int = signal.SIGTERM, within: float = 30) -> int:
        """Send a signal, and wait for the end."""
        self.process.send_signal(number)
        return self.process.wait(within)

    def raw(self, content: bytes, *, wait: float = 10) -> bytes:
        """Send bytes and return all that the server answers until it closes the connection."""
        with socket.create_connection(self.address, timeout=wait) as connection:
            connection.sendall(content)
            found = b""
            try:
                while part := connection.recv(1 << 16):
                    found += part
            except (TimeoutError, ConnectionError):
                pass
            return found


@contextmanager
def serving(folder: Path, *more: object, env: Mapping[str, str] | None = None) -> Iterator[Server]:
    """A server with these options, of which the job file is in the folder."""
    with serving_command("serve", " serves ", folder, *more, env=env) as server:
        yield server


@contextmanager
def serving_command(
    command: str,
    says: str,
    folder: Path,
    *more: object,
    env: Mapping[str, str] | None = None,
    files: bool = True,
) -> Iterator[Server]:
    """A command that serves and says its address first; `files` if it has a job and a ledger."""
    ledger = () if "--ledger" in more or not files else ("--ledger", folder / "ledger")
    job = (folder / "job.toml",) if files else ()
    words = [command, *job, "--port", 0, *ledger, *more]
    process = start(*words, env=env)
    assert process.stdout is not None
    assert process.stderr is not None
    server = Server(process, "")
    reader = threading.Thread(target=_read, args=(process.stderr, server.lines), daemon=True)
    reader.start()
    try:
        said = process.stdout.readline()
        assert says in said, (said, server.lines)
        server.url = said.split()[0]
        yield server
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        reader.join(5)
        process.stdout.close()
        process.stderr.close()


def _read(stream: Any, lines: list[str]) -> None:
    lines.extend(stream)


def write_job(folder: Path, model: FaultyServer | str, *lines: str, **options: object) -> Path:
    """A job file with one profile, `m`."""
    url = model if isinstance(model, str) else model.url
    given: dict[str, object] = {"generator": "openai:m", "base-url": url, "costs": "1,2"}
    given |= {"budget": 200, "first-pause": 0.02} | options
    text = [f"{name.replace('_', '-')} = {json.dumps(value)}" for name, value in given.items()]
    path = folder / "job.toml"
    path.write_text("\n".join([*text, *lines, ""]), encoding="utf-8")
    return path


def key_hash(key: str) -> str:
    """A key as the file of clients has it."""
    return f"sha256:{hashlib.sha256(key.encode()).hexdigest()}"
