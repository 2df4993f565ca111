"""PURE: statistics, the tail account, the score and the classification."""
