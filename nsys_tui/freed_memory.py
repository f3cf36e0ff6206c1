"""What the C library does with freed memory: kept for the next array, given back by one call.

By default every array above a few MB is a mapping of its own that the kernel fills with zeros page
by page, and unmaps when it is freed: a quarter of the CPU time of ``overview`` on 5 M kernels
(12.0 s, 8.7 s with freed memory kept; the peak is the same). What is kept shrank from 1290 MB to
488 MB by one call after such a report was loaded and summed up.
"""

from __future__ import annotations

import ctypes
from functools import cache

_MAPPED_FROM = 256 << 20
_KEPT_UP_TO = 512 << 20
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Numbers of ``mallopt(3)``."""


@cache
def _c_library() -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL("libc.so.6")
    except OSError:
        return None


def keep_freed_memory() -> None:
    """Lets arrays take the memory of freed ones; for programs of ours, not for who imports us."""
    if (library := _c_library()) is not None:
        library.mallopt(_MMAP_THRESHOLD, _MAPPED_FROM)
        library.mallopt(_TRIM_THRESHOLD, _KEPT_UP_TO)


def give_back_freed_memory() -> None:
    """Gives freed memory back where the C library can; call it from a worker."""
    if (library := _c_library()) is not None:
        library.malloc_trim(0)
