"""The timeline as data: tracks, what is on them, and how to step, search and sum over them."""
