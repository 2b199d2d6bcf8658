"""A real PostgreSQL server on loopback, in a temporary folder."""

from __future__ import annotations

import contextlib
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

import psycopg
import pytest

_FOLDERS = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
PASSWORD = "the-password-of-the-server"
WAITING = ("-w", "-t", "110")  # seconds: after a kill it syncs its files first
# The marks of tests that use the server: `make quick` leaves them out, and one worker runs them.
POSTGRES = (pytest.mark.slow, pytest.mark.xdist_group("postgres"))


def program(name: str) -> str:
    """A program of PostgreSQL; Debian keeps them out of the path."""
    for folder in _FOLDERS:
        if (folder / name).exists():
            return str(folder / name)
    found = shutil.which(name)
    assert found, f"{name} is missing: make test installs PostgreSQL"
    return found


def _free_port() -> int:
    """A free port that no outgoing connection can get: the server needs it again after a kill."""
    for port in random.sample(range(20_000, 30_000), 100):
        with socket.socket() as free, contextlib.suppress(OSError):
            free.bind(("127.0.0.1", port))
            return port
    raise OSError("no free port")


class Server:
    """A server with its data in a folder. It refuses to run as root, so it may get a user."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.data = folder, folder / "data"
        self.port = _free_port()
        self._user = pwd.getpwnam("postgres") if os.getuid() == 0 else None
        if self._user is not None:
            os.chown(folder, self._user.pw_uid, self._user.pw_gid)
        password = folder / "password"
        password.write_text(PASSWORD)
        options = ["-A", "scram-sha-256", "-U", "grv", "--pwfile", str(password), "-E", "UTF8"]
        self._run([program("initdb"), "-D", str(self.data), *options, "--no-sync"])
        self.start()

    def start(self) -> None:
        """Start, and wait until connections are accepted."""
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories=''"
        options += " -c shared_buffers=16MB -c max_connections=60"
        log = str(self.folder / "log")
        self._run(
            [program("pg_ctl"), "-D", str(self.data), "-l", log, "-o", options, *WAITING, "start"]
        )

    def stop(self) -> None:
        """Stop, and wait for the end."""
        self._run([program("pg_ctl"), "-D", str(self.data), "-m", "fast", *WAITING, "stop"])

    def kill(self) -> None:
        """Kill all processes of the server. They hold its memory until they are gone."""
        until = time.monotonic() + 20
        while pids := self._processes():
            assert time.monotonic() < until, "the server does not end"
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.01)
        (self.data / "postmaster.pid").unlink()  # its process may be a zombie still

    def kill_postmaster(self) -> None:
        """Kill the first process only; the others notice, and end by themselves."""
        pid = int((self.data / "postmaster.pid").read_text().split()[0])
        os.kill(pid, signal.SIGKILL)
        until = time.monotonic() + 20
        while set(self._processes()) - {pid}:
            assert time.monotonic() < until, "the server does not end"
            time.sleep(0.01)
        (self.data / "postmaster.pid").unlink()  # its process may be a zombie still

    def _processes(self) -> list[int]:
        """All that work in the folder of the data: the server, and one for each connection."""
        found = []
        for each in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):  # it has ended, or belongs to somebody else
                if os.readlink(each / "cwd") == str(self.data):
                    found.append(int(each.name))
        return found

    def _run(self, command: Sequence[str]) -> None:
        user = None if self._user is None else self._user.pw_uid
        group = None if self._user is None else self._user.pw_gid
        done = subprocess.run(
            command,
            cwd=self.folder,
            user=user,
            group=group,
            extra_groups=None if user is None else [],
            stdout=subprocess.DEVNULL,  # pipes would be held open by the server
            stderr=subprocess.DEVNULL,
            timeout=120,
        )
        log = self.folder / "log"
        said = log.read_text().splitlines()[-5:] if log.exists() else []
        assert done.returncode == 0, f"{command[0]} failed: {said}"

    def address(self, database: str, *, password: bool = True) -> str:
        """The address of a database."""
        secret = f":{PASSWORD}" if password else ""
        return f"postgresql://grv{secret}@127.0.0.1:{self.port}/{database}"

    def new_database(self) -> str:
        """The address of a new, empty database. Starts the server if a test has left it dead."""
        if not self._processes():
            self.start()
        name = f"d{uuid.uuid4().hex[:12]}"
        with psycopg.connect(self.address("postgres"), autocommit=True) as db:
            db.execute(f"CREATE DATABASE {name}")
        return self.address(name)


@contextlib.contextmanager
def running() -> Iterator[Server]:
    """A server until the end of the block."""
    with open_folder() as folder:
        server = Server(folder)
        try:
            yield server
        finally:
            with contextlib.suppress(AssertionError):
                server.stop()


@contextlib.contextmanager
def open_folder() -> Iterator[Path]:
    """A folder that the server's own user can get to; pytest closes its folders to others."""
    with tempfile.TemporaryDirectory(prefix="grv-postgres-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


@contextlib.contextmanager
def pooler(server: Server, mode: str) -> Iterator[int]:
    """A pgbouncer in front of the server, in this mode; its port."""
    port = _free_port()
    user = pwd.getpwnam("postgres").pw_uid if os.getuid() == 0 else None
    quiet = subprocess.DEVNULL
    with open_folder() as folder:
        users, settings = folder / "users", folder / "settings"
        users.write_text(f'"grv" "{PASSWORD}"\n')
        settings.write_text(
            f"[databases]\n* = host=127.0.0.1 port={server.port}\n"
            f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n"
            f"auth_type = scram-sha-256\nauth_file = {users}\npool_mode = {mode}\n"
        )
        name = shutil.which("pgbouncer", path="/usr/sbin:/usr/bin") or "pgbouncer"
        with subprocess.Popen(
            [name, str(settings)], user=user, stdout=quiet, stderr=quiet
        ) as process:
            try:
                _wait_for(port)
                yield port
            finally:
                process.terminate()


def _wait_for(port: int) -> None:
    until = time.monotonic() + 20
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except ConnectionRefusedError:
            assert time.monotonic() < until, "the pooler does not start"
            time.sleep(0.02)
