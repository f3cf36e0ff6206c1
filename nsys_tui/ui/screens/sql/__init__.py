"""The SQL screen: questions of one's own."""
