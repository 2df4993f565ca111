"""Which backends there are, and what happens where a runtime is missing or broken."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest

from trimtab import backends
from trimtab.backends import openvino
from trimtab.errors import MissingTool, ModelError, UsageError


def test_names_are_the_files_of_the_room() -> None:
    assert backends.names() == ("iree", "null", "onnxruntime", "openvino", "torch")


def test_a_misspelt_backend_is_answered_with_the_nearest() -> None:
    for ask in (backends.factory, backends.info):
        with pytest.raises(UsageError) as caught:
            ask("onnxruntim")
        assert caught.value.fix == "did you mean `onnxruntime`? known: iree, null, onnxruntime, openvino, torch"


def test_a_private_module_is_no_backend() -> None:
    with pytest.raises(UsageError, match="no backend '_onnx'"):
        backends.factory("_onnx")


def test_a_missing_runtime_is_an_error_for_who_needs_it_and_a_value_for_who_lists_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingTool) as caught:
        backends.factory("onnxruntime")
    assert caught.value.what == "onnxruntime and onnx are not installed"
    assert caught.value.fix == "pip install 'trimtab[onnx]'"
    found = backends.info("openvino")
    assert not found.available
    assert found.why == "openvino is not installed; pip install 'trimtab[openvino]'"
    assert backends.info("null").available, "the null backend needs no package"


def test_a_runtime_that_does_not_start_is_listed_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise ImportError("libtbb.so.12: cannot open shared object file")

    monkeypatch.setattr(openvino, "make", broken)
    found = backends.info("openvino")
    assert not found.available
    assert found.why.startswith("installed, but it does not start: ImportError: libtbb.so.12")


def test_an_exported_torch_program_is_not_described_as_if_it_were_onnx() -> None:
    with pytest.raises(ModelError, match="only ONNX networks can be described") as caught:
        backends.describe("net.pt2")
    assert "model.torch" in caught.value.fix


CHOOSE_ALL = """
import contextlib, sys
from trimtab import backends
from trimtab.errors import MissingTool
for name in backends.names():
    with contextlib.suppress(MissingTool):
        backends.factory(name)
heavy = ("onnxruntime", "onnx", "openvino", "iree.runtime", "torch")
sys.exit(" ".join(name for name in heavy if name in sys.modules))
"""


def test_listing_and_choosing_imports_no_runtime() -> None:
    done = subprocess.run([sys.executable, "-c", CHOOSE_ALL], capture_output=True, text=True, check=False)
    assert done.stderr.strip() == ""
