"""The table of contents of a packet, with digests, and the check that nothing was altered.

``manifest.json`` lists the evidence, which never changes once a run has ended; ``manifest-views.json`` lists what is
derived from it and may be made again. Signatures and the progress of a running study are in neither. A manifest holds
the digest of itself, so that an accident to it is found too; against intent, the owners sign the digest of the whole
file.
"""

from __future__ import annotations

import datetime
import hashlib
import os
import stat
from collections.abc import Container, Iterator
from pathlib import Path, PurePosixPath
from typing import Literal

from msgspec.structs import replace

from trimtab.domain.noun import Noun
from trimtab.domain.packet import Manifest, ManifestFile
from trimtab.errors import PacketError, did_you_mean
from trimtab.store._json import digest, from_json, to_json, write_json
from trimtab.store._regular import (
    LARGEST_FILE,
    LARGEST_JSON,
    LARGEST_PACKET,
    MOST_FILES,
    digest_regular,
    read_regular,
)
from trimtab.store._write import is_temporary, machine_errors

Kind = Literal["evidence", "views"]
MANIFESTS: dict[Kind, str] = {"evidence": "manifest.json", "views": "manifest-views.json"}
SCHEMA = 1
_VIEW_SUFFIXES = (".html", ".trace.json")
_VIEW_FOLDERS = ("views", "documents")
_OUTSIDE = (".progress", "signatures")
STALE = ".progress/stale"
_OWN_FOLDERS = ("plans", "profiles", "quality", "traces", "accounts", "server")


class Problem(Noun, frozen=True, kw_only=True):
    """One way in which a packet is not what it says it is."""

    path: str
    kind: Literal[
        "missing", "altered", "extra", "escape", "link", "irregular", "size", "manifest",
        "schema", "document", "signature", "sign-off",
    ]  # fmt: skip
    text: str

    def __str__(self) -> str:
        return f"{self.path}: {self.text}"


HOSTILE = ("escape", "link", "irregular", "size")
"""Kinds that no accident makes: a packet with one of them is not read any further."""


