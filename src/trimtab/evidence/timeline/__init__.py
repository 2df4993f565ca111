"""PURE: what a timeline proves: what a device waited for, what was compiled, which shapes ran, in which precision."""
