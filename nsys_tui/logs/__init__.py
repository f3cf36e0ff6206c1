"""Text logs of a training run: NCCL_DEBUG and RCCL logs, trainer step lines, MPI logger files.

``read_logs`` is the one door; everything behind it is columnar and frozen, so that a million calls
fit and a screen, the command line and a join with a report's kernels share one result.
"""

from nsys_tui.logs.parse import read_logs
from nsys_tui.logs.result import LogResult

__all__ = ["LogResult", "read_logs"]
