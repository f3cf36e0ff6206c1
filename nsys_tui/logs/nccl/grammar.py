"""The words of NCCL logs, 2.4 to 2.30, and of RCCL: headers, COLL bodies, type and algorithm codes.

Everything works on bytes, because a log may hold torn multi-byte characters, and searches anywhere
in a line, because launchers, pods and trainers put their own text in front.
"""

from __future__ import annotations

import re
from typing import Final

DATATYPES: Final = (
    ("int8", 1),
    ("uint8", 1),
    ("int32", 4),
    ("uint32", 4),
    ("int64", 8),
    ("uint64", 8),
    ("fp16", 2),
    ("fp32", 4),
    ("fp64", 8),
    ("bf16", 2),
    ("fp8_e4m3", 1),
    ("fp8_e5m2", 1),
)
"""ncclDataType_t in order: name and bytes of one element."""

REDUCTIONS: Final = ("sum", "prod", "max", "min", "avg")
"""ncclRedOp_t in order; 5 and up are made by the user."""

REDUCING: Final = frozenset({"AllReduce", "Reduce", "ReduceScatter"})
POINT_TO_POINT: Final = frozenset({"Send", "Recv", "PutSignal", "Signal", "WaitSignal"})
ALL_TO_ALL: Final = frozenset({"AlltoAll", "AllToAll", "AllToAllv"})
OPERATIONS: Final = (
    "AllReduce",
    "Broadcast",
    "Reduce",
    "AllGather",
    "ReduceScatter",
    "Send",
    "Recv",
    "AlltoAll",
    "AllToAll",
    "AllToAllv",
    "Gather",
    "Scatter",
    "PutSignal",
    "Signal",
    "WaitSignal",
)

ALGORITHMS: Final = ("TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT")
PROTOCOLS: Final = ("LL", "LL128", "SIMPLE")

HEADER: Final = re.compile(
    rb"(?<![\w.\-])(?P<host>[\w.\-]{1,255}):(?P<pid>\d{1,10}):(?P<tid>\d{1,10}) "
    rb"(?:\[(?P<dev>-?\d{1,9})\] )?"
    rb"(?:(?P<micros>\d{10,}) |\d+\.\d+ )?"
    rb"(?:[\w./<>~+\-]+:\d+ (?:\([^)]{0,200}\) )?)?"
    rb"NCCL (?P<level>INFO|WARN|CALL|TRACE|ABORT|VERSION) ?"
)
"""``host:pid:tid [dev] … NCCL LEVEL``, with RCCL's epoch microseconds, TRACE's relative time and
WARN's function or file and line between; the header of an inner, torn line matches too. A host
starts where its word starts, which keeps the search linear in a line of junk."""

ANCHOR: Final = b": opCount "
"""What every COLL line has and nothing else. The counter, ``sendbuff``, a pointer, ``recvbuff``,
a pointer, ``count``, a number and ``TAIL`` follow; RCCL has ``acc`` and a pointer before count."""

TAIL: Final = re.compile(
    rb"datatype (\d{1,9}) op (\d{1,9}) root (-?\d{1,9}) "
    rb"comm (0x[0-9a-f]+|\(nil\)) (?:\[nranks=(\d{1,9})\] )?stream (0x[0-9a-f]+|\(nil\))"
)
"""Rest of a whole COLL body."""
LONGEST_COUNT: Final = 18
"""Digits of a count: times 8 bytes it stays below 2**63."""
RCCL_SUFFIX: Final = re.compile(rb" task \d+ globalrank (\d{1,9})\s*$")
OP_WORD: Final = re.compile(rb"([A-Za-z]\w*)$")
ANSI: Final = re.compile(rb"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b[@-Z\\-_]")

STAMP: Final = re.compile(
    rb"(\d{4}-\d\d-\d\d[ T_]\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?(Z|[+-]\d\d:?\d\d)?"
)
UNDATED: Final = re.compile(rb"\d\d:\d\d:\d\d(?:[.,]\d{1,9})?|\d{9,12}\.\d{1,9}")
"""Times that name no day, or none that we would trust."""
ONLY_A_TIME: Final = re.compile(
    rb"\s*(?:[\[(]?(?:" + STAMP.pattern + rb")[\])]?:? |(?:" + UNDATED.pattern + rb")\s*)?"
)
"""What may stand before the host of a line that nothing was glued to."""
RANK_LABELS: Final = (
    re.compile(rb"^\s*(\d{1,7}):(?!\d)"),
    re.compile(rb"\[\d+,(\d{1,7})\]<std"),
    re.compile(rb"\[rank(\d{1,7})\]"),
)
"""Ranks that launchers put before a line: ``srun -l``, ``mpirun --tag-output`` and torchrun. Its
``[default0]:`` numbers the processes of one node, so it is no rank."""

FRONT: Final = re.compile(
    rb"(?: *\d{1,7}: ?|\[\d+,\d{1,7}\]<std\w+>:? ?|\[(?:rank|default)?\d{1,7}\]: ?"
    rb"|\[pod/[^\]\s]+\] |\(\w+ pid=\d+[^)]{0,99}\) |[\[(]?"
    + STAMP.pattern
    + rb"[\])]?:? |std(?:out|err) [FP] "
    rb"|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d |\d{9,12}\.\d{1,9} |[\w.-]+\[\d{1,10}\]: "
    rb"|[\w.-]*\d(?: +\||:) |[\w.-]+ (?=[\w.-]+\[\d{1,10}\]: ))*"
)
"""What launchers and collectors of logs put before a line; nothing where they do not."""

LONGEST_HEAD: Final = 4096
"""No more than this is looked at before a message."""
LONGEST_FOREIGN: Final = 1 << 15
"""No more than this of a line of another kind: verl's are of 8 KB."""

MAX_MESSAGE: Final = 1023
"""NCCL formats header and message into a buffer of 1024 bytes: a line that fills it is cut."""


def datatype_name(code: int) -> str:
    """Name of an ncclDataType_t, or ``type N`` for one that is not known."""
    return DATATYPES[code][0] if 0 <= code < len(DATATYPES) else f"type {code}"


def element_bytes(code: int) -> int | None:
    """Size of one element, or None for an unknown type."""
    return DATATYPES[code][1] if 0 <= code < len(DATATYPES) else None


def reduction_name(code: int, op: str) -> str:
    """Name of an ncclRedOp_t; empty for an operation that reduces nothing and so prints 0."""
    if op not in REDUCING:
        return ""
    return REDUCTIONS[code] if 0 <= code < len(REDUCTIONS) else f"user {code}"


def algorithm_name(word: str, version: tuple[int, int] | None) -> str:
    """Algorithm of a TUNING line, which older versions print as a number.

    Args:
        word: what stands after ``Algo``.
        version: NCCL's major and minor number; up to 2.13 the number 2 was CollNet.
    """
    if not word.isdigit():
        return word.upper() if word.upper() in ALGORITHMS else word
    if word == "2" and version is not None and version <= (2, 13):
        return "COLLNET"
    code = int(word)
    return ALGORITHMS[code] if code < len(ALGORITHMS) else f"algo {code}"


def protocol_name(word: str) -> str:
    """Protocol of a TUNING line, name or number."""
    if not word.isdigit():
        return word.upper()
    return PROTOCOLS[int(word)] if int(word) < len(PROTOCOLS) else f"proto {word}"


def opcount_text(number: int) -> str:
    """An opCount as NCCL prints it: hexadecimal, of 64 bits without a sign."""
    return f"{number & (2**64 - 1):x}"
