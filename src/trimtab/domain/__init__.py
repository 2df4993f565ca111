"""NOUNS: frozen structs, columns and Protocols. No I/O; imports nothing else of trimtab."""
