"""The statistical reports under nsys's names: a family per file, found through ``reports``."""
