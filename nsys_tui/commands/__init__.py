"""One file per verb of the command line; only the one that runs is imported."""
