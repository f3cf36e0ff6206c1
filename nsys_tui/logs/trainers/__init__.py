"""Lines of training programs: steps, progress bars and MLPerf's events."""
