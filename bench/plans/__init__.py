"""The plan bench: every runtime, fusion level and precision on the examples' networks, in one table."""
