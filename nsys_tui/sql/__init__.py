"""Questions of one's own: SQL over the file of a report, which nothing in a query can change."""
