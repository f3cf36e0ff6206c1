"""Planted faults of sends and receives are found and named; near misses of each are clean."""

from __future__ import annotations

import random
import re
from typing import TYPE_CHECKING

import pytest
from loglines import body, info, init, logs_json, read
from peer_runs import REDUCE, Call, Run, log_of, pipeline, recv, ring, send, told

from nsys_tui.logs.nccl import peer_findings, peer_pass
from nsys_tui.logs.nccl.hangs import find_hangs
from nsys_tui.logs.nccl.peer_pass import PeerPass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from nsys_tui.logs import LogResult


def run_of(folder: Path, run: Run, *, ended: bool = False) -> LogResult:
    nranks = max(run) + 1
    return read(folder, *[log_of(rank, run[rank], nranks, ended=ended) for rank in sorted(run)])


def pair(steps: int = 4) -> Run:
    run: Run = {0: [], 1: []}
    for step in range(steps):
        run[0] += [send(1, 100 + step), recv(1, 200 + step), REDUCE]
        run[1] += [recv(0, 100 + step), send(0, 200 + step), REDUCE]
    return run


SHAPES = {"pipeline": pipeline, "ring": ring, "pair": pair}


def nth(run: Run, rank: int, op: str, n: int = 1) -> int:
    """Place of a rank's n-th call of an operation."""
    return [i for i, call in enumerate(run[rank]) if call.op == op][n]


def wrong_count(run: Run) -> None:
    at = nth(run, 0, "Send")
    run[0][at] = run[0][at]._replace(elements=run[0][at].elements + 1)


def wrong_type(run: Run) -> None:
    at = nth(run, 1, "Recv")
    run[1][at] = run[1][at]._replace(datatype=9)


def wrong_peer(run: Run) -> None:
    at = nth(run, 0, "Send")
    run[0][at] = run[0][at]._replace(peer=len(run) - 1 if len(run) > 2 else 0)


def lost_receive(run: Run) -> None:
    del run[1][nth(run, 1, "Recv", 2)]


def lost_send(run: Run) -> None:
    del run[0][nth(run, 0, "Send", 2)]


def one_more_send(run: Run) -> None:
    run[0].insert(nth(run, 0, "AllReduce"), send(1, 77))


def died_before_receive(run: Run) -> None:
    del run[1][nth(run, 1, "Recv") :]


def swapped(run: Run) -> None:
    """Send and all-reduce change places on one rank alone."""
    at = nth(run, 0, "AllReduce") - 1
    run[0][at], run[0][at + 1] = run[0][at + 1], run[0][at]


def test_the_call_that_is_left_out_is_named(tmp_path: Path) -> None:
    """By the counter in a ring of equal sizes, by the sizes where ranks count differently."""
    around = ring(steps=9)
    del around[2][nth(around, 2, "Recv", 5)]
    (found,) = find_hangs(run_of(tmp_path, around)).mismatches
    assert (found.what, found.op_count) == ("one-sided", 10)
    assert found.members[0].number == 16
    sized: Run = {rank: [] for rank in range(3)}
    for step in range(9):
        sized[0].append(send(1, 100 + step))
        sized[1] += [recv(0, 100 + step), send(2, 200 + step)]
        sized[2].append(recv(0 if step == 4 else 1, 200 + step))
    (found,) = find_hangs(run_of(tmp_path, sized)).mismatches
    assert (found.what, [one.number for one in found.members]) == ("peer", [10, 5])


