"""Training steps and other repeats: found, timed, and taken apart by phase."""
