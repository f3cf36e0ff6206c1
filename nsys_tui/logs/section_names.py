"""The sections that logs have, by name: for a command line that has not read any yet."""

from typing import Final

SECTIONS: Final = (
    "files",
    "per-op",
    "histogram",
    "aggregate",
    "traffic",
    "steps",
    "throughput",
    "ranks",
    "gpus",
    "communicators",
    "tuning",
    "topology",
    "rings",
    "trees",
    "edges",
    "hangs",
    "progress",
    "kernels",
    "mpi",
    "environment",
    "warnings",
    "calls",
    "api",
    "api-calls",
)
"""All, in reading order."""
SUMMARY: Final = (
    "files",
    "steps",
    "throughput",
    "per-op",
    "histogram",
    "aggregate",
    "gpus",
    "tuning",
    "topology",
    "hangs",
    "warnings",
    "kernels",
    "mpi",
    "api",
)
"""Those that are printed when none is named."""
