"""The public names: few, lazy, and all of them there."""

from __future__ import annotations

import subprocess
import sys

import pytest

import trimtab


def test_there_are_at_most_twenty_and_each_one_is_there() -> None:
    assert len(trimtab.__all__) <= 20
    assert all(getattr(trimtab, name) is not None for name in trimtab.__all__)
    assert dir(trimtab) == sorted(trimtab.__all__)


def test_importing_the_package_loads_nothing_heavy() -> None:
    heavy = "import sys, trimtab; print(sorted({'numpy', 'duckdb', 'msgspec', 'rich'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", heavy], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_another_name_is_refused_as_any_module_would() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        trimtab.nothing  # noqa: B018
