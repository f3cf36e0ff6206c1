"""The NCCL log of the run: what NCCL 2.27 prints with NCCL_DEBUG=INFO and all subsystems."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from nsys_tui.demo.events import Collective, RankInfo, Trace

HOST: Final = "demo-node"
_COMMUNICATOR_ID: Final = 0x9E3779B97F4A7C15


def write_logs(path: Path, trace: Trace) -> list[Path]:
    """Writes one log per rank into a directory, or all ranks into one file.

    Args:
        path: an existing directory or a path without suffix (made as one), else a file.
        trace: the run.

    Returns:
        The files written.
    """
    lines = sorted(
        (line for info in trace.ranks for line in rank_lines(trace, info)), key=lambda x: x[0]
    )
    if path.suffix and not path.is_dir():
        path.write_text("".join(text for _, _, text in lines))
        return [path]
    path.mkdir(parents=True, exist_ok=True)
    written = []
    for info in trace.ranks:
        file = path / f"nccl.{HOST}.{info.pid}.log"
        file.write_text("".join(text for _, rank, text in lines if rank == info.rank))
        written.append(file)
    return written


def rank_lines(trace: Trace, info: RankInfo) -> list[tuple[int, int, str]]:
    """The lines of one rank as (time, rank, text)."""
    world = len(trace.ranks)
    comm = _communicator(info)
    bus = f"{0x17 + 0x11 * info.gpu:x}000"
    who = f"comm {comm} rank {info.rank} nranks {world} cudaDev 0 nvmlDev {info.gpu} busId {bus}"
    ranks = " ".join(str(rank) for rank in range(world))
    before, after = (info.rank - 1) % world, (info.rank + 1) % world
    setup = [
        "NCCL version 2.27.5+cuda12.9",
        "NCCL_DEBUG set by environment to INFO.",
        "NET/Socket : Using [0]eth0:10.0.0.5<0>",
        "Using network Socket",
        f"ncclCommInitRank {who} commId 0x{_COMMUNICATOR_ID:x} - Init START",
        f"comm {comm} rank {info.rank} nRanks {world} nNodes 1 localRanks {world}"
        f" localRank {info.rank} MNNVL 0",
        *(f"Channel {channel:02d}/02 : {ranks}" for channel in range(2) if info.rank == 0),
        f"Ring 00 : {before} -> {info.rank} -> {after}",
        f"Ring 01 : {before} -> {info.rank} -> {after}",
        f"Channel 00/0 : {info.rank}[{info.rank}] -> {after}[{after}] via P2P/IPC",
        f"Channel 01/0 : {info.rank}[{info.rank}] -> {after}[{after}] via P2P/IPC",
        "Connected all rings, use ring PXN 0 GDR 1",
        "2 coll channels, 2 collnet channels, 0 nvls channels, 2 p2p channels,"
        " 2 p2p channels per peer",
        f"ncclCommInitRank {who} commId 0x{_COMMUNICATOR_ID:x} - Init COMPLETE",
    ]
    calls = [part for part in trace.collectives if part.rank == info.rank]
    first = min((part.call_start for part in calls), default=0)
    lines = [
        (first - 1000 + number, info.rank, _line(info.pid, info.pid, text))
        for number, text in enumerate(setup)
    ]
    for part in calls:
        lines.extend(
            (part.call_start, info.rank, _line(info.pid, part.tid, text))
            for text in _collective(part, info, world)
        )
    end = trace.duration
    lines.append((end, info.rank, _line(info.pid, info.pid, f"{who} - Destroy COMPLETE")))
    return lines


def _collective(part: Collective, info: RankInfo, world: int) -> list[str]:
    buffer = 0x7F30_4000_0000 + 0x1000_0000 * info.rank
    stream = 0x5581_0000_0000 + 0x10 * info.streams["nccl stream"]
    last = 1 if part.bytes > 4096 else 0
    proto = "SIMPLE" if part.bytes > 1 << 20 else "LL"
    return [
        f"{part.op}: opCount {part.op_count:x} sendbuff 0x{buffer:x} recvbuff 0x{buffer:x}"
        f" count {part.count} datatype {part.datatype} op {part.reduction} root 0"
        f" comm {_communicator(info)} [nranks={world}] stream 0x{stream:x}",
        f"{part.op}: {part.bytes} Bytes -> Algo RING proto {proto} channel{{Lo..Hi}}={{0..{last}}}",
    ]


def _communicator(info: RankInfo) -> str:
    return f"0x{0x5581_2000_0000 + 0x40_0000 * info.rank:x}"


def _line(pid: int, tid: int, text: str) -> str:
    return f"{HOST}:{pid}:{tid} [0] NCCL INFO {text}\n"
