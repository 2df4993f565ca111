"""Shape -> Route: literal tables, and the laws of covering."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.domain.plan import CompileSpec, Entry
from trimtab.domain.route import Route
from trimtab.errors import StudyError
from trimtab.mapping.route import Router


def entry(name: str, kind: str, lo: tuple[int, ...], hi: tuple[int, ...], batch: tuple[int, int] = (1, 1)) -> Entry:
    return Entry(id=name, kind=kind, lo=lo, hi=hi, batch=batch)  # type: ignore[arg-type]


SPEC = CompileSpec(
    backend="null",
    fallback="any",
    entries=(
        entry("any", "dynamic", (20,), (600,), (1, 8)),
        entry("b320", "bucket", (1,), (320,), (1, 4)),
        entry("b160", "bucket", (1,), (160,), (4, 4)),
        entry("s64", "static", (64,), (64,)),
    ),
)


@pytest.mark.parametrize(
    ("width", "kind", "took", "executed"),
    [
        (64, "exact", "s64", (1, 64)),
        (65, "padded", "b160", (4, 160)),  # a smaller batch is padded up to the compiled one
        (160, "exact", "b160", (4, 160)),
        (161, "padded", "b320", (1, 320)),
        (320, "exact", "b320", (1, 320)),
        (321, "dynamic", "any", (1, 321)),
        (600, "dynamic", "any", (1, 600)),
        (601, "fallback", "any", (1, 601)),
        (10, "padded", "b160", (4, 160)),
    ],
)
def test_the_cheapest_covering_entry_takes_the_shape(
    width: int, kind: str, took: str, executed: tuple[int, ...]
) -> None:
    assert Router(SPEC).route((width,)) == Route(kind=kind, entry=took, executed=executed)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("members", "executed"),
    [
        ([(400,)], (1, 400)),
        ([(400,), (350,), (399,)], (3, 400)),
    ],
)
def test_a_dynamic_batch_runs_at_its_largest_dims(members: list[tuple[int, ...]], executed: tuple[int, ...]) -> None:
    router = Router(SPEC)
    assert router.batch(router.route(members[0]), members) == executed


def test_largest_dims_are_taken_dim_by_dim() -> None:
    router = Router(CompileSpec(backend="null", entries=(entry("d", "dynamic", (1, 1), (99, 99), (1, 8)),)))
    members = [(10, 3), (4, 30)]
    assert router.batch(router.route(members[0]), members) == (2, 10, 30)


def test_a_bucket_batch_runs_at_the_bucket_and_its_compiled_size() -> None:
    router = Router(SPEC)
    assert router.batch(router.route((70,)), [(70,), (120,)]) == (4, 160)
    assert router.batch(router.route((161,)), [(161,), (320,)]) == (2, 320)


def test_without_a_fallback_a_shape_outside_is_rejected() -> None:
    router = Router(CompileSpec(backend="null", entries=(entry("b", "bucket", (1,), (100,)),)))
    assert router.route((101,)) == Route(kind="rejected", entry=None, executed=())
    assert [router.outside((w,)) for w in (100, 101)] == [False, True]
    with pytest.raises(ValueError, match="rejected"):
        router.batch(router.route((101,)), [(101,)])


def test_a_static_fallback_takes_only_what_fits() -> None:
    router = Router(CompileSpec(backend="null", fallback="b", entries=(entry("b", "bucket", (50,), (100,)),)))
    assert [router.route((w,)).kind for w in (49, 50, 100, 101)] == ["fallback", "padded", "exact", "rejected"]


def test_volume_decides_between_buckets_and_the_plan_between_equals() -> None:
    spec = CompileSpec(
        backend="null",
        entries=(
            entry("wide", "bucket", (1, 1), (400, 10)),
            entry("small", "bucket", (1, 1), (50, 50)),
            entry("equal", "bucket", (1, 1), (100, 25)),
        ),
    )
    took = [Router(spec).route(dims).entry for dims in [(10, 10), (40, 40), (90, 20), (300, 5), (300, 11)]]
    assert took == ["small", "small", "equal", "wide", None]


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ((("a", "dynamic", (1,), (9,)), ("a", "dynamic", (1,), (9,))), "share the id 'a'"),
        ((("a", "static", (1,), (9,)),), "covers one shape"),
        ((("a", "bucket", (9,), (1,)),), "not a range"),
        ((("a", "bucket", (1,), (9,), (3, 2)),), "batch (3, 2) is not a range"),
        ((("a", "bucket", (1,), (9,)), ("b", "bucket", (1, 1), (9, 9))), "number of dims"),
    ],
)
def test_a_plan_that_makes_no_sense_is_refused(spec: tuple[tuple[object, ...], ...], sentence: str) -> None:
    with pytest.raises(StudyError) as refused:
        Router(CompileSpec(backend="null", entries=tuple(entry(*args) for args in spec)))  # type: ignore[arg-type]
    assert sentence in str(refused.value)


def test_a_fallback_must_be_an_entry() -> None:
    with pytest.raises(StudyError, match="names no entry: 'nope'"):
        Router(CompileSpec(backend="null", fallback="nope", entries=(entry("a", "dynamic", (1,), (9,)),)))


width = st.integers(1, 60)


@st.composite
def entries(draw: st.DrawFn, dims: int = 2) -> tuple[Entry, ...]:
    made = []
    for number in range(draw(st.integers(1, 6))):
        kind = draw(st.sampled_from(["static", "bucket", "dynamic"]))
        hi = tuple(draw(width) for _ in range(dims))
        lo = hi if kind == "static" else tuple(draw(st.integers(1, h)) for h in hi)
        made.append(entry(f"e{number}", kind, lo, hi, (1, 8)))
    return tuple(made)


@given(entries(), st.lists(st.tuples(width, width), min_size=1, max_size=20), width, width)
@settings(deadline=None)
def test_adding_a_bucket_never_makes_a_covered_shape_fall_back(
    base: tuple[Entry, ...], shapes: list[tuple[int, int]], w: int, h: int
) -> None:
    before = Router(CompileSpec(backend="null", entries=base))
    more = (*base, entry("new", "bucket", (1, 1), (w, h)))
    after = Router(CompileSpec(backend="null", entries=more))
    for shape in shapes:
        if not before.outside(shape):
            assert not after.outside(shape)


@given(entries(), st.lists(st.tuples(width, width), min_size=1, max_size=8))
@settings(deadline=None)
def test_executed_dims_hold_every_member_and_lie_in_the_entry(
    base: tuple[Entry, ...], shapes: list[tuple[int, int]]
) -> None:
    router = Router(CompileSpec(backend="null", entries=base))
    by_entry: dict[str, list[tuple[int, ...]]] = {}
    for shape in shapes:
        took = router.route(shape).entry
        if took is not None:
            by_entry.setdefault(took, []).append(shape)
    for took, members in by_entry.items():
        size, *dims = router.batch(router.route(members[0]), members)
        assert size == len(members)
        assert all(d >= m for member in members for d, m in zip(dims, member, strict=True))
        assert all(d <= hi for d, hi in zip(dims, router.entries[took].hi, strict=True))
