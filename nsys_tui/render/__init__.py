"""Arrays in, cells (characters and style codes) out: everything drawn, without a terminal."""
