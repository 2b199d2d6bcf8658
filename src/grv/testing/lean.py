"""A toolchain of Lean 4 that answers from a record: for tests on a machine without Lean.

It is a folder with the programs `lean` and `leanchecker`, which run in the jail as the real ones
do. It proves nothing. What the real ones would say to a source is told to it beforehand, in the
form that Lean's source code and its users' files show.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

# Shell without other programs: in the jail there are none. $0 has the folder of the toolchain.
_BEGINNING = """#!{shell}
folder=${{0%/bin/*}}
show() {{ while IFS= read -r line || [ -n "$line" ]; do printf '%s\\n' "$line"; done < "$1"; }}
recall() {{ IFS= read -r number < "${{LEAN_PATH%%:*}}/GrvProof.olean"; }}
"""
_LEAN = """case "$1" in
--print-prefix) echo "$folder" ;;
--version) echo "Lean (version {version}, recorded)" ;;
-o)
  number=none
  while IFS= read -r line; do
    case "$line" in
{cases}
    esac
  done < "$3"
  show "$folder/recorded/$number.messages"
  IFS= read -r code < "$folder/recorded/$number.code"
  [ "$code" = 0 ] && echo "$number" > "$2" && show "$folder/recorded/$number.inside"
  exit "$code" ;;
*) recall; show "$folder/recorded/$number.axioms" ;;
esac
"""
_CHECKER = """recall
IFS= read -r code < "$folder/recorded/$number.second"
[ "$code" = 0 ] || echo "leanchecker found a problem in GrvProof"
exit "$code"
"""


@dataclass(frozen=True, slots=True)
class LeanAnswer:
    """What Lean says to a source that contains a line with `contains`.

    Attributes:
        contains: a part of a line. The last answer whose line is found counts.
        code: the exit code of compiling it.
        messages: what is printed then.
        axioms: what `#print axioms` prints in a file that imports the compiled one.
        inside: what it prints at the end of the source itself; None for the same.
        second: the exit code of the second check.
    """

    contains: str
    code: int = 0
    messages: str = ""
    axioms: str = ""
    inside: str | None = None
    second: int = 0


class FakeLean:
    """A toolchain in a folder.

    Args:
        folder: where it is made.
        answers: what it says. To another source it says that the proof is wrong.
        version: its version.
        has_second: whether it has `leanchecker`.

    Attributes:
        programs: the folder of its programs, for PATH.
    """

    def __init__(
        self,
        folder: Path,
        answers: Sequence[LeanAnswer],
        *,
        version: str = "4.24.0",
        has_second: bool = True,
    ) -> None:
        self.programs = folder / "bin"
        recorded = folder / "recorded"
        self.programs.mkdir(parents=True)
        recorded.mkdir()
        shell = self.programs / "sh"
        shutil.copy2(os.path.realpath("/bin/sh"), shell)
        unknown = LeanAnswer("", 1, "GrvProof.lean:1:0: error: unsolved goals")
        for number, answer in [("none", unknown), *enumerate(answers)]:
            for name in ("messages", "axioms", "inside", "code", "second"):
                content = str(getattr(answer, name))
                if name == "inside" and answer.inside is None:
                    content = answer.axioms
                (recorded / f"{number}.{name}").write_text(f"{content}\n" if content else "")
        cases = "\n".join(
            f"    *'{answer.contains}'*) number={number} ;;"
            for number, answer in enumerate(answers)
        )
        beginning = _BEGINNING.format(shell=shell)
        self._program("lean", beginning + _LEAN.format(version=version, cases=cases))
        if has_second:
            self._program("leanchecker", beginning + _CHECKER)

    def _program(self, name: str, text: str) -> None:
        path = self.programs / name
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)
