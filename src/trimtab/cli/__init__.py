"""The verbs; the only place that prints errors and exits."""
