"""PURE: shapes to routes (route), profiles to predicted times (cost)."""
