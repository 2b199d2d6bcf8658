"""The command `grv`, also as `python -m grv`."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line and leave with its exit code."""
    try:
        from .apps.cli import run

        code = run()
    except KeyboardInterrupt:  # while the command line was still being loaded
        print("grv: interrupted", file=sys.stderr)
        code = 130
    sys.exit(code)


if __name__ == "__main__":
    main()
