"""Analyses as text for a pipe, a log or a terminal without the app; stdout is data."""
