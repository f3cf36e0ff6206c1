"""Figures from a report: pure functions, no I/O, no clock; the same for screen, pipe and CI."""
