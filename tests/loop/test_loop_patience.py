"""How long a batch may take before it counts as a hang."""

from __future__ import annotations

import importlib.util
import os

import pytest

from trimtab.loop.runs import COMPILING_S, HANG_S, hang_s


def test_a_runtime_that_only_computes_hangs_sooner() -> None:
    assert hang_s("null") == hang_s("onnxruntime") == HANG_S


@pytest.mark.skipif(importlib.util.find_spec("torch") is None and not os.environ.get("CI"), reason="needs torch")
def test_a_runtime_that_may_compile_in_a_batch_is_given_time_for_it() -> None:
    assert hang_s("torch") == COMPILING_S
