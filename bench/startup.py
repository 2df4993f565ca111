"""CPU time of ``trimtab --version`` and of ``trimtab --help``, each in a fresh process, with its A/A spread.

Promise: ``--version`` under 150 ms of CPU, without numpy or duckdb.
"""

from __future__ import annotations

import resource
import subprocess
import sys

REPEATS = 15


def cpu_ms(arguments: list[str]) -> float:
    """User and system time of one child, ms."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-m", "trimtab", *arguments], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1e3 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def heavy_modules() -> list[str]:
    """Which heavy packages ``--version`` imports; must be none."""
    code = (
        "import sys; sys.argv = ['trimtab', '--version']; import trimtab.__main__ as m; m.main(); "
        "print(*[n for n in ('numpy', 'duckdb', 'cyclopts', 'rich', 'msgspec') if n in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    return out.splitlines()[1].split()


def main() -> None:
    for arguments in (["--version"], ["--help"]):
        first, second = (sorted(cpu_ms(arguments) for _ in range(REPEATS)) for _ in range(2))
        a, b = first[REPEATS // 2], second[REPEATS // 2]
        print(f"trimtab {arguments[0]:10} {a:6.1f} ms of CPU (median of {REPEATS}); A/A {b / a - 1:+.1%}")
    print("heavy imports of --version:", heavy_modules() or "none")


if __name__ == "__main__":
    main()
