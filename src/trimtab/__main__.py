"""The process's entry: answers ``--version`` before anything heavy is imported."""

from __future__ import annotations

import sys

from trimtab import __version__


def main() -> None:
    """Run the command line and exit with the code that belongs to what happened."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        print(f"trimtab {__version__}")
        return
    from trimtab.cli.app import main as command

    sys.exit(command(sys.argv[1:]))


if __name__ == "__main__":
    main()
