"""Two sides compared: measured, aligned by name and by step, judged."""
