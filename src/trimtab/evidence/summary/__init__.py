"""PURE: what a summary of another tool proves: percentiles and means that are added up already."""
