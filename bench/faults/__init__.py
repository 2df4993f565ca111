"""The fault bench: real runtimes, shapes and arrivals, one injected fault at a time, and the class that is named."""
