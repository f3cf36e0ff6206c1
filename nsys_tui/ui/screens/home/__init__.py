"""Home: what can be opened, where no report was named."""
