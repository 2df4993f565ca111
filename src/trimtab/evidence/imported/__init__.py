"""PURE: the diagnosis of a table of requests that another system recorded."""
