"""Expert rules: a register, a file per family, and what they found ranked as findings."""
