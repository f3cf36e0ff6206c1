"""Many reports at once: which rank each one is, and figures over all of them."""
