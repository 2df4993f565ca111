"""Two machines that make runs: this one, and one beside it."""

from __future__ import annotations

from msgspec.structs import replace

from parts import envelope
from trimtab.store.codec import digest

HOME = envelope(host="home")
BESIDE = replace(HOME, host="beside")
HERE, THERE = digest(HOME), digest(BESIDE)
