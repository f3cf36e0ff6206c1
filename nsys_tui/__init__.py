"""Nsight Systems reports in the terminal; this module holds the version and imports nothing."""

__version__ = "0.1.0"
