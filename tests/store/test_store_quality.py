"""The quality section of a study: floors that a metric can reach, and the user's own function."""

from __future__ import annotations

import pytest
from store_examples import STUDY

from trimtab.errors import StudyError
from trimtab.store.study import parse_study


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ('metric = "agreement-function"', "needs a function, got ''"),
        ('metric = "error-function"\nfunction = "nearness"', "needs a function, got 'nearness'"),
        ('metric = "error-function"\nfunction = "a/b:near"', "needs a function, got 'a/b:near'"),
        ('metric = "cosine"\nfunction = "nearness:near"', "metric cosine calls no function"),
        ('metric = "argmax-agreement"\nfloor = 1.5', "1.5 is no value that argmax-agreement can take"),
        ('metric = "max-error"\nfloor = -0.1', "use one from 0 on"),
        ('metric = "cosine"\nfloor = -2', "use one from -1 to 1"),
    ],
)
def test_what_cannot_be_judged_is_refused(lines: str, said: str) -> None:
    with pytest.raises(StudyError) as caught:
        parse_study(f"{STUDY}\n[quality]\n{lines}\n", "study.toml")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "lines",
    [
        'metric = "error-function"\nfunction = "pack.nearness:near"\nfloor = 7',
        'metric = "neighbour-agreement"\nfloor = 0.95\nsamples_each = 12',
        'metric = "cosine"\nfloor = -0.5',
        'metric = "max-error"\nfloor = 100',
    ],
)
def test_what_can_be_judged_is_read(lines: str) -> None:
    assert parse_study(f"{STUDY}\n[quality]\n{lines}\n").quality.metric in lines
