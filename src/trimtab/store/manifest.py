"""The table of contents of a packet, with digests, and the check that nothing was altered.

``manifest.json`` lists the evidence, which never changes once a run has ended; ``manifest-views.json`` lists what is
derived from it and may be made again. Signatures and the progress of a running study are in neither.
"""

from __future__ import annotations

import datetime
import hashlib
import os
import stat
from collections.abc import Container, Iterator
from pathlib import Path, PurePosixPath
from typing import Literal

from trimtab.domain.noun import Noun
from trimtab.domain.packet import Manifest, ManifestFile
from trimtab.errors import PacketError
from trimtab.store._json import read_json, write_json
from trimtab.store._write import is_temporary, machine_errors

Kind = Literal["evidence", "views"]
MANIFESTS: dict[Kind, str] = {"evidence": "manifest.json", "views": "manifest-views.json"}
SCHEMA = 1
_VIEW_SUFFIXES = (".html", ".trace.json")
_VIEW_FOLDERS = ("views", "documents")
_OUTSIDE = (".progress", "signatures")
_BLOCK = 1 << 20
STALE = ".progress/stale"
_OWN_FOLDERS = ("plans", "profiles", "quality", "traces", "accounts")


class Problem(Noun, frozen=True, kw_only=True):
    """One way in which a packet is not what its manifest says."""

    path: str
    kind: Literal["missing", "altered", "extra", "escape", "link", "manifest"]
    text: str

    def __str__(self) -> str:
        return f"{self.path}: {self.text}"


def file_digest(path: Path) -> str:
    """SHA-256 of a file's bytes, hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def build_manifest(folder: Path, kind: Kind, version: str, created: str | None = None) -> Manifest:
    """List and hash every file of ``kind`` in ``folder``, write the manifest, and return it.

    ``created`` defaults to the present time (UTC, ISO 8601). PacketError if a link is among the files.
    """
    paths = [path for path, kind_found in _files(folder) if kind_found == kind]
    links = [path for path in paths if (folder / path).is_symlink()]
    if links:
        raise PacketError(
            "a link cannot be evidence", where=f"{folder / links[0]}", fix="replace it by the file it points to"
        )
    with machine_errors(folder):
        files = tuple(
            ManifestFile(path=path, sha256=file_digest(folder / path), bytes=(folder / path).stat().st_size)
            for path in paths
        )
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    manifest = Manifest(kind=kind, trimtab=version, created=created or now, files=files, packet_schema=SCHEMA)
    write_json(folder / MANIFESTS[kind], manifest)
    return manifest


def set_aside(folder: Path, keep: Container[str]) -> list[str]:
    """Move evidence that is not in ``keep`` (paths inside ``folder``) to ``.progress/stale``: what an earlier study or
    an abandoned candidate left in the packet's own folders. Nothing else is touched, nothing is deleted. Returns what
    was moved."""
    moved = [path for path, _ in _files(folder) if path.split("/")[0] in _OWN_FOLDERS and path not in keep]
    with machine_errors(folder):
        for path in moved:
            target = folder / STALE / path
            target.parent.mkdir(parents=True, exist_ok=True)
            (folder / path).replace(target)
    return moved


def verify(folder: Path, kind: Kind = "evidence") -> list[Problem]:
    """Everything in which ``folder`` differs from its manifest; an empty list means: intact.

    Raises PacketError only if there is no folder. Nothing outside ``folder`` is read and no link is followed.
    """
    if not folder.is_dir():
        raise PacketError("there is no packet here", where=str(folder), fix="give the folder that `trimtab run` made")
    name = MANIFESTS[kind]
    if (folder / name).is_symlink():
        return [Problem(path=name, kind="link", text="is a link")]
    try:
        manifest = read_json(folder / name, Manifest)
    except PacketError as error:
        return [Problem(path=name, kind="manifest", text=error.what)]
    if manifest.packet_schema != SCHEMA or manifest.kind != kind:
        text = f"is a {manifest.kind} manifest of version {manifest.packet_schema}, not {kind} of {SCHEMA}"
        return [Problem(path=name, kind="manifest", text=text)]
    return [*_listed_twice(manifest), *_differences(folder, manifest, kind)]


def _differences(folder: Path, manifest: Manifest, kind: Kind) -> Iterator[Problem]:
    listed = {file.path for file in manifest.files}
    for file in manifest.files:
        problem = _check(folder, file)
        if problem is not None:
            yield problem
    for path, kind_found in _files(folder):
        if kind_found == kind and path not in listed:
            yield Problem(path=path, kind="extra", text="is not in the manifest")


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
    if not stat.S_ISREG(path.lstat().st_mode):
        return Problem(path=file.path, kind="altered", text="is not a regular file")
    if path.stat().st_size != file.bytes or file_digest(path) != file.sha256:
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
    """Files and links of a packet, as sorted relative paths, each with the manifest it belongs to."""
    found: list[tuple[str, Kind]] = []
    for here, folders, names in os.walk(folder):
        base = Path(here)
        top = base.relative_to(folder).parts[:1]
        if top and top[0] in _OUTSIDE:
            folders.clear()
            continue
        names += [name for name in folders if (base / name).is_symlink()]
        for name in names:
            path = (base / name).relative_to(folder)
            if not is_temporary(path) and path.as_posix() not in MANIFESTS.values():
                found.append((path.as_posix(), _kind_of(path)))
    return sorted(found)


def _kind_of(path: Path) -> Kind:
    derived = path.name.endswith(_VIEW_SUFFIXES) or path.parts[0] in _VIEW_FOLDERS
    return "views" if derived else "evidence"
