"""Puts what a check gives around a program: what a candidate continues, and what follows it.

Datasets such as MultiPL-E ask for the rest of a function, and append tests to it. A model that
chats often writes the beginning again, and more after the function than it was asked for.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Completion:
    """What is put around a program.

    Attributes:
        prefix: what the program continues.
        suffix: what follows it.
        stop: texts that end the program, at the first of them after the prefix.
    """

    prefix: str = ""
    suffix: str = ""
    stop: tuple[str, ...] = ()

    def around(self, code: str) -> str:
        r"""The whole program.

        If the code repeats the last line of the prefix, it is not put there again, nor are other
        lines of the prefix that the code has before it.

        >>> task = Completion("int f() {\n", "}\nint main() {}", ("\n}",))
        >>> task.around("  return 1;\n}\n// done") == task.around("int f() {\n  return 1;\n}")
        True
        >>> print(task.around("  return 1;\n}\n// done"))
        int f() {
          return 1;
        }
        int main() {}
        """
        *earlier, last = self.prefix.rstrip().splitlines() or [""]
        lines = code.splitlines()
        squeezed = [_squeezed(line) for line in lines]
        if last.strip() and _squeezed(last) in squeezed:
            place = squeezed.index(_squeezed(last))
            head = [line for line in earlier if _squeezed(line) not in squeezed[:place]]
            start = "\n".join([*head, *lines[: place + 1], ""])
            rest = "\n".join(lines[place + 1 :])
        else:
            start = self.prefix
            rest = code
        return f"{start}{self._cut(rest)}{self.suffix}"

    def _cut(self, rest: str) -> str:
        """The code up to the first text that ends it, and the end of its line."""
        text = f"\n{rest}"  # so that it may end at once
        ends = [place for stop in self.stop if (place := text.find(stop)) >= 0]
        kept = text[: min(ends, default=len(text))][1:]
        return f"{kept}\n" if self.suffix and kept and not kept.endswith("\n") else kept


def _squeezed(line: str) -> str:
    return "".join(line.split())
