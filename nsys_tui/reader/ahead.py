"""Whether a second thread decodes while the first one converts: who reads a report decides."""

from contextvars import ContextVar
from typing import Final

read_ahead: Final = ContextVar("read_ahead", default=True)
"""Off where every processor has a report of its own, or one is wanted for drawing."""
