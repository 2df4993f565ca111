"""SHELL: studies, tables and packets on disk."""
