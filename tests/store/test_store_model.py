"""Finding the network: beside the study, or inside an installed distribution."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import pytest
from store_examples import STUDY

from trimtab.errors import MissingTool, ModelError
from trimtab.store.study import parse_study, resolve_model


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on the import path that holds the installed distribution ``netpack``."""
    info = tmp_path / "netpack-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: netpack\nVersion: 1.0\n")
    (info / "RECORD").write_text("netpack/a/net.onnx,,\nnetpack/b/net.onnx,,\nnetpack/b/other.onnx,,\n")
    for name in ("a/net.onnx", "b/net.onnx", "b/other.onnx"):
        path = tmp_path / "netpack" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    return tmp_path


def study_with(model: str) -> str:
    return STUDY.replace('path = "net.onnx"', model)


def test_a_path_is_relative_to_the_study(tmp_path: Path) -> None:
    (tmp_path / "net.onnx").write_bytes(b"network")
    found = resolve_model(parse_study(STUDY), tmp_path)
    assert found.path == str(tmp_path / "net.onnx")
    assert found.sha256 == hashlib.sha256(b"network").hexdigest()
    assert found.dim_names == ("width",)


def test_a_missing_file_names_its_neighbours(tmp_path: Path) -> None:
    (tmp_path / "nett.onnx").write_bytes(b"")
    with pytest.raises(ModelError) as caught:
        resolve_model(parse_study(STUDY), tmp_path)
    assert caught.value.what == "there is no model file net.onnx"
    assert caught.value.fix == "did you mean `nett.onnx`?"


def test_a_pinned_digest_must_hold(tmp_path: Path) -> None:
    (tmp_path / "net.onnx").write_bytes(b"network")
    study = parse_study(study_with(f'path = "net.onnx"\nsha256 = "{"0" * 64}"'))
    with pytest.raises(ModelError, match="not the one that the study pins"):
        resolve_model(study, tmp_path)
    pinned = hashlib.sha256(b"network").hexdigest().upper()
    assert resolve_model(parse_study(study_with(f'path = "net.onnx"\nsha256 = "{pinned}"')), tmp_path).sha256


@pytest.mark.usefixtures("site")
def test_a_package_ships_the_file_whose_path_ends_so(tmp_path: Path) -> None:
    study = parse_study(study_with('path = "b/net.onnx"\npackage = "netpack"'))
    assert Path(resolve_model(study, tmp_path / "elsewhere").path).read_text() == "b/net.onnx"


@pytest.mark.usefixtures("site")
@pytest.mark.parametrize(
    ("path", "said", "fix"),
    [
        ("net.onnx", "2 files of 'netpack' end with net.onnx: netpack/a/net.onnx", "write more of the path"),
        ("othre.onnx", "no file of the package 'netpack' ends with othre.onnx", "did you mean `other.onnx`"),
        ("t.onnx", "no file of the package 'netpack' ends with t.onnx", "did you mean `"),
    ],
)
def test_a_package_without_exactly_one_such_file(tmp_path: Path, path: str, said: str, fix: str) -> None:
    with pytest.raises(ModelError) as caught:
        resolve_model(parse_study(study_with(f'path = "{path}"\npackage = "netpack"')), tmp_path)
    assert caught.value.what.startswith(said)
    assert caught.value.fix.startswith(fix)


def test_a_package_that_is_not_installed_says_how_to_install_it(tmp_path: Path) -> None:
    with pytest.raises(MissingTool) as caught:
        resolve_model(parse_study(study_with('path = "net.onnx"\npackage = "no-such-package"')), tmp_path)
    assert caught.value.fix == "pip install no-such-package"


CALIBRATED = 'path = "net.onnx"\ncalibration = { bank = "lines.npz", samples = 8 }'


def test_calibration_inputs_are_found_beside_the_study_and_hashed(tmp_path: Path) -> None:
    (tmp_path / "net.onnx").write_bytes(b"network")
    (tmp_path / "lines.npz").write_bytes(b"arrays")
    found = resolve_model(parse_study(study_with(CALIBRATED)), tmp_path)
    assert found.calibration == str(tmp_path / "lines.npz")
    assert found.calibration_sha256 == hashlib.sha256(b"arrays").hexdigest()
    assert found.spec.calibration.samples == 8
    assert resolve_model(parse_study(STUDY), tmp_path).calibration == ""


def test_missing_calibration_inputs_name_their_neighbours(tmp_path: Path) -> None:
    (tmp_path / "net.onnx").write_bytes(b"network")
    (tmp_path / "line.npz").write_bytes(b"arrays")
    with pytest.raises(ModelError) as caught:
        resolve_model(parse_study(study_with(CALIBRATED)), tmp_path)
    assert caught.value.what == "there is no calibration file lines.npz"
    assert caught.value.where.endswith("lines.npz; model.calibration.bank")
    assert caught.value.fix.startswith("did you mean `line.npz`")
