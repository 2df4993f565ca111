"""The text embedder's example: its studies, its traffic, and how its texts become padded inputs.

Only the last test needs the published network; the others use a stand-in with the same inputs and the same pooling over
the mask.
"""

from __future__ import annotations

import gzip
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
import pytest

from trimtab import backends
from trimtab.domain.ports import CompiledEntry, ModelFile
from trimtab.domain.profile import CompileFailure, CompileOptions
from trimtab.domain.study import Study
from trimtab.evidence.quality import scores
from trimtab.mapping.pad import assemble, filler
from trimtab.readers.payload import open_bank, payloads_of
from trimtab.readers.traffic import read_workload
from trimtab.store.study import load_study, resolve_model

EXAMPLE = Path(__file__).parents[2] / "examples" / "minilm"
sys.path.insert(0, str(EXAMPLE))

import texts  # noqa: E402

CONVERSATION, CODE = "study.toml", "study-code.toml"
TEXT = ["the cat sat", "a dog ran far away", "it", "one two three four five six seven"]


def encode(paragraphs: Sequence[str]) -> list[list[int]]:
    """A word's id is 10 and its length: enough to tell where a text was cut."""
    return [[10 + len(word) for word in paragraph.split()] for paragraph in paragraphs]


KEYS = ("006-0", "006-1", "012-0")
STAND_IN = texts.Vocabulary(encode, first=1, last=2)


def study_with(bank: Path, name: str = CONVERSATION) -> Study:
    """A study of the example, with another bank and 40 requests."""
    study = load_study(EXAMPLE / name)
    payload = msgspec.structs.replace(study.workload.payload, bank=str(bank))
    workload = msgspec.structs.replace(study.workload, payload=payload, limit=40)
    return msgspec.structs.replace(study, workload=workload)


def test_both_studies_serve_the_same_network_as_it_is_served_today() -> None:
    conversation, code = load_study(EXAMPLE / CONVERSATION), load_study(EXAMPLE / CODE)
    assert (conversation.model, conversation.dims, conversation.baseline.compile, conversation.quality) == (
        code.model,
        code.dims,
        code.baseline.compile,
        code.quality,
    )
    assert conversation.name != code.name
    assert {spec.name: spec.pad for spec in conversation.model.inputs} == {"input_ids": 0, "attention_mask": 0}


@pytest.mark.parametrize(
    ("file", "requests", "tokens", "longest", "median"),
    [("azure_conv_tokens.csv.gz", 19_366, 4_036_348, 563, 129), ("azure_code_tokens.csv.gz", 8_819, 238_132, 27, 13)],
)
def test_the_extracts_hold_every_recorded_request(
    file: str, requests: int, tokens: int, longest: int, median: int
) -> None:
    with gzip.open(EXAMPLE / "traces" / file, "rt") as handle:
        assert handle.readline() == "TIMESTAMP,tokens\n"
    lengths = texts.lengths_of(EXAMPLE / "traces" / file)
    assert (len(lengths), sum(lengths)) == (requests, tokens)
    assert lengths.count(512) == longest
    assert int(np.median(lengths)) == median


def test_a_text_begins_with_a_paragraph_and_ends_where_its_request_does() -> None:
    found = texts.corpus(TEXT, STAND_IN)
    assert found.ids.tolist() == [13, 13, 13, 11, 13, 13, 13, 14, 12, 13, 13, 15, 14, 14, 13, 15]
    assert found.starts.tolist() == [0, 3, 8, 9]
    arrays = texts.bank([6, 6, 12], found, STAND_IN)
    assert sorted(arrays) == [f"{name}/{key}" for name in ("attention_mask", "input_ids") for key in KEYS]
    assert arrays["input_ids/012-0"].tolist() in ([1, *found.ids[s : s + 10], 2] for s in (0, 3))
    first, second = (arrays[f"input_ids/006-{n}"].tolist() for n in (0, 1))
    assert first != second
    assert all(row[0] == 1 and row[-1] == 2 and len(row) == 6 for row in (first, second))
    assert arrays["attention_mask/012-0"].tolist() == [1] * 12


def test_a_length_has_no_more_texts_than_the_example_needs() -> None:
    arrays = texts.bank([4] * 9 + [5], texts.corpus(TEXT * 5, STAND_IN), STAND_IN)
    assert Counter(name.partition("/")[2][:3] for name in arrays) == {"004": 2 * texts.EACH, "005": 2}


