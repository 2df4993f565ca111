"""What a packet recorded of the files that its study reads, held against those that lie here."""

from __future__ import annotations

from pathlib import Path

from trimtab.domain.ports import ModelFile
from trimtab.errors import ModelError
from trimtab.store.codec import read_json

INPUTS = "inputs.json"


def same_network(packet: Path, model: ModelFile) -> None:
    """ModelError unless ``model`` is the network that was measured: by the digest that was recorded. (A packet without
    a record was measured before there were any; then the study's pin decides, which resolving the network has held.)"""
    if not (packet / INPUTS).exists() and model.spec.sha256:
        return
    recorded = read_json(packet / INPUTS, dict[str, str])
    for name, sha256 in (("model", model.sha256), ("torch", model.torch_sha256)):
        if recorded.get(name, "") != sha256:
            raise ModelError(
                f"the {name} network here is not the one that the packet was measured with",
                where=f"{model.path or model.torch}; {INPUTS}: {name}",
                fix="get that revision; `trimtab reproduce` takes its folder as --inputs",
            )
