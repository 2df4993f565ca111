"""What a timeline proves: what a device waited for, what was compiled, which shapes ran, and in which precision."""
