"""What a report is: arrays and small dataclasses. Nothing here reads a file."""
