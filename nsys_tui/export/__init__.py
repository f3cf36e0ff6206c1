"""Results in forms that other programs read: folded stacks, SVG, Perfetto, CSV, Parquet."""
