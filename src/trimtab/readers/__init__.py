"""SHELL: one file per foreign format."""
