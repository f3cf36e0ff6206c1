"""Folded stacks: how they are folded, which frames count, and how they can be viewed."""
