"""trimtab: how well a compiled network's mapping fits live shapes, and the smallest change that helps."""

__version__ = "0.1.0"
