"""The process's entry: answers ``--version`` before anything heavy is imported."""

from __future__ import annotations

import sys

from trimtab import __version__
from trimtab.errors import INTERRUPTED


def main() -> None:
    """Run the command line and exit with the code that belongs to what happened."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        print(f"trimtab {__version__}")
        return
    try:
        from trimtab.cli.app import main as command

        code = command(sys.argv[1:])
    except KeyboardInterrupt:  # outside of what the verbs catch: while modules load, or pressed again at the end
        code = INTERRUPTED
    sys.exit(code)


if __name__ == "__main__":
    main()
