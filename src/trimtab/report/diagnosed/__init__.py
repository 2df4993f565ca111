"""The parts of the page of a diagnosis: one module for each kind of file, and what all of them share."""