def test_requests_bring_ids_and_mask_at_their_recorded_length(tmp_path: Path) -> None:
    study = study_with(tmp_path / "bank.npz")
    lengths = texts.lengths_of(EXAMPLE / "traces" / "azure_conv_tokens.csv.gz")[:40]
    np.savez_compressed(tmp_path / "bank.npz", **texts.bank(lengths, texts.corpus(TEXT * 200, STAND_IN), STAND_IN))
    workload = read_workload(study, EXAMPLE)
    assert workload.dims[:, 0].tolist() == lengths
    assert workload.payload_kind == "real"
    payloads, bank = payloads_of(study, EXAMPLE), open_bank(study, EXAMPLE)
    for payload, (tokens,) in zip(workload.payload.tolist(), workload.dims.tolist(), strict=True):
        assert bank.dims[payload] == (tokens,)
        given = payloads.request(payload, (tokens,))
        assert given["input_ids"].shape == given["attention_mask"].shape == (1, tokens)
        assert given["input_ids"].dtype == given["attention_mask"].dtype == np.int64
        assert given["attention_mask"].sum() == tokens
        assert (given["input_ids"][0, 0], given["input_ids"][0, -1]) == (1, 2)


def pooled(inputs: dict[str, np.ndarray]) -> np.ndarray:
    """What the network does at its end, on a stand-in for its body: mean over the mask, length 1."""
    table = np.random.default_rng(3).normal(size=(40, 8))
    mask = inputs["attention_mask"][:, :, None]
    mean = (table[inputs["input_ids"]] * mask).sum(axis=1) / np.maximum(mask.sum(axis=1), 1e-9)
    return mean / np.maximum(np.linalg.norm(mean, axis=1, keepdims=True), 1e-12)


def test_the_mask_keeps_padding_out_of_the_answer(tmp_path: Path) -> None:
    study = study_with(tmp_path / "bank.npz")
    np.savez_compressed(tmp_path / "bank.npz", **texts.bank([7, 7], texts.corpus(TEXT, STAND_IN), STAND_IN))
    payloads = payloads_of(study, EXAMPLE)
    members = [payloads.request(number, (7,)) for number in (0, 1)]
    exact = assemble(study.model, study.dim_names, members, (2, 7))
    padded = assemble(study.model, study.dim_names, members, (2, 32))
    assert padded["attention_mask"].sum(axis=1).tolist() == [7, 7]
    np.testing.assert_allclose(pooled(padded), pooled(exact), rtol=1e-12)
    open_mask = padded | {"attention_mask": np.ones_like(padded["attention_mask"])}
    assert np.abs(pooled(open_mask) - pooled(exact)).max() > 0.01
    assert not pooled(filler(study.model, study.dim_names, (1, 32))).any()


def test_the_corpora_are_real_text_in_paragraphs() -> None:
    prose, code = texts.prose(), texts.code()
    assert any("assert" in part and "statement" in part for part in prose)
    assert any(part.startswith("def ") for part in code)
    assert min(len(prose), len(code)) > 1000
    assert all(part == part.strip() for part in prose[:50])


@pytest.mark.slow
@pytest.mark.parametrize(("backend", "floor"), [("onnxruntime", 0.99999), ("openvino", 0.995)])
def test_the_published_network_answers_padded_texts_as_unpadded_ones(backend: str, floor: float) -> None:
    study = load_study(EXAMPLE / CONVERSATION)
    if not (EXAMPLE / study.model.path).is_file():
        pytest.skip("the published network is not here: make demo-minilm")
    model, payloads = resolve_model(study, EXAMPLE), payloads_of(study, EXAMPLE)
    dims = open_bank(study, EXAMPLE).dims
    member = payloads.request(300, dims[300])
    reference, entry = (_compiled(name, study, model) for name in ("onnxruntime", backend))
    exact = reference.run(assemble(study.model, study.dim_names, [member], (1, *dims[300])))
    for executed in ((1, dims[300][0] + 40), (2, 512)):
        given = entry.run(assemble(study.model, study.dim_names, [member], executed))
        assert given["sentence_embedding"].shape == (executed[0], 384)
        own = {name: rows[:1] for name, rows in given.items()}
        assert scores("cosine", [own], [exact])[0] > floor


def _compiled(backend: str, study: Study, model: ModelFile) -> CompiledEntry:
    entry = backends.factory(backend)().compile(model, study.baseline.compile.entries[0], CompileOptions())
    assert not isinstance(entry, CompileFailure), entry
    return entry
