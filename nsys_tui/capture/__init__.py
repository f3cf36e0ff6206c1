"""Starting nsys somewhere, watching it, and bringing the report home.

Nothing in this room draws, and nothing in it opens a report: it hands over paths and records.
"""
