"""Rounds: how often both plans are replayed under each condition, and what the budget leaves for more.

The schedule fixes a number. Once those rounds are there, cells that must pass may need further ones before they can be
decided (``retuning.validate.replays_wanted``, which does not look at how the arms differ). They are granted once: the
traffic as recorded first, then the conditions in the study's order, up to MOST times the fixed number, as far as the
time left allows. The packet keeps the numbers, so that later stages and resumed runs use the same replays.
"""

from __future__ import annotations

from collections.abc import Mapping

from trimtab.loop.context import Context
from trimtab.loop.schedule import START_S
from trimtab.store.codec import read_json, write_json

FILE = "rounds.json"
MOST = 3
"""Times the fixed number of rounds."""


def of(ctx: Context, condition: str) -> int:
    """Rounds under ``condition``: those granted, else the fixed number."""
    path = ctx.packet.path(FILE)
    granted = read_json(path, dict[str, int]) if path.is_file() else {}
    return granted.get(condition, ctx.schedule.replays)


def fix(ctx: Context) -> None:
    """Back to the fixed number everywhere."""
    ctx.packet.path(FILE).unlink(missing_ok=True)


def extend(ctx: Context, wanted: Mapping[str, int], traffic_s: float) -> None:
    """Keep how many rounds each condition gets; one plan serves ``traffic_s`` seconds of traffic in a round."""
    affordable = int(ctx.left_s // (2 * (traffic_s + START_S)))
    write_json(ctx.packet.path(FILE), grant(wanted, ctx.schedule.replays, affordable))
    ctx.keep(ctx.packet.path(FILE))


def grant(wanted: Mapping[str, int], fixed: int, affordable: int) -> dict[str, int]:
    """Rounds by condition, first come, first served."""
    granted, left = {}, max(affordable, 0)
    for condition, count in wanted.items():
        more = min(count, MOST * fixed) - fixed
        granted[condition] = fixed + max(min(more, left), 0)
        left -= granted[condition] - fixed
    return granted
