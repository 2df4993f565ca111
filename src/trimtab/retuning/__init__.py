"""PURE: moves, search, validation and the decision."""
