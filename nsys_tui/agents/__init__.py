"""What agents are given: read-only questions as tools, bounded and marked as data; no figures."""
