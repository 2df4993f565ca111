"""WIRING: one function a stage, and the resumable loop around them."""
