"""SHELL: worker processes and the wall-clock driver (``replay``), profiles, answers, the probe and the pace kernel;
servers that are not ours (``remote``)."""
