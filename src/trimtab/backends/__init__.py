"""SHELL: one file per runtime; a backend only compiles, runs and inspects."""
