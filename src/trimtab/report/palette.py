"""Colour and the words for causes. Hue = cause, ink = plan, glyph = status.

The cause hues were optimised in OKLab under simulated deutan, protan and tritan sight (smallest distance 8.1 light,
6.2 dark, times 100). Ten hues are the limit of what can be told apart, so every mark is also labelled.
"""

from __future__ import annotations

CAUSES: dict[str, str] = {
    "useful": "Useful work",
    "capacity": "Capacity",
    "cold": "Cold shapes",
    "padding": "Padding",
    "premium": "Premium",
    "interference": "Interference",
    "off-core": "Off core",
    "hold": "Batch hold",
    "imbalance": "Core imbalance",
    "dispatch": "Dispatch",
    "unmodelled": "Unmodelled",
    "unprofiled": "Unprofiled",
    "slip": "Loader slip",
    "completion": "Completion",
    "unavailable": "No live worker",
    "occupied": "Pace and warm-up",
    "failed": "Failed batches",
    "co-batching": "Co-batching",
}
"""Palette word -> what the reader reads. The last eight have no hue: grey, dots or outline."""

_WORDS = {
    "core-imbalance": "imbalance",
    "batch-hold": "hold",
    "batch-policy": "hold",
    "cold-shape": "cold",
    "padding-waste": "padding",
    "mapping-fallback": "premium",
    "capacity-queueing": "capacity",
    "cobatching": "co-batching",
    "oversubscription": "off-core",
}
"""Other rooms' words for a cause, with hyphens -> the palette's word."""

LIGHT: dict[str, str] = {
    "ground": "#FFFFFF",
    "ink": "#16191D",
    "text": "#2E343B",
    "muted": "#69727D",
    "static": "#8A929C",
    "band": "#ECEAE4",
    "drift": "#F7F8F9",
    "hairline": "#ECEEF1",
    "rule": "#C9CED4",
    "pass": "#1E7A5A",
    "fail": "#B3341F",
    "pass-tint": "#8CC5AD",
    "fail-tint": "#F3D1C9",
    "curve-band": "#E2E5E9",
    "useful": "#C3C9D0",
    "capacity": "#43536A",
    "cold": "#1F55CC",
    "padding": "#E9B824",
    "premium": "#7A1F99",
    "interference": "#E85A12",
    "off-core": "#E57CAD",
    "hold": "#4E976A",
    "imbalance": "#4CB0E5",
    "dispatch": "#865612",
    "unmodelled": "#69727D",
    "unprofiled": "#69727D",
    "slip": "#9AA2AB",
    "completion": "#9AA2AB",
    "unavailable": "#9AA2AB",
    "occupied": "#9AA2AB",
    "failed": "#9AA2AB",
    "co-batching": "#AEB6BF",
}
DARK: dict[str, str] = {
    "ground": "#0F1114",
    "ink": "#F4F6F8",
    "text": "#CDD3DA",
    "muted": "#8E97A2",
    "static": "#7E8792",
    "band": "#25272A",
    "drift": "#15181C",
    "hairline": "#1F2328",
    "rule": "#3A4149",
    "pass": "#57C79B",
    "fail": "#FF8A73",
    "pass-tint": "#1F6B4F",
    "fail-tint": "#4A2620",
    "curve-band": "#262B31",
    "useful": "#565F6A",
    "capacity": "#8FA3C4",
    "cold": "#5E92FF",
    "padding": "#F0D070",
    "premium": "#9440BE",
    "interference": "#F77525",
    "off-core": "#FFADB8",
    "hold": "#2E9E7A",
    "imbalance": "#9BDDFF",
    "dispatch": "#A0702E",
    "unmodelled": "#8E97A2",
    "unprofiled": "#8E97A2",
    "slip": "#6B747E",
    "completion": "#6B747E",
    "unavailable": "#6B747E",
    "occupied": "#6B747E",
    "failed": "#6B747E",
    "co-batching": "#5F6973",
}


def cause(word: str) -> str:
    """The palette's word for a cause or class that the evidence names; what it does not know stays as it is."""
    hyphened = word.replace("_", "-")
    return _WORDS.get(hyphened, hyphened)


def cause_label(word: str) -> str:
    """What a reader calls the cause."""
    return CAUSES.get(cause(word), word.replace("_", " ").replace("-", " ").capitalize())


def cause_look(word: str) -> str:
    """The palette class of a cause; one without a hue is drawn as an outline, never in another's colour."""
    known = cause(word)
    return f"cause-{known}" if known in CAUSES else "cause-unprofiled"


def colour(name: str) -> str:
    """A palette colour as charts use it: a CSS variable, so that themes and print need no second drawing."""
    if name not in LIGHT:
        raise KeyError(f"no colour named {name!r} in the palette")
    return f"var(--{name})"


def stylesheet() -> str:
    """The palette as CSS: variables for both themes, one class and one hatch colour a cause. Print is always light."""
    dark = _variables(DARK)
    rules = [
        f":root{{{_variables(LIGHT)}color-scheme:light}}",
        f"@media screen and (prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark}color-scheme:dark}}}}",
        f"@media screen{{:root[data-theme=dark]{{{dark}color-scheme:dark}}}}",
    ]
    for name in CAUSES:
        rules.append(f".cause-{name}{{fill:var(--{name});background:var(--{name})}}")
        rules.append(f".cause-{name}.inherited{{fill:url(#hatch-{name})}}")
        rules.append(f".hatch-{name}{{stroke:var(--{name})}}.tint-{name}{{fill:var(--{name})}}")
        rules.append(f"main:has([data-cause={name}]:hover) [data-cause]:not([data-cause={name}]){{opacity:.22}}")
    return "\n".join(rules)


def _variables(colours: dict[str, str]) -> str:
    return "".join(f"--{name}:{value};" for name, value in colours.items())
