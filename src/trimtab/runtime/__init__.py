"""SHELL: pinned workers, the wall-clock driver, profiling, probing and the pace kernel."""
