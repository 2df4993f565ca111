"""PURE: what was measured, and what that proves.

``stats``, the tail account (``attribute``), the ``score``, the class that explains a tail (``classify``); files of
other tools (``imported``, ``timeline``, ``summary``); and one module for each further question.
"""
