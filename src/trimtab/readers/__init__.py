"""SHELL: one file per foreign format, listed in ``formats``; what several of them share begins with an underscore."""
