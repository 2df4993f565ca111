"""PURE: the tail account: every latency over causes, own and inherited, and what owns the p95 and p99 sets."""
