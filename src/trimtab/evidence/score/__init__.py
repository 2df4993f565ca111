"""PURE: mapping accuracy, promise accuracy, and what changing the mapping at run time would win."""
