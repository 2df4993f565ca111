"""Sparsity cannot be claimed: no plan has a word for it, and no runtime takes one (R32)."""

from __future__ import annotations

from pathlib import Path

import backends_nets as nets
import pytest
from backends_kit import every

from trimtab import backends
from trimtab.domain.plan import PRECISIONS
from trimtab.domain.profile import CompileFailure, CompileOptions


@pytest.mark.parametrize("word", ["sparsity", "sparse_weights", "CPU_SPARSE_WEIGHTS_DECOMPRESSION_RATE"])
@every()
def test_an_option_that_claims_sparsity_is_a_compile_failure(name: str, word: str, tmp_path: Path) -> None:
    model = nets.NETS["line"][0](tmp_path)
    failure = backends.factory(name)().compile(
        model, nets.entry("dynamic", (1,), (40,)), CompileOptions(extra={word: "0.8"})
    )
    assert isinstance(failure, CompileFailure)
    assert (failure.kind, word in failure.message) == ("unknown-option", True)


def test_no_precision_is_a_sparse_one() -> None:
    assert PRECISIONS == ("default", "f32", "bf16", "f16", "int8")
