"""Communicators, ranks, GPUs, topology and tuning."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from loglines import body, info, init, read

from nsys_tui.logs.nccl.topology import Edge, Ring

if TYPE_CHECKING:
    from pathlib import Path


def test_ranks_come_from_the_pointer_not_from_the_bracket(tmp_path: Path) -> None:
    lines = [info(init(f"0x{rank}", rank, 2, device=rank), tid=rank) for rank in (0, 1)]
    lines += [info(body(comm=f"0x{rank}", nranks=2), dev=1) for rank in (0, 1, 1)]
    result = read(tmp_path, lines)
    assert result.calls.select().rank.tolist() == [0, 1, 1]
    assert [result.gpus[gpu].label for gpu in result.calls.select().gpu.tolist()] == [
        "node01 GPU 0 (17000)",
        "node01 GPU 1 (27000)",
        "node01 GPU 1 (27000)",
    ]
    assert [group.members for group in result.groups] == [(0, 1)]
    assert result.groups[0].certain


def test_a_pointer_used_again_is_another_communicator(tmp_path: Path) -> None:
    lines = [
        info(init("0xa", 0, 4, phase="START")),
        info(init("0xa", 0, 4)),
        info(body(comm="0xa", nranks=4)),
        info("comm 0xa rank 0 nranks 4 cudaDev 0 busId 17000 - Destroy COMPLETE"),
        info(init("0xa", 1, 2, comm_id="0xdef")),
        info(body(comm="0xa", nranks=2)),
        info(body(comm="0xa", nranks=2)),
    ]
    result = read(tmp_path, lines)
    assert [(c.rank, c.nranks, c.calls, c.ended) for c in result.communicators] == [
        (0, 4, 1, "destroy"),
        (1, 2, 2, ""),
    ]
    assert result.calls.select().rank.tolist() == [0, 1, 1]
    assert len(result.groups) == 2


def test_splits_without_an_id_join_by_parent_and_color(tmp_path: Path) -> None:
    lines = []
    for rank in range(4):
        lines.append(info(init(f"0x{rank}", rank, 4), pid=rank))
        split = (
            f"ncclCommSplit comm 0x{rank}0 rank {rank // 2} nranks 2 cudaDev 0 nvmlDev 0 "
            f"busId 17000 parent 0x{rank} splitCount 1 color {rank % 2} key {rank} - Init START"
        )
        lines.append(info(split, pid=rank))
    result = read(tmp_path, lines)
    members = {
        tuple(result.processes[result.communicators[m].process].pid for m in group.members)
        for group in result.groups
    }
    assert members == {(0, 1, 2, 3), (0, 2), (1, 3)}
    assert all(group.certain for group in result.groups)


def test_init_timings_give_a_rank_where_nothing_else_does(tmp_path: Path) -> None:
    lines = [
        info("Init timings - ncclCommInitRank: rank 5 nranks 8 total 1.58 (kernels 0.26, topo 0)"),
        info(body(nranks=8)),
    ]
    result = read(tmp_path, lines)
    assert result.calls.select().rank.tolist() == [5]
    assert result.processes[0].rank == 5
    assert result.timings[0].parts["kernels"] == "0.26"


def test_old_init_line_and_nodes_line(tmp_path: Path) -> None:
    lines = [
        info("comm 0x56 rank 0 nranks 1 cudaDev 0 busId 170 - Init COMPLETE"),
        info("comm 0x57 rank 8 nRanks 16 nNodes 2 localRanks 8 localRank 0 MNNVL 0"),
        info("[Rank 3] ncclCommInitRank comm 0x58 rank 3 nranks 4 cudaDev 3 busId 1 - Init START"),
    ]
    found = read(tmp_path, lines).communicators
    assert [(c.pointer, c.rank, c.nranks, c.nodes, c.local_ranks) for c in found] == [
        ("0x56", 0, 1, -1, -1),
        ("0x57", 8, 16, 2, 8),
        ("0x58", 3, 4, -1, -1),
    ]


def test_without_init_lines_ranks_join_by_size_and_order(tmp_path: Path) -> None:
    lines = []
    for pid in (1, 2):
        lines += [info(body(comm=f"0x{pid}a", nranks=2), pid=pid)]
        lines += [info(body(comm=f"0x{pid}b", nranks=2, op_count=9), pid=pid)]
    result = read(tmp_path, lines)
    assert [group.members for group in result.groups] == [(0, 2), (1, 3)]
    assert not any(group.certain for group in result.groups)
    assert [gpu.label for gpu in result.gpus] == ["≈ node01 GPU 0", "≈ node01 GPU 0"]


RINGS = {
    "2.10: lines before the Init line": (
        ["Ring 00 : 1 -> 0 -> 1", "Channel 00/01 :    0   1", "Trees [0] 1/-1/-1->0->-1"],
        "after",
    ),
    "2.18: lines between START and COMPLETE": (
        ["Ring 00 : 1 -> 0 -> 1", "Channel 00/01 : 0 1", "Tree 0 : -1 -> 0 -> 1/-1/-1"],
        "between",
    ),
    "RCCL: every line names its communicator": (
        [
            "Channel 00/01 :    0   1 comm 0xa nRanks 02 busId 17000",
            "Ring 00 : 1 -> 0 -> 1 comm 0xa nRanks 02 busId 17000",
            "Trees [0] 1/-1/-1->0->-1 comm 0xa nRanks 02 busId 17000",
        ],
        "far",
    ),
}


@pytest.mark.parametrize("name", RINGS)
def test_graph_lines_find_their_communicator(tmp_path: Path, name: str) -> None:
    graph, where = RINGS[name]
    start, complete = init("0xa", 0, 2, phase="START"), init("0xa", 0, 2)
    other = [init("0xb", 0, 2, comm_id="0xother", phase=phase) for phase in ("START", "COMPLETE")]
    texts = {
        "after": [other[1], *graph, complete],
        "between": [*other, start, *graph, complete],
        "far": [start, complete, *other, *graph],
    }[where]
    result = read(tmp_path, [info(text) for text in texts])
    (found,) = result.topology.groups
    assert result.groups[found.group].comm_id == "0xabc"
    assert found.rings == (Ring(0, (0, 1), True),)
    (tree,) = found.trees
    assert (tree.rank, tree.up, tree.down) == (0, -1, (1,))


def test_rings_from_the_ranks_own_lines(tmp_path: Path) -> None:
    lines = [info(init(f"0x{r}", r, 4, phase="START"), pid=r) for r in range(4)]
    lines += [info(f"Ring 00 : {(r - 1) % 4} -> {r} -> {(r + 1) % 4}", pid=r) for r in range(4)]
    lines += [info(f"Ring 01 : {(r + 1) % 4} -> {r} -> {(r - 1) % 4}", pid=r) for r in (2, 1)]
    (found,) = read(tmp_path, lines).topology.groups
    assert found.rings == (Ring(0, (0, 1, 2, 3), True), Ring(1, (2, 1, 0), False))


EDGES = {
    "Channel 00 : 0[1000] -> 1[2000] via P2P/IPC": Edge(0, 0, 1, "", "P2P/IPC"),
    "Channel 03/0 : 1[1] -> 0[0] via P2P/direct pointer/read": Edge(
        3, 1, 0, "", "P2P/direct pointer/read"
    ),
    "Channel 00/0 : 3[3] -> 8[0] [send] via NET/IB/0/GDRDMA": Edge(
        0, 3, 8, "send", "NET/IB/0/GDRDMA"
    ),
    "Channel 02/1 : 1[b000] -> 8[0] [receive] via NET/Socket/0/Shared": Edge(
        2, 1, 8, "receive", "NET/Socket/0/Shared"
    ),
    "Channel 00 : 0[1000] -> 1[2000] via direct shared memory": Edge(
        0, 0, 1, "", "direct shared memory"
    ),
    "Channel 01/0 : 0[0] -> 1[1] via SHM/direct/direct comm 0xa nRanks 02": Edge(
        1, 0, 1, "", "SHM/direct/direct"
    ),
}


@pytest.mark.parametrize("line", EDGES)
def test_transports(tmp_path: Path, line: str) -> None:
    result = read(tmp_path, [info(init("0xa", 0, 2, phase="START")), info(line)])
    (found,) = result.topology.groups
    assert found.edges == (EDGES[line],)
    assert found.edges[0].gpu_direct == ("GDRDMA" in line)


def test_transport_kinds(tmp_path: Path) -> None:
    lines = [info(init("0xa", 0, 2, phase="START")), *(info(line) for line in EDGES)]
    (found,) = read(tmp_path, lines).topology.groups
    assert found.transports() == {
        "P2P/IPC": 1,
        "P2P/direct pointer": 1,
        "NET/IB": 1,
        "NET/Socket": 1,
        "SHM": 2,
    }


def test_the_last_tree_of_a_cut_line_is_left_out(tmp_path: Path) -> None:
    start = info(init("0xa", 8, 16, phase="START"))
    trees = info("Trees" + "".join(f" [{c}] 9/-1/-1->8->15" for c in range(100)))
    (found,) = read(tmp_path, [start, trees[:1023]]).topology.groups
    assert {(tree.rank, tree.up, tree.down) for tree in found.trees} == {(8, 15, (9,))}
    assert 40 < len(found.trees) < 60


def test_network_nvls_channels_and_environment(tmp_path: Path) -> None:
    lines = [
        init("0xa", 0, 2, phase="START"),
        "Using network IB",
        "NET/IB : GPU Direct RDMA Enabled for HCA 0 'mlx5_0'",
        "NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.0.0.1<0>",
        "NVLS multicast support is not available on dev 1",
        "NVLS comm 0xa headRank 0 nHeads 4 buffSize 1 memSize 2",
        "NVLS Head  0:  0  8",
        "NVLS Head  1:  1  9",
        "16 coll channels, 4 collnet channels, 8 nvls channels, 16 p2p channels, "
        "2 p2p channels per peer",
        "NCCL_SOCKET_IFNAME set by environment to eth0.",
        "NCCL_P2P_LEVEL set by environment to NVL",
    ]
    result = read(tmp_path, [info(line) for line in lines])
    assert [entry[:2] for entry in result.topology.network] == [
        ("GPU Direct RDMA", "enabled for HCA 0 'mlx5_0'"),
        ("NET/IB", "Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.0.0.1<0>"),
        ("NVLS multicast", "not available on device 1"),
        ("network", "IB"),
    ]
    (found,) = result.topology.groups
    assert found.nvls_heads == 4
    assert found.nvls_head_ranks == ((0, (0, 8)), (1, (1, 9)))
    assert dict(found.channels) == {
        "coll": 16,
        "collnet": 4,
        "nvls": 8,
        "p2p": 16,
        "p2p_per_peer": 2,
    }
    assert [entry[:2] for entry in result.environment] == [
        ("NCCL_P2P_LEVEL", "NVL"),
        ("NCCL_SOCKET_IFNAME", "eth0"),
    ]


@pytest.mark.parametrize(
    ("version", "line", "expected"),
    [
        ("2.12.1", "37756928 Bytes -> Algo 2 proto 2 time 2860.2", ("", "COLLNET", "SIMPLE")),
        ("2.19.3", "64 Bytes -> Algo 2 proto 0 time 9", ("", "COLLNET_DIRECT", "LL")),
        ("2.23.4", "AllGather: 64 Bytes -> Algo 1 proto 1 time 9", ("AllGather", "RING", "LL128")),
        (
            "2.27.5",
            "AllReduce: 4 Bytes -> Algo TREE proto LL channel{Lo..Hi}={0..23}",
            ("AllReduce", "TREE", "LL"),
        ),
        (
            "2.30.1",
            "AllGather [Copy Engine]: 64 Bytes -> cudaMemcpy",
            ("AllGather", "cudaMemcpy", ""),
        ),
    ],
)
def test_tuning(tmp_path: Path, version: str, line: str, expected: tuple[str, str, str]) -> None:
    result = read(tmp_path, [f"NCCL version {version}+cuda12.0", info(line), info(line)])
    (row,) = result.tuning
    assert (row.op, row.algorithm, row.protocol) == expected
    assert row.calls == result.files[0].tuning_lines == 2


def test_rccl_kernel_trace_gives_durations(tmp_path: Path) -> None:
    lines = [
        "## [170260.347000] [07:00] 000001 KL HWID 42300700 ncclDevFunc_AllReduce nw 4 nRanks 8",
        "## [170260.347500] [06:00] 000001 KL HWID 42300700 ncclDevFunc_AllReduce nw 4 nRanks 8",
        "## [170260.348250] [07:00] 000001 KE busId bf000 nRanks 8",
        "## [170260.349000] [07:00] 000002 KL HWID 42300700 ncclDevFunc_AllReduce nw 4 nRanks 8",
    ]
    (row,) = read(tmp_path, [info(line) for line in lines]).kernels
    assert (row.kernel, row.count, row.min_ns, row.max_ns, row.unfinished) == (
        "ncclDevFunc_AllReduce",
        1,
        1_250_000,
        1_250_000,
        2,
    )


PURPOSES = {
    "≈ tensor parallel": [body(count=4096 * 8192, datatype=6)] * 12,
    "≈ data parallel": [body("ReduceScatter", count=10**7), body("AllGather", count=10**7)] * 6,
    "≈ overflow check": [body(count=1, reduction=2)] * 12,
    "≈ pipeline or expert parallel": [body("Send", nranks=2), body("Recv", nranks=2)] * 6,
    "≈ pipeline parallel": [body("Send", root=1, nranks=8), body("Recv", root=7, nranks=8)] * 6,
    "≈ expert parallel": [
        body(op, root=peer, nranks=8) for peer in range(8) for op in ("Send", "Recv")
    ],
    "": [body("Broadcast", count=8)] * 12,
}


@pytest.mark.parametrize("expected", PURPOSES)
def test_guess_at_the_purpose_of_a_communicator(tmp_path: Path, expected: str) -> None:
    lines = [info(text) for text in PURPOSES[expected]]
    assert read(tmp_path, lines).purposes == [expected]
    assert read(tmp_path, lines[:4]).purposes == [""]
