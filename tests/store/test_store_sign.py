"""Three owners sign a packet; whatever is done to it afterwards is refused, with the reason."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from hypothesis import given, settings
from hypothesis import strategies as st
from securesystemslib.signer import CryptoSigner, SSlibKey
from signed_kit import LATER, NOW, key, public, sealed, sign_as, signed, study_text, write_key

from trimtab.domain.verdict import ROLES
from trimtab.errors import SignatureError, StudyError
from trimtab.store import sign
from trimtab.store._statement import Terms, seal
from trimtab.store.packet import build_manifest
from trimtab.store.study import parse_study
from trimtab.store.verification import Verification, examine

PACKET, SIGNATURE, SIGN_OFF, DOCUMENT = 8, 10, 11, 12


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return signed(tmp_path_factory.mktemp("signed"))


@pytest.fixture
def folder(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "packet"))


def told(found: Verification) -> list[tuple[str, str]]:
    return [(problem.path, problem.text) for problem in found.problems]


def test_three_throwaway_keys_sign_a_packet_and_it_verifies(original: Path) -> None:
    found = examine(original, NOW)
    assert found.problems == ()
    assert found.exit_code == 0
    assert found.signatures is not None
    assert found.signatures.complete
    assert found.signatures.reduced == ""
    assert [(one.role, one.name) for one in found.signatures.signed] == [
        ("compiler", "compiler-person"),
        ("observability", "observability-person"),
        ("runtime", "runtime-person"),
    ]


def test_any_tool_that_knows_dsse_can_check_a_signature(original: Path) -> None:
    envelope = json.loads((original / "signatures" / "runtime.json").read_bytes())
    kind, payload = envelope["payloadType"].encode(), base64.b64decode(envelope["payload"])
    signed_bytes = b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)
    (signature,) = envelope["signatures"]
    key("runtime-person").public_key().verify(base64.b64decode(signature["sig"]), signed_bytes)
    statement = json.loads(payload)
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert [one["name"] for one in statement["subject"]] == [
        "manifest.json",
        "proposal.json + verdict.json",
        "documents/runtime.md",
    ]
    sha256 = hashlib.sha256((original / "manifest.json").read_bytes()).hexdigest()
    assert statement["subject"][0]["digest"] == {"sha256": sha256}


@settings(deadline=None, max_examples=150)
@given(st.data())
def test_one_altered_byte_anywhere_is_refused(original: Path, data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(sorted(p for p in original.rglob("*") if p.is_file())))
    before = path.read_bytes()
    at = data.draw(st.integers(0, len(before) - 1))
    path.write_bytes(before[:at] + bytes([before[at] ^ data.draw(st.integers(1, 255))]) + before[at + 1 :])
    try:
        assert examine(original, NOW).exit_code != 0
    finally:
        path.write_bytes(before)


def test_a_dropped_role_leaves_the_sign_off_incomplete(folder: Path) -> None:
    (folder / "signatures" / "runtime.json").unlink()
    found = examine(folder, NOW)
    assert told(found) == [("signatures/runtime.json", "the runtime lead has not signed")]
    assert found.exit_code == SIGN_OFF


def test_an_unsigned_hold_needs_no_signature(tmp_path: Path) -> None:
    assert examine(sealed(tmp_path / "p", decision="hold"), NOW).exit_code == 0
    assert examine(sealed(tmp_path / "q"), NOW).exit_code == SIGN_OFF


def test_one_signature_cannot_stand_for_two_roles(folder: Path) -> None:
    shutil.copy(folder / "signatures" / "compiler.json", folder / "signatures" / "runtime.json")
    found = examine(folder, NOW)
    assert found.exit_code == SIGNATURE
    assert told(found)[0][1].startswith("was made with a foreign key")


def test_one_key_for_two_roles_needs_one_person_behind_it(tmp_path: Path) -> None:
    one = {"compiler": "ann", "runtime": "ann", "observability": "cy"}
    text = study_text(one)
    found = examine(sealed(tmp_path / "p", text), NOW)
    assert found.signatures is not None
    assert found.signatures.reduced == "one person signs as compiler lead and runtime lead"
    with pytest.raises(StudyError, match="is the key of the compiler lead too"):
        parse_study(text.replace('runtime = "ann"', 'runtime = "bob"', 1))


def test_a_key_signs_only_as_the_role_that_the_study_gives_it(tmp_path: Path) -> None:
    folder = sealed(tmp_path / "p")
    with pytest.raises(SignatureError, match="not the key that the study names for the runtime lead"):
        sign_as(folder, "runtime", key("compiler-person"))
    with pytest.raises(SignatureError, match="not the key"):
        sign_as(folder, "runtime", key("a stranger"))
    assert not (folder / "signatures").exists()


def test_nobody_signs_twice_or_over_another(folder: Path) -> None:
    before = {path: path.read_bytes() for path in (folder / "signatures").iterdir()}
    with pytest.raises(SignatureError, match="has signed already"):
        sign_as(folder, "compiler", key("compiler-person"))
    assert {path: path.read_bytes() for path in (folder / "signatures").iterdir()} == before


def forged(folder: Path, role: str = "compiler", name: str = "compiler-person", **changes: object) -> Path:
    """A well-made envelope with the right digests, by whatever key and with whatever terms."""
    private = key(str(changes.pop("by", "compiler-person")))
    text = public(private)
    signer = CryptoSigner(private, SSlibKey.from_crypto(private.public_key(), keyid=sign.fingerprint(text)))
    terms = Terms(study="Receipt lines", role=role, name=name, signed=NOW.isoformat(), expires=LATER.isoformat())  # type: ignore[arg-type]
    subjects = sign.subjects(folder, "compiler") | changes.pop("subjects", {})  # type: ignore[operator]
    for field, value in changes.items():
        terms = Terms(**{name: getattr(terms, name) for name in Terms.__struct_fields__} | {field: value})
    path = folder / "signatures" / "compiler.json"
    path.write_bytes(seal(subjects, terms, signer))
    return folder


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"by": "a stranger"}, "was made with a foreign key"),
        ({"role": "runtime"}, "was made by the runtime lead of study Receipt lines, not for this"),
        ({"study": "Other lines"}, "was made by the compiler lead of study Other lines, not for this"),
        ({"name": "somebody"}, "was made by the compiler lead of study Receipt lines, not for this"),
        ({"expires": NOW.isoformat()}, "expired at"),
        ({"signed": LATER.isoformat()}, "was made in the future"),
        ({"expires": "never"}, "does not say when"),
        ({"expires": "2030-02-01"}, "does not say when"),
        ({"subjects": {"manifest.json": "0" * 64}}, "other evidence was signed"),
        ({"subjects": {"proposal.json + verdict.json": "0" * 64}}, "another decision was signed"),
        ({"subjects": {"documents/compiler.md": "0" * 64}}, "was edited after it was signed"),
        ({"subjects": {"documents/runtime.md": "0" * 64}}, "signs more than"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_signature_that_is_not_what_it_claims(folder: Path, changes: dict[str, object], reason: str) -> None:
    found = examine(forged(folder, **changes), NOW)  # type: ignore[arg-type]
    assert found.exit_code == SIGNATURE
    assert [path for path, _ in told(found)] == ["signatures/compiler.json"]
    assert reason in told(found)[0][1]


def test_a_forgery_without_changes_would_pass(folder: Path) -> None:
    assert examine(forged(folder), NOW).exit_code == 0


def test_signatures_expire(original: Path) -> None:
    found = examine(original, LATER)
    assert found.exit_code == SIGNATURE
    assert [text for _, text in told(found)] == [f"expired at {LATER.isoformat()}"] * 3
    assert examine(original, LATER - timedelta(seconds=1)).exit_code == 0


def test_a_document_edited_after_signing_is_refused_even_if_the_views_are_made_anew(folder: Path) -> None:
    document = folder / "documents" / "compiler.md"
    document.write_text(document.read_text() + "A second thought.\n")
    assert examine(folder, NOW).exit_code == PACKET
    build_manifest(folder, "views", "0.1")
    found = examine(folder, NOW)
    assert told(found) == [
        ("signatures/compiler.json", "documents/compiler.md was edited after it was signed"),
    ]


def test_evidence_that_is_sealed_anew_is_not_what_was_signed(folder: Path) -> None:
    build_manifest(folder, "evidence", "0.1", created="2030-01-01T00:00:01+00:00")
    found = examine(folder, NOW)
    assert {text for _, text in told(found)} == {"other evidence was signed: manifest.json has changed since"}
    assert found.exit_code == SIGNATURE


def test_a_dissent_is_kept_and_stops_the_release(tmp_path: Path) -> None:
    folder = sealed(tmp_path / "p")
    for role in ROLES:
        sign_as(folder, role, key(f"{role}-person"), dissent="p99 is thin" if role == "observability" else "")
    found = examine(folder, NOW)
    assert found.exit_code == SIGN_OFF
    assert told(found) == [
        ("signatures/observability.json", "the observability engineer signed against it: p99 is thin")
    ]


def test_fewer_roles_are_a_reduced_sign_off(tmp_path: Path) -> None:
    folder = sealed(tmp_path / "p", study_text(require=("runtime",)))
    sign_as(folder, "runtime", key("runtime-person"))
    found = examine(folder, NOW)
    assert found.exit_code == 0
    assert found.signatures is not None
    assert found.signatures.reduced == "only runtime lead must sign"


def test_a_trusted_study_overrules_the_keys_and_the_policy_of_the_packet(tmp_path: Path) -> None:
    strangers = {role: f"stranger {role}" for role in ROLES}
    folder = sealed(tmp_path / "p", study_text(strangers, require=("runtime",)))
    sign_as(folder, "runtime", key("stranger runtime"))
    assert examine(folder, NOW).exit_code == 0
    found = examine(folder, NOW, parse_study(study_text()))
    assert found.exit_code == SIGNATURE
    assert told(found)[0][1].startswith("was made with a foreign key")
    other = parse_study(study_text().replace('name = "Receipt lines"', 'name = "Other"'))
    assert "the packet is of study Receipt lines, not of Other" in {
        text for _, text in told(examine(folder, NOW, other))
    }


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda path: path.write_bytes(b"{}"), "is not a signature"),
        (lambda path: path.write_bytes(b""), "is not a signature"),
        (lambda path: path.write_bytes(b"[" * 60_000), "is not a signature"),
        (lambda path: path.write_bytes(b" " * 100_000), "compiler.json is larger than"),
        (lambda path: (path.unlink(), path.symlink_to("/etc/passwd")), "compiler.json is a link"),
        (lambda path: (path.unlink(), os.mkfifo(path)), "is not a regular file"),
        (lambda path: (path.unlink(), path.mkdir()), "cannot read compiler.json"),
        (lambda path: path.rename(path.with_name("boss.json")), "belongs to no role"),
    ],
)
def test_a_signature_file_that_a_stranger_spoilt(folder: Path, spoil: object, reason: str) -> None:
    spoil(folder / "signatures" / "compiler.json")  # type: ignore[operator]
    found = examine(folder, NOW)
    assert found.exit_code == SIGNATURE
    assert reason in told(found)[0][1]


def test_locked_keys_open_with_their_passphrase_only(tmp_path: Path) -> None:
    path = write_key(tmp_path / "key", key("ann"), b"open sesame")
    assert sign.is_locked(path)
    assert not sign.is_locked(write_key(tmp_path / "plain", key("ann")))
    assert public(sign.load_key(path, "open sesame")) == public(key("ann"))
    for wrong, why in (("open barley", "does not open"), (None, "cannot read"), ("", "cannot read")):
        with pytest.raises(SignatureError, match=why):
            sign.load_key(path, wrong)


def test_other_files_are_no_keys(tmp_path: Path) -> None:
    other = generate_private_key(SECP256R1()).private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    for content, reason in ((other, "no ed25519 key"), (b"not a key", "cannot read"), (b"", "cannot read")):
        (tmp_path / "key").write_bytes(content)
        with pytest.raises(SignatureError, match=reason):
            sign.load_key(tmp_path / "key", None)
    with pytest.raises(SignatureError, match="No such file"):
        sign.load_key(tmp_path / "none", None)


@pytest.mark.parametrize(
    "text",
    ["", "ssh-ed25519", "ssh-ed25519 AAAA", "ssh-rsa AAAAB3NzaC1yc2E= ann", public(key("ann"))[:-2], "ssh-ed25519 %%%"],
)
def test_what_is_no_public_key_is_refused_in_a_study(text: str) -> None:
    good = public(key("compiler-person"), "compiler-person")
    with pytest.raises(StudyError, match=r"signoff\.keys\.compiler: is no OpenSSH ed25519 public key"):
        parse_study(study_text().replace(good, text))


def test_a_length_of_time_is_needed_for_expiry() -> None:
    with pytest.raises(StudyError, match=r"signoff\.expires"):
        parse_study(study_text().replace('expires = "30d"', 'expires = "soon"'))
