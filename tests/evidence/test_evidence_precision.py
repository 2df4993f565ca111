"""What precision really ran: what a backend does not know counts neither as the declared precision nor as another."""

from __future__ import annotations

import pytest
from evidence_cases import profile
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.domain.profile import CompileProfile
from trimtab.domain.study import QualitySpec
from trimtab.evidence import compile as compiled
from trimtab.evidence import precision


def ran(*operators: tuple[str, int]) -> CompileProfile:
    """An entry whose operators took so many ns in a precision."""
    return profile({(1, 9): [2.0]}, operators=[("Conv", name, ns) for name, ns in operators])


@pytest.mark.parametrize(
    ("entries", "shares"),
    [
        ([ran(("bf16", 97), ("f32", 3))], {"bf16": 0.97, "f32": 0.03}),
        ([ran(("f32", 60), ("bf16", 40)), ran(("f32", 100))], {"f32": 0.8, "bf16": 0.2}),
        ([ran(("f32", -1), ("f32", -1), ("bf16", -1), ("bf16", -1))], {"f32": 0.5, "bf16": 0.5}),  # by operators
        ([ran(("f32", 60), ("none", 40))], {"f32": 1.0}),
        ([ran(("f32", 40), ("none", 60))], {}),  # most of it is unknown
        ([ran(("none", 100))], {}),
        ([ran(("none", 100)), ran(("f32", 100))], {"f32": 1.0}),
        ([ran()], {}),
        ([], {}),
    ],
)
def test_shares_of_what_is_known(entries: list[CompileProfile], shares: dict[str, float]) -> None:
    assert precision.executed(entries) == pytest.approx(shares)


@pytest.mark.parametrize(
    ("operators", "declared", "share"),
    [
        ([("bf16", 97), ("f32", 3)], "f32", 0.03),
        ([("bf16", 97), ("f32", 3)], "f16", 0.0),
        ([("none", 100)], "f32", None),
        ([("bf16", 100)], "default", None),  # nothing was declared
    ],
)
def test_the_declared_share(operators: list[tuple[str, int]], declared: str, share: float | None) -> None:
    assert precision.executed_share([ran(*operators)], declared) == (None if share is None else pytest.approx(share))


def test_an_unknown_precision_is_no_finding_and_prints_as_unknown() -> None:
    found = compiled.findings([ran(("none", 100))], [], QualitySpec(precision="f32"))
    assert not any("execute" in finding.text for finding in found.findings)
    shares, entries = found.table("compile.precision"), found.table("compile.entries")
    assert shares is not None
    assert entries is not None
    assert (shares.columns["precision"], entries.columns["executed"]) == (("unknown",), (None,))


NAMES = st.sampled_from(["f32", "bf16", "int8", "none", ""])


@settings(deadline=None, max_examples=50)
@given(st.lists(st.lists(st.tuples(NAMES, st.integers(1, 1000)), max_size=5), max_size=4))
def test_known_shares_sum_to_one_and_never_name_the_unknown(entries: list[list[tuple[str, int]]]) -> None:
    shares = precision.executed([ran(*operators) for operators in entries])
    assert not set(shares) & set(precision.UNKNOWN)
    assert not shares or sum(shares.values()) == pytest.approx(1)
