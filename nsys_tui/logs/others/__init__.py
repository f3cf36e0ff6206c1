"""Logs of other programs: benchmarks, MPI, PyTorch's watchdog and inference servers."""