FAULTS = {
    "count": (wrong_count, {"size"}),
    "type": (wrong_type, {"type"}),
    "peer": (wrong_peer, {"peer", "one-sided"}),
    "lost receive": (lost_receive, {"one-sided", "size", "order", "peer"}),
    "lost send": (lost_send, {"one-sided", "size", "order", "peer"}),
    "one more": (one_more_send, {"size", "one-sided"}),
    "died": (died_before_receive, {"behind"}),
    "circle": (swapped, {"circle"}),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(tmp_path: Path, shape: str, fault: str) -> None:
    plant, kinds = FAULTS[fault]
    run = SHAPES[shape]()
    plant(run)
    result = run_of(tmp_path, run)
    found = find_hangs(result)
    assert told(found) & kinds
    first = next((one.members for one in found.mismatches if one.point_to_point), ())
    assert {result.communicators[one.communicator].rank for one in first} & {0, 1} or not first


def longer(run: Run) -> None:
    for calls in run.values():
        calls += calls


def other_sizes(run: Run) -> None:
    """Both ends of a call have another size and type than the others."""
    ours = [i for i, call in enumerate(run[1]) if (call.op, call.peer) == ("Recv", 0)]
    ends = {0: nth(run, 0, "Send"), 1: ours[1]}
    for rank, at in ends.items():
        run[rank][at] = run[rank][at]._replace(elements=5, datatype=9)


def grouped(run: Run) -> None:
    """One more pair in a group of its own, in opposite order on the two ranks."""
    run[0] += [send(1, group=99), recv(1, 9, group=99)]
    run[1] += [recv(0, group=99), send(0, 9, group=99)][::-1]


def to_itself(run: Run) -> None:
    run[0] += [send(0, group=99), recv(0, group=99)]


def nothing(run: Run) -> None:
    """As it is."""


NEAR = (nothing, longer, other_sizes, grouped, to_itself)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("change", NEAR)
def test_near_misses_are_clean(tmp_path: Path, shape: str, change: object) -> None:
    run = SHAPES[shape]()
    assert callable(change)
    change(run)
    found = find_hangs(run_of(tmp_path, run))
    assert (found.mismatches, found.drifts, found.unchecked_peers) == ((), (), 0)


def test_a_log_that_ends_before_the_other_end_is_behind_and_not_wrong(tmp_path: Path) -> None:
    run = pair()
    del run[1][-2:]
    del run[0][-1:]
    found = find_hangs(run_of(tmp_path, run))
    assert told(found) <= {"behind"}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("late", [(0,), (1,), (0, 1)])
@pytest.mark.parametrize("lost", [2, 3, 5, 8])
@pytest.mark.parametrize("known", [True, False], ids=["init", "no init"])
def test_logs_that_begin_in_the_middle_are_not_compared_and_that_is_said(
    tmp_path: Path, shape: str, late: tuple[int, ...], lost: int, known: bool
) -> None:
    run = SHAPES[shape](6)
    logs = [log_of(rank, calls, len(run)) for rank, calls in run.items()]
    for rank in late:
        logs[rank] = logs[rank][:known] + logs[rank][1 + lost :]
    found = find_hangs(read(tmp_path, *logs))
    assert (found.mismatches, found.drifts) == ((), ())
    assert found.unchecked_groups + found.unchecked_peers


def test_what_is_said_names_rank_peer_call_and_the_last_good_one(tmp_path: Path) -> None:
    run = pair()
    run[1][3] = run[1][3]._replace(elements=64)
    result = run_of(tmp_path, run)
    (found,) = find_hangs(result).mismatches
    assert (found.what, found.point_to_point) == ("size", True)
    sender, receiver = found.members
    assert (sender.number, sender.calls) == (4, ("Send fp32 × 101 to rank 1",))
    assert (receiver.number, receiver.calls) == (4, ("Recv fp32 × 64 from rank 0",))
    assert sender.last_good == "call 3, AllReduce sum fp32 × 1024"
    (shown,) = logs_json(result)["mismatches"]
    assert shown["point_to_point"]
    assert [(one["rank"], one["call_number"]) for one in shown["members"]] == [(0, 4), (1, 4)]
    assert shown["members"][0]["last_good"] == sender.last_good


def test_a_lone_send_names_who_never_received(tmp_path: Path) -> None:
    run = pipeline(ranks=3)
    run[1].insert(6, send(2, 55))
    run[1].insert(7, REDUCE)
    run[0].insert(6, REDUCE)
    run[2].insert(6, REDUCE)
    found = [one for one in find_hangs(run_of(tmp_path, run)).mismatches if one.point_to_point]
    assert found
    assert any("Send fp32 × 55 to rank 2" in member.calls for member in found[0].members)


def late(run: Run, shape: str, plant: Callable[[Run], None]) -> Run:
    """A run whose fault comes after many sound steps."""
    rest = SHAPES[shape](40)
    plant(rest)
    moved = {
        rank: [c._replace(group=c.group + 999 * (c.group >= 0)) for c in rest[rank]]
        for rank in rest
    }
    return {rank: calls + moved[rank] for rank, calls in run.items()}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("fault", FAULTS)
def test_of_too_many_calls_those_around_the_fault_tell_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shape: str, fault: str
) -> None:
    monkeypatch.setattr("nsys_tui.logs.textfile.BLOCK_BYTES", 6000)
    monkeypatch.setattr(peer_pass, "_CHUNK", 4)
    result = run_of(tmp_path, late(SHAPES[shape](40), shape, FAULTS[fault][0]))
    whole = find_hangs(result)
    held: list[int] = []
    select = PeerPass.select

    def counted(passed: PeerPass, members: Mapping[int, int]) -> peer_pass.Selection:
        held.append(len((chosen := select(passed, members)).calls))
        return chosen

    monkeypatch.setattr(PeerPass, "select", counted)
    monkeypatch.setattr(peer_pass, "HELD", 160)
    near = find_hangs(result)
    assert (near.mismatches, near.drifts) == (whole.mismatches, whole.drifts)
    assert near.partly_checked_peers == len(held) == 1
    assert held[0] < 300 < len(result.every_call)


