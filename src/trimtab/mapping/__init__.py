"""PURE: shapes to entries (``route``, ``pad``), profiles to predicted times (``cost``, ``service``), and entries fitted
to the shapes of traffic (``buckets``, ``boxes``, ``formulas``, ``priced``)."""
