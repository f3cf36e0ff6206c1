"""How operations are classified, so that all screens and commands agree what communication is."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import IntEnum
from functools import lru_cache
from typing import Final


class OpKind(IntEnum):
    """Table that a GPU operation comes from."""

    KERNEL = 0
    MEMCPY = 1
    MEMSET = 2
    GRAPH = 3
    OPENGL = 4
    VULKAN = 5
    DX12 = 6


MEMORY_KINDS: Final = (
    "Pageable",
    "Pinned",
    "Device",
    "Array",
    "Managed",
    "Device Static",
    "Managed Static",
    "Unknown",
)
"""What the numbers of the memory that copies and memsets are of mean."""


class Category(IntEnum):
    """What time is spent on; the lower number wins a tie when a cell is coloured."""

    COMPUTE = 0
    COMM = 1
    MEMORY = 2
    GRAPH = 3
    SYNC = 4
    API = 5
    OSRT = 6
    NVTX = 7


COMM_PREFIXES: Final = r"(?i)^(void )?(nccl|rccl|msccl|nvshmem)"
"""Libraries whose kernels are communication, by the start of the kernel's name."""

COMM_IN_FRAMEWORK: Final = (
    r"cross_device_reduce",
    r"\b(inter|intra)node(_ll)?::",
    r"hybrid_ep::",
    r"userbuffers_",
    r"all_?reduce_?fusion",
    r"all_?reduce_?(one|two)_?shot",
    r"(one|two)_?shot_?all_?reduce",
    r"a2a_?(dispatch|combine)",
    r"multimem_all_(reduce|gather)",
    r"lamport_(style|allreduce)",
    r"mscclpp::",
)
"""Collectives that frameworks implement as kernels of their own (vLLM, DeepEP, Transformer Engine,
TensorRT-LLM, FlashInfer, PyTorch symmetric memory), searched anywhere in the demangled name."""


@lru_cache(maxsize=8)
def _comm_pattern(extra: tuple[str, ...]) -> re.Pattern[str]:
    alternatives = "|".join(f"(?:{part})" for part in (*COMM_IN_FRAMEWORK, *extra))
    return re.compile(rf"{COMM_PREFIXES}|(?i:{alternatives})")


def is_communication(names: Iterable[str], extra: tuple[str, ...] = ()) -> bool:
    """Tells whether a kernel is communication by any of its names.

    Args:
        names: short and demangled name of one kernel.
        extra: the user's own regular expressions, searched anywhere in a name.

    Raises:
        re.error: a pattern of the user's cannot be compiled.
    """
    pattern = _comm_pattern(extra)
    return any(pattern.search(name) for name in names)
