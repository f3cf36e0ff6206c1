"""Types of arrays by what they hold, for all rooms."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Bool: TypeAlias = NDArray[np.bool_]
UInt8: TypeAlias = NDArray[np.uint8]
Int16: TypeAlias = NDArray[np.int16]
Int32: TypeAlias = NDArray[np.int32]
Int64: TypeAlias = NDArray[np.int64]
Float64: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.integer]
"""Of any width."""
Indices: TypeAlias = NDArray[np.intp]
"""Places in other arrays, such as rows of events."""
