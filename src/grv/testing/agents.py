"""A stand-in for a coding agent, whose runs are written in advance."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

_PROGRAM = Path(__file__).with_name("scripted_agent.py")


@dataclass(frozen=True, kw_only=True)
class AgentStep:
    """What one run of a scripted agent does, in the folder that it is started in.

    Attributes:
        write: files and their new contents.
        delete: files and folders to remove, before any file is written.
        run: commands to run before that.
        say: its last words.
        dollars: what it says that it cost; None says nothing.
        status: its exit status.
        signal: the signal by which it ends itself; 0 is none.
        seconds: how long it waits first.
    """

    write: Mapping[str, str] = field(default_factory=dict)
    delete: Sequence[str] = ()
    run: Sequence[Sequence[str]] = ()
    say: str = "Done. All tests pass."
    dollars: float | None = None
    status: int = 0
    signal: int = 0
    seconds: float = 0.0


class ScriptedAgent:
    """A program that does in each run what a script says, for `grv attempt` and `Command`.

    Args:
        folder: an existing folder for its files.
        steps: what its runs do, in order; the last one repeats.
        form: the agent whose output it prints: "claude", "codex", "mini", "openhands", "aider" or
            "gemini". Without one, it writes its cost to GRV_COST_FILE.

    Examples:
        >>> import grv, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     agent = grv.testing.ScriptedAgent(folder, [grv.testing.AgentStep(say="4")])
        ...     solution = grv.solve_now(
        ...         "What is 2 + 2?",
        ...         generator=grv.generators.Command(agent.command),
        ...         scorer=lambda p, t: 0.0,
        ...         verifier=lambda p, t: t.strip() == "4",
        ...         budget=50,
        ...     )
        ...     len(agent.runs)
        1
    """

    def __init__(
        self, folder: str | Path, steps: Sequence[AgentStep], *, form: str = "", name: str = "agent"
    ) -> None:
        place = Path(folder).absolute()
        self._script = place / f"{name}.json"
        self._runs = place / f"{name}.runs"
        data = {"form": form, "runs": str(self._runs)}
        listed = [dataclasses.asdict(step) for step in steps]
        self._script.write_text(json.dumps(data | {"steps": listed}), encoding="utf-8")

    @property
    def command(self) -> list[str]:
        """The command that runs it once."""
        return [sys.executable, "-I", str(_PROGRAM), str(self._script)]

    @property
    def runs(self) -> list[str]:
        """The runs so far: the problem and the number of each."""
        if not self._runs.exists():
            return []
        return self._runs.read_text(encoding="utf-8").splitlines()
