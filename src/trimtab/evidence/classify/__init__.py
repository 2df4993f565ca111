"""PURE: from a run to the class that is proven, or to "insufficient evidence"."""
