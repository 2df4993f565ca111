"""VIEWS: a packet as a page and as text; a number that is not in the packet cannot be printed.

``view.view(record)`` makes the page, ``html.render(page)`` and ``text.render(page)`` print it.
"""
