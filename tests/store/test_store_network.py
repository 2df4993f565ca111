"""Torch networks in a study: the three ways to name one, what each digest covers, and what is refused."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import pytest
from store_examples import STUDY

from trimtab.domain.ports import ModelFile
from trimtab.errors import MissingTool, ModelError, StudyError
from trimtab.store.study import parse_study, resolve_model

PATH = 'path = "net.onnx"'


def resolved(model: str, folder: Path) -> ModelFile:
    return resolve_model(parse_study(STUDY.replace(PATH, model)), folder)


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize(("name", "tail"), [("net.pt2", ""), ("net.py", ":make"), ("nets/small.py", ":make_small")])
def test_a_file_is_relative_to_the_study_and_its_bytes_are_the_digest(tmp_path: Path, name: str, tail: str) -> None:
    (tmp_path / "nets").mkdir()
    (tmp_path / name).write_bytes(b"network")
    found = resolved(f'torch = "{name}{tail}"', tmp_path)
    assert found.torch == f"{tmp_path / name}{tail}"
    assert found.torch_sha256 == sha256(b"network")
    assert (found.path, found.sha256) == ("", found.torch_sha256), "it is the study's only network"


def test_a_study_may_name_both_networks(tmp_path: Path) -> None:
    (tmp_path / "net.onnx").write_bytes(b"onnx")
    (tmp_path / "net.pt2").write_bytes(b"torch")
    found = resolved(f'{PATH}\ntorch = "net.pt2"', tmp_path)
    assert (found.sha256, found.torch_sha256) == (sha256(b"onnx"), sha256(b"torch"))
    assert found.path == str(tmp_path / "net.onnx")


def test_a_study_without_a_torch_network_has_none(tmp_path: Path) -> None:
    (tmp_path / "net.onnx").write_bytes(b"onnx")
    found = resolved(PATH, tmp_path)
    assert (found.torch, found.torch_sha256) == ("", "")


def test_the_digest_of_a_package_is_that_of_its_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = tmp_path / "net_pack-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: net-pack\nVersion: 1.2\n")
    (info / "RECORD").write_text("netpack/__init__.py,,\nnetpack/small.py,,\n")
    (info / "top_level.txt").write_text("netpack\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    found = resolved('torch = "netpack.small:make"', tmp_path / "elsewhere")
    assert found.torch == "netpack.small:make"
    assert found.torch_sha256 == sha256(b"net-pack==1.2")
    assert "netpack" not in sys.modules, "user code is not run here"


def test_a_package_that_is_not_installed_is_missing(tmp_path: Path) -> None:
    with pytest.raises(MissingTool) as caught:
        resolved('torch = "nowhere.nets:make"', tmp_path)
    assert caught.value.what == "no installed package provides the module 'nowhere'"
    assert "nowhere.py:<function>" in caught.value.fix


def test_a_missing_file_names_its_neighbours(tmp_path: Path) -> None:
    (tmp_path / "nett.py").write_bytes(b"")
    with pytest.raises(ModelError) as caught:
        resolved('torch = "net.py:make"', tmp_path)
    assert caught.value.what == "there is no torch model file net.py"
    assert caught.value.where.endswith("net.py; model.torch")
    assert caught.value.fix == "did you mean `nett.py`?"


def test_a_pinned_digest_must_hold(tmp_path: Path) -> None:
    (tmp_path / "net.pt2").write_bytes(b"network")
    assert resolved(f'torch = "net.pt2"\ntorch_sha256 = "{sha256(b"network").upper()}"', tmp_path).torch
    with pytest.raises(ModelError, match="not the one that the study pins") as caught:
        resolved(f'torch = "net.pt2"\ntorch_sha256 = "{"0" * 64}"', tmp_path)
    assert caught.value.where.endswith("net.pt2; model.torch_sha256")


@pytest.mark.parametrize(
    ("model", "said", "fix"),
    [
        ("", "model.path: the study names no network", 'add path = "net.onnx", or torch = "net.pt2"'),
        ('torch = "net.pth"', "model.torch: is a pickle, which runs code when it is read", "torch.export.save"),
        ('torch = "net.py"', "model.torch: 'net.py' is neither a file nor a function", '"net.py:make"'),
        ('torch = "net:2"', "model.torch: 'net:2' is neither a file nor a function", '"package.module:make"'),
        ('torch = "net.pt2"\nsha256 = "0"', "model.sha256: pins model.path, which is not given", "remove sha256"),
        (f'{PATH}\ntorch_sha256 = "0"', "model.torch_sha256: pins model.torch, which is not given", "add torch"),
        ('torch = "net.pt2"\npackage = "p"', "model.package: ships model.path, which is not given", "add path"),
    ],
)
def test_names_that_mean_nothing_are_faults(model: str, said: str, fix: str) -> None:
    with pytest.raises(StudyError) as caught:
        parse_study(STUDY.replace(PATH, model))
    assert caught.value.what == said
    assert fix in caught.value.fix