def test_behind_what_is_looked_at_no_end_is_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second fault, far behind the first, makes no call between them a lone one."""
    monkeypatch.setattr(peer_pass, "_CHUNK", 4)
    monkeypatch.setattr(peer_pass, "HELD", 40)
    run = pair(90)
    wrong_count(run)
    del run[1][nth(run, 1, "Recv", 80)]
    found = find_hangs(run_of(tmp_path, run))
    assert [(one.what, one.members[0].number) for one in found.mismatches] == [("size", 4)]
    assert not [one for one in found.drifts if one.point_to_point]


def test_without_a_counter_order_is_not_looked_at_and_that_is_said(tmp_path: Path) -> None:
    logs = [
        [re.sub("opCount [0-9a-f]+", "opCount 0", line) for line in log_of(rank, calls, 2)]
        for rank, calls in pair().items()
    ]
    result = read(tmp_path, *logs)
    assert find_hangs(result).partly_checked_peers == 1
    assert logs_json(result)["partly_checked_peers"] == 1
    assert find_hangs(run_of(tmp_path, pair())).partly_checked_peers == 0


def test_ranks_unknown_are_not_checked_and_that_is_said(tmp_path: Path) -> None:
    lines = []
    for rank, calls in pair().items():
        texts = [body(call.op, n, root=call.peer, nranks=2) for n, call in enumerate(calls)]
        lines.append([info(text, pid=rank + 1) for text in texts])
    found = find_hangs(read(tmp_path, *lines))
    assert told(found) == set()
    assert found.unchecked_peers == 1


def test_collectives_are_counted_by_order_where_sends_move_the_counter(tmp_path: Path) -> None:
    run = pipeline()
    run[2][nth(run, 2, "AllReduce", 2)] = Call("AllGather")
    (found,) = find_hangs(run_of(tmp_path, run)).mismatches
    assert (found.what, found.by_order) == ("operation", True)


def test_a_cycle_of_a_run_that_ended_well_is_no_hang(tmp_path: Path) -> None:
    run = {0: [send(1), recv(1), REDUCE], 1: [send(0), recv(0), REDUCE]}
    assert told(find_hangs(run_of(tmp_path, run))) == {"circle"}
    assert told(find_hangs(run_of(tmp_path, run, ended=True))) == set()


@pytest.mark.parametrize("shape", [pipeline, ring])
@pytest.mark.parametrize("step", [1, 3, 5])
@pytest.mark.parametrize(("op", "other"), [("Send", "Recv"), ("Recv", "Send")])
def test_what_a_rank_does_once_not_is_named_although_all_sizes_are_equal(
    tmp_path: Path, shape: Callable[..., Run], step: int, op: str, other: str
) -> None:
    run = shape(steps=8)
    mine = [at for at, call in enumerate(run[1]) if call.op == op]
    at = mine[step * len(mine) // 8]
    peer = run[1][at].peer
    theirs = [at for at, call in enumerate(run[peer]) if (call.op, call.peer) == (other, 1)]
    del run[1][at]
    result = run_of(tmp_path, run)
    (found,) = find_hangs(result).mismatches
    lone, lacking = found.members
    assert (found.what, lone.number) == ("one-sided", theirs[step] + 1)
    ranks = [result.communicators[one.communicator].rank for one in (lone, lacking)]
    assert ranks == [peer, 1]
    assert not {one.communicator for one in found.waiting} & {lone.communicator}


def test_a_peer_that_is_once_another_is_found_although_all_sizes_are_equal(tmp_path: Path) -> None:
    run = pipeline(steps=8)
    at = nth(run, 1, "Send", 6)
    run[1][at] = run[1][at]._replace(peer=3)
    (found,) = find_hangs(run_of(tmp_path, run)).mismatches
    assert (found.what, found.members[0].number) == ("peer", at + 1)


def test_a_lone_last_receive_says_that_the_other_end_may_be_left_out(tmp_path: Path) -> None:
    run = pair()
    del run[0][-3:]
    del run[1][-2:]
    (drift,) = find_hangs(run_of(tmp_path, run)).drifts
    assert drift.point_to_point
    assert drift.next_calls == ("the other end of call 10 of rank 1, Recv fp32 × 103 from rank 0",)


@pytest.mark.parametrize("rank", [0, 1, 3])
def test_a_rank_that_never_sends_nor_receives_is_behind(tmp_path: Path, rank: int) -> None:
    run = {each: [c for c in calls if c.op != "AllReduce"] for each, calls in pipeline().items()}
    run[rank] = []
    result = run_of(tmp_path, run)
    drifts = find_hangs(result).drifts
    (silent,) = {one.communicator for drift in drifts for one in drift.behind if not one.calls}
    assert result.communicators[silent].rank == rank


def changed(seed: int) -> Run:
    """A run of some steps in which up to two calls are lost, changed or moved."""
    rng = random.Random(seed)
    run = rng.choice([*SHAPES.values()])(rng.randrange(2, 12))
    for _ in range(rng.randrange(3)):
        rank = rng.choice([*run])
        calls = run[rank]
        at = rng.randrange(len(calls))
        call = calls[at]
        other: list[Call] = rng.choice(
            [
                [],
                [call, call],
                [call._replace(elements=call.elements + 1)],
                [call._replace(datatype=9)],
                [call._replace(peer=rng.choice([*run]))],
                [REDUCE],
                [send(rank), recv(rank)],
                [send(rank, group=10**6 + at), recv(rank, group=10**6 + at), call],
            ]
        )
        calls[at : at + 1] = other
        if rng.random() < 0.3 and at + 1 < len(calls):
            calls[at], calls[at + 1] = calls[at + 1], calls[at]
        if rng.random() < 0.1:
            del calls[at:]
    return run


def test_what_the_passes_clear_has_no_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nsys_tui.logs.textfile.BLOCK_BYTES", 1500)
    cleared = 0
    for seed in range(120):
        run = changed(seed)
        files = [log_of(rank, calls, max(run) + 1) for rank, calls in sorted(run.items())]
        if seed % 3 == 0:
            files = [[line for file in files for line in file]]
        result = read(tmp_path, *files)
        quick = find_hangs(result)
        with monkeypatch.context() as whole:
            whole.setattr(PeerPass, "fits", lambda *_: False)
            assert find_hangs(result) == quick, seed
        cleared += not (quick.mismatches or quick.drifts)
    assert 30 < cleared < 110


@pytest.mark.parametrize("shape", SHAPES)
def test_a_run_that_fits_is_never_held_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shape: str
) -> None:
    monkeypatch.setattr("nsys_tui.logs.textfile.BLOCK_BYTES", 1500)
    monkeypatch.delattr(peer_findings, "_Found")
    result = run_of(tmp_path, SHAPES[shape](30))
    assert len(result.every_call.blocks) > 4 * len(result.files)
    assert not find_hangs(result).mismatches


def test_ranks_are_known_without_ids_where_there_is_one_of_each(tmp_path: Path) -> None:
    """As NCCL before 2.16 logs it; with two communicators of one size it is a guess."""
    run = pair()
    lost_send(run)
    logs = [log_of(rank, run[rank], 2) for rank in run]
    old = [[line.replace(" commId 0xabc", "") for line in log] for log in logs]
    faults = find_hangs(read(tmp_path, *old))
    assert faults == find_hangs(read(tmp_path, *logs))
    assert [one.what for one in faults.mismatches] == ["one-sided"]
    beside = [
        [*log, info(init(f"0x{rank + 7}0", rank, 2, comm_id=""), pid=rank + 1)]
        for rank, log in enumerate(old)
    ]
    result = read(tmp_path, *beside)
    assert not any(group.certain for group in result.groups)
    assert find_hangs(result).unchecked_peers == 1


@pytest.mark.parametrize("ended", [False, True])
@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("shape", [pipeline, ring])
def test_any_call_that_is_left_out_is_named(
    tmp_path: Path, shape: Callable[[int, int], Run], ranks: int, ended: bool
) -> None:
    """The first one too, without which the calls still come over and over."""
    whole = shape(4, ranks)
    for rank, calls in whole.items():
        for place, call in enumerate(calls):
            if call.op == "AllReduce":
                continue
            n = [(c.op, c.peer) for c in calls[:place]].count((call.op, call.peer))
            lone = ("Recv" if call.op == "Send" else "Send", rank)
            ends = [at for at, c in enumerate(whole[call.peer]) if (c.op, c.peer) == lone]
            run = whole | {rank: [*calls[:place], *calls[place + 1 :]]}
            (fault,) = find_hangs(run_of(tmp_path, run, ended=ended)).mismatches
            at = fault.members[0]
            assert (fault.what, at.communicator, at.number) == ("one-sided", call.peer, ends[n] + 1)


def test_which_of_three_is_left_out_is_not_guessed(tmp_path: Path) -> None:
    run = pipeline(3, 2)
    del run[0][nth(run, 0, "Send", 1)]
    assert told(find_hangs(run_of(tmp_path, run))) == {"circle"}


def test_a_circle_holds_those_who_wait_for_one_another_alone(tmp_path: Path) -> None:
    run = {
        0: [REDUCE, REDUCE],
        1: [REDUCE, send(3), recv(2), REDUCE],
        2: [REDUCE, send(1), recv(3), REDUCE],
        3: [REDUCE, send(2), recv(1), REDUCE],
        4: [REDUCE, REDUCE],
    }
    result = run_of(tmp_path, run)
    (found,) = find_hangs(result).mismatches
    assert found.what == "circle"
    ranks = [
        [result.communicators[one.communicator].rank for one in members]
        for members in (found.members, found.waiting)
    ]
    assert ranks == [[1, 3, 2], [0, 4]], "in the order in which they wait"
