"""One module for each section of the page: Book -> Section, or None where the packet has nothing to show."""
