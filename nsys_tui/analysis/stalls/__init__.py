"""Idle GPU time: gaps, their causes, and what the host did meanwhile."""
