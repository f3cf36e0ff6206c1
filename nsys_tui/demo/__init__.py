"""Writes the demo report: a made-up training run with known problems, in nsys's own schema.

Nothing here reads a report or knows the rest of the program, so that its figures can check it.
"""
