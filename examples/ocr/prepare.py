"""Draws one text-line image per width that the traffic contains, into ``data/lines.npz`` (kind: rendered).

The words are those of receipts, chosen by a seed; the widths are real. Each image is 48 pixels high, uint8, dark on
light, one channel: the study broadcasts it to three and scales it to -1..1, as the recogniser was trained.
"""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

HERE = Path(__file__).parent
HEIGHT = 48
SEED = 20
WORDS = (
    "TOTAL", "CASH", "CHANGE", "TAX INVOICE", "GST 6%", "QTY", "RM", "SUBTOTAL", "ROUNDING", "THANK YOU", "PLEASE",
    "COME AGAIN", "DATE", "TIME", "NO.", "BILL", "ITEM", "AMOUNT", "DISCOUNT", "CASHIER", "TEL", "FAX", "JALAN",
    "TAMAN", "SDN BHD", "STATIONERY", "BREAD", "WATER", "PAPER A4", "PEN BLUE", "RICE", "COFFEE",
)  # fmt: skip


def phrase(rng: np.random.Generator, length: int) -> str:
    """About ``length`` characters of receipt-like text."""
    parts: list[str] = []
    while sum(map(len, parts)) + len(parts) < length:
        amount = f"{rng.integers(0, 200)}.{rng.integers(0, 100):02d}"
        parts.append(amount if rng.random() < 0.4 else WORDS[rng.integers(len(WORDS))])
    return " ".join(parts)[: max(length, 1)]


def line_image(rng: np.random.Generator, width: int, font: ImageFont.FreeTypeFont) -> NDArray[np.uint8]:
    """uint8[1, 1, 48, width]: text drawn at its natural size, then fitted to ``width`` as a line crop would be."""
    text = phrase(rng, max(1, round(width / 17)))
    left, _, right, _ = font.getbbox(text)
    canvas = Image.new("L", (int(right - left) + 8, HEIGHT), color=int(rng.integers(225, 256)))
    ImageDraw.Draw(canvas).text((4 - left, HEIGHT // 2), text, font=font, fill=int(rng.integers(0, 60)), anchor="lm")
    return np.asarray(canvas.resize((width, HEIGHT), Image.Resampling.BILINEAR))[None, None]


def main() -> None:
    with gzip.open(HERE / "traces" / "sroie_lines.csv.gz", "rt", newline="") as handle:
        widths = sorted({int(row["width"]) for row in csv.DictReader(handle)})
    rng = np.random.default_rng(SEED)
    font = ImageFont.load_default(size=34)
    if not isinstance(font, ImageFont.FreeTypeFont):
        raise SystemExit("Pillow was built without FreeType; install the wheel: pip install pillow")
    bank = {f"x/{width:05d}": line_image(rng, width, font) for width in widths}
    target = HERE / "data" / "lines.npz"
    target.parent.mkdir(exist_ok=True)
    np.savez_compressed(target, **bank)
    print(f"{len(bank)} line images, {widths[0]} to {widths[-1]} px wide -> {target.relative_to(HERE)}")


if __name__ == "__main__":
    main()
