"""VIEWS: a packet as a page and as text; a number that is not in the packet cannot be printed."""