def file_digest(path: Path) -> str:
    """SHA-256 of a file's bytes, hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def build_manifest(folder: Path, kind: Kind, version: str, created: str | None = None) -> Manifest:
    """List and hash every file of ``kind`` in ``folder``, write the manifest, and return it.

    ``created`` defaults to the present time (UTC, ISO 8601). PacketError if a link or a device is among the files.
    """
    paths = [path for path, kind_found in _files(folder) if kind_found == kind]
    with machine_errors(folder):
        files = tuple(_entry(folder, path) for path in paths)
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    return _write(
        folder, Manifest(kind=kind, trimtab=version, created=created or now, files=files, packet_schema=SCHEMA)
    )


def renew_view(folder: Path, path: str) -> None:
    """Take the present bytes of ONE view into the manifest of views; every other entry stays as it is."""
    manifest = from_json(read_regular(folder / MANIFESTS["views"]), Manifest, MANIFESTS["views"])
    with machine_errors(folder):
        entry = _entry(folder, path)
    kept = [file for file in manifest.files if file.path != path]
    _write(folder, replace(manifest, files=tuple(sorted((*kept, entry), key=lambda file: file.path))))


def set_aside(folder: Path, keep: Container[str]) -> list[str]:
    """Move evidence that is not in ``keep`` (paths inside ``folder``) to ``.progress/stale``: what an earlier study or
    an abandoned candidate left in the packet's own folders. Nothing else is touched, nothing is deleted. Returns what
    was moved."""
    moved = [path for path, _ in _files(folder) if path.split("/")[0] in _OWN_FOLDERS and path not in keep]
    move_aside(folder, moved)
    return moved


def move_aside(folder: Path, paths: list[str]) -> None:
    """Move ``paths`` (inside ``folder``) to ``.progress/stale``."""
    with machine_errors(folder):
        for path in paths:
            target = folder / STALE / path
            target.parent.mkdir(parents=True, exist_ok=True)
            (folder / path).replace(target)


def no_packet(folder: Path, what: str) -> PacketError:
    """The refusal of a folder that is none, with the packet beside it that was meant."""
    near = folder.parent
    beside = [path.name for path in near.iterdir() if (path / "study.json").is_file()] if near.is_dir() else []
    fix = did_you_mean(folder.name, beside) or "give the folder that `trimtab run` made"
    return PacketError(what, where=str(folder), fix=fix)


def verify(folder: Path, kind: Kind = "evidence") -> list[Problem]:
    """Everything in which ``folder`` differs from its manifest; an empty list means: intact.

    Raises PacketError only if there is no folder. Nothing outside ``folder`` is read and no link is followed.
    """
    if not folder.is_dir():
        raise no_packet(folder, "there is no packet here")
    name = MANIFESTS[kind]
    if (folder / name).is_symlink():
        return [Problem(path=name, kind="link", text="is a link")]
    try:
        data = read_regular(folder / name)
        manifest = from_json(data, Manifest)
    except PacketError as error:
        return [Problem(path=name, kind="manifest", text=error.what)]
    if manifest.packet_schema != SCHEMA or manifest.kind != kind:
        text = f"is a {manifest.kind} manifest of version {manifest.packet_schema}, not {kind} of {SCHEMA}"
        return [Problem(path=name, kind="manifest", text=text)]
    return [*_itself(name, data, manifest), *_listed_twice(manifest), *_differences(folder, manifest, kind)]


def _write(folder: Path, manifest: Manifest) -> Manifest:
    sealed = replace(manifest, sha256=_digest(manifest))
    write_json(folder / MANIFESTS["evidence" if manifest.kind == "evidence" else "views"], sealed)
    return sealed


def _digest(manifest: Manifest) -> str:
    return digest(replace(manifest, sha256=""))


def _entry(folder: Path, path: str) -> ManifestFile:
    if not stat.S_ISREG((folder / path).lstat().st_mode):
        raise PacketError(
            "a link or a device cannot be part of a packet",
            where=f"{folder / path}",
            fix="replace it by the file it stands for",
        )
    return ManifestFile(path=path, sha256=digest_regular(folder / path), bytes=(folder / path).stat().st_size)


def _itself(name: str, data: bytes, manifest: Manifest) -> Iterator[Problem]:
    """A manifest that was written before manifests held their own digest has none to compare with."""
    if manifest.sha256 and (manifest.sha256 != _digest(manifest) or data != to_json(manifest)):
        yield Problem(path=name, kind="manifest", text="was altered: its own SHA-256 differs")


def _differences(folder: Path, manifest: Manifest, kind: Kind) -> Iterator[Problem]:
    too_much = _too_much(manifest)
    if too_much:
        yield Problem(path=MANIFESTS[kind], kind="size", text=f"{too_much}; nothing was read")
        return
    listed = {file.path for file in manifest.files}
    for file in manifest.files:
        problem = _check(folder, file)
        if problem is not None:
            yield problem
    try:
        present = _files(folder)
    except PacketError as error:
        yield Problem(path=".", kind="size", text=error.what)
        return
    for path, kind_found in present:
        if kind_found == kind and path not in listed:
            yield _unlisted(folder, path)


def _unlisted(folder: Path, path: str) -> Problem:
    mode = (folder / path).lstat().st_mode
    if stat.S_ISLNK(mode):
        return Problem(path=path, kind="link", text="is a link and not in the manifest; not followed")
    if not stat.S_ISREG(mode):
        return Problem(path=path, kind="irregular", text="is not a regular file and not in the manifest; not read")
    return Problem(path=path, kind="extra", text="is not in the manifest")


def _too_much(manifest: Manifest) -> str:
    """Why reading all of this would be absurd; empty where it would not."""
    if len(manifest.files) > MOST_FILES:
        return f"lists {len(manifest.files)} files"
    total = sum(max(file.bytes, 0) for file in manifest.files)
    return f"lists {total} bytes" if total > LARGEST_PACKET else ""


def _listed_twice(manifest: Manifest) -> Iterator[Problem]:
    seen: set[str] = set()
    for file in manifest.files:
        if file.path in seen:
            yield Problem(path=file.path, kind="manifest", text="is listed twice")
        seen.add(file.path)


def _check(folder: Path, file: ManifestFile) -> Problem | None:
    if not _inside(file.path):
        return Problem(path=repr(file.path), kind="escape", text="points outside the packet; not read")
    try:
        return _check_inside(folder, file)
    except OSError as error:
        return Problem(path=file.path, kind="altered", text=f"cannot be read: {error.strerror}")


def _check_inside(folder: Path, file: ManifestFile) -> Problem | None:
    path = folder / file.path
    if any((folder / part).is_symlink() for part in _ancestors(file.path)):
        return Problem(path=file.path, kind="link", text="is a link or lies behind one; not followed")
    if not path.exists():
        return Problem(path=file.path, kind="missing", text="is missing")
    found = path.lstat()
    if not stat.S_ISREG(found.st_mode):
        return Problem(path=file.path, kind="irregular", text="is not a regular file; not read")
    if found.st_size > (LARGEST_JSON if path.suffix == ".json" else LARGEST_FILE):
        return Problem(path=file.path, kind="size", text=f"has {found.st_size} bytes; not read")
    if found.st_size != file.bytes or digest_regular(path) != file.sha256:
        return Problem(path=file.path, kind="altered", text="was altered: its SHA-256 differs")
    return None


def _inside(path: str) -> bool:
    pure = PurePosixPath(path)
    printable = path.isprintable() and "\\" not in path
    return printable and path == str(pure) and not pure.is_absolute() and ".." not in pure.parts and path != "."


def _ancestors(path: str) -> list[str]:
    pure = PurePosixPath(path)
    return [str(pure), *(str(parent) for parent in pure.parents if str(parent) != ".")]


def _files(folder: Path) -> list[tuple[str, Kind]]:
    """Files and links of a packet, as sorted relative paths, each with the manifest it belongs to. PacketError if there
    are absurdly many."""
    found: list[tuple[str, Kind]] = []
    for here, folders, names in os.walk(folder):
        base = Path(here)
        top = base.relative_to(folder).parts[:1]
        if top and top[0] in _OUTSIDE:
            folders.clear()
            continue
        names += [name for name in folders if (base / name).is_symlink()]
        if len(found) + len(names) > MOST_FILES:
            raise PacketError(f"holds more than {MOST_FILES} files", where=str(folder), fix="do not use this packet")
        for name in names:
            path = (base / name).relative_to(folder)
            if not is_temporary(path) and path.as_posix() not in MANIFESTS.values():
                found.append((path.as_posix(), _kind_of(path)))
    return sorted(found)


def _kind_of(path: Path) -> Kind:
    derived = path.name.endswith(_VIEW_SUFFIXES) or path.parts[0] in _VIEW_FOLDERS
    return "views" if derived else "evidence"
