"""What nsys is asked for: its options, presets, and why some will not do what a user hopes."""
