"""Planted mismatches and hangs are found, healthy logs give none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from loglines import body, info, init, read
from paths import LOGS, needs_logs

from nsys_tui.logs import read_logs
from nsys_tui.logs.nccl.hangs import find_hangs
from nsys_tui.logs.sections.hang_tables import SECTIONS
from nsys_tui.logs.sections.section import LogAnswer

if TYPE_CHECKING:
    from pathlib import Path

    from nsys_tui.logs import LogResult
    from nsys_tui.logs.nccl.hang_report import HangReport

OPS = ("AllGather", "AllReduce", "ReduceScatter")


def rank_log(rank: int, calls: list[str], nranks: int = 4) -> list[str]:
    lines = [info(init(f"0x{rank}0", rank, nranks), pid=rank)]
    return lines + [
        info(
            text.replace("comm 0x5500a0 [nranks=8]", f"comm 0x{rank}0 [nranks={nranks}]"), pid=rank
        )
        for text in calls
    ]


def healthy(count: int = 6) -> list[str]:
    return [body(OPS[n % 3], n) for n in range(count)]


def report(folder: Path, *calls: list[str]) -> HangReport:
    files = [rank_log(rank, texts) for rank, texts in enumerate(calls)]
    return find_hangs(read(folder, *files))


def test_ranks_that_agree(tmp_path: Path) -> None:
    found = report(tmp_path, *[healthy()] * 4)
    assert found.mismatches == ()
    assert found.drifts == ()
    assert [one.last_op_count for one in found.progress] == [5] * 4


def test_a_rank_behind(tmp_path: Path) -> None:
    found = report(tmp_path, healthy(), healthy(), healthy(4), healthy())
    (drift,) = found.drifts
    assert [one.communicator for one in drift.behind] == [2]
    assert drift.behind[0].last_op_count == 3
    assert drift.behind[0].last.line == 5
    assert drift.next_calls == ("AllReduce sum fp32 × 1024", "ReduceScatter sum fp32 × 1024")
    assert drift.missing_ranks == 0
    assert found.mismatches == ()


def test_a_rank_that_never_called(tmp_path: Path) -> None:
    found = report(tmp_path, healthy(), healthy(), [], healthy())
    (drift,) = found.drifts
    assert [(one.communicator, one.calls) for one in drift.behind] == [(2, 0)]
    assert len(drift.ahead) == 3
    assert len(drift.next_calls) == 6


def test_a_rank_that_is_missing_altogether(tmp_path: Path) -> None:
    (drift,) = report(tmp_path, healthy(), healthy(5)).drifts
    assert drift.missing_ranks == 2


@pytest.mark.parametrize(
    ("other", "what"),
    [
        (body("Broadcast", 3), "operation"),
        (body("AllGather", 3, count=4), "size"),
        (body("AllGather", 3, datatype=6), "type"),
        (body("AllGather", 3, root=2), "root"),
    ],
)
def test_a_call_that_differs(tmp_path: Path, other: str, what: str) -> None:
    wrong = healthy()
    wrong[3] = other
    found = report(tmp_path, healthy(), wrong, healthy(), healthy())
    (mismatch,) = found.mismatches
    assert (mismatch.op_count, mismatch.what) == (3, what)
    assert len(mismatch.members) == 4
    assert found.drifts == ()


PLANTED: dict[str, dict[str, Any]] = {
    "operation": {"op": "Broadcast"},
    "size": {"count": 4},
    "type": {"datatype": 6},
    "reduction": {"reduction": 2},
    "root": {"root": 2},
}


@pytest.mark.parametrize("rank", [0, 3])
@pytest.mark.parametrize("at", [1, 4, 7])
@pytest.mark.parametrize("fault", [*PLANTED, "stops"])
def test_a_planted_fault_is_found_where_it_is(
    tmp_path: Path, fault: str, at: int, rank: int
) -> None:
    calls = [healthy(9) for _ in range(4)]
    if fault == "stops":
        del calls[rank][at:]
    else:
        said: dict[str, Any] = {"op": "AllReduce", "op_count": at, **PLANTED[fault]}
        calls[rank][at] = body(**said)
    found = report(tmp_path, *calls)
    assert [(one.op_count, one.what) for one in found.mismatches] == (
        [] if fault == "stops" else [(at, fault)]
    )
    assert [[one.communicator for one in drift.behind] for drift in found.drifts] == (
        [[rank]] if fault == "stops" else []
    )


def test_reductions_must_agree_only_where_something_is_reduced(tmp_path: Path) -> None:
    one, other = healthy(), healthy()
    one[0], other[0] = body("AllGather", 0), body("AllGather", 0, reduction=3)
    one[1], other[1] = body("AllReduce", 1, reduction=6), body("AllReduce", 1, reduction=9)
    assert report(tmp_path, one, other).mismatches == ()
    other[1] = body("AllReduce", 1, reduction=2)
    (mismatch,) = report(tmp_path, one, other).mismatches
    assert mismatch.what == "reduction"


def test_calls_of_one_group_share_a_counter_and_their_order_counts(tmp_path: Path) -> None:
    pair = [body("AllGather", 1), body("Broadcast", 1)]
    good = [body("AllReduce", 0), *pair, body("AllReduce", 2)]
    swapped = [body("AllReduce", 0), *reversed(pair), body("AllReduce", 2)]
    short = [body("AllReduce", 0), pair[0], body("AllReduce", 2)]
    assert report(tmp_path, good, good).mismatches == ()
    assert [m.what for m in report(tmp_path, good, swapped).mismatches] == ["operation"]
    assert [m.what for m in report(tmp_path, good, short).mismatches] == ["number of calls"]


def test_a_log_that_ends_inside_a_group_is_no_mismatch(tmp_path: Path) -> None:
    pair = [body("AllGather", 1), body("Broadcast", 1)]
    found = report(tmp_path, [body("AllReduce", 0), *pair], [body("AllReduce", 0), pair[0]])
    assert found.mismatches == ()


def test_a_log_that_begins_inside_a_group_is_no_mismatch(tmp_path: Path) -> None:
    pair = [body("AllGather", 1), body("Broadcast", 1)]
    whole = [body("AllReduce", 0), *pair, body("AllReduce", 2)]
    assert report(tmp_path, whole, whole[2:]).mismatches == ()
    other = [body("Reduce", 1), whole[3]]
    assert [one.what for one in report(tmp_path, whole, other).mismatches] == ["operation"]


def test_a_counter_that_stays_zero_gives_way_to_order(tmp_path: Path) -> None:
    same = [body(op, 0) for op in OPS]
    wrong = [same[0], body("Broadcast", 0), same[2]]
    (mismatch,) = report(tmp_path, same, wrong).mismatches
    assert mismatch.by_order
    assert mismatch.ops == ("AllReduce", "Broadcast")
    (drift,) = report(tmp_path, same, same[:2]).drifts
    assert drift.by_order
    assert [one.calls for one in drift.behind] == [2]


def test_point_to_point_calls_need_not_agree(tmp_path: Path) -> None:
    one = [body("AllReduce", 0), body("Send", 1, root=1)]
    other = [body("AllReduce", 0), body("Recv", 1, root=0)]
    found = report(tmp_path, one, other)
    assert found.mismatches == ()
    assert found.drifts == ()


def test_guessed_groups_are_compared_only_if_a_counter_is_shared(tmp_path: Path) -> None:
    near = [
        info(body("AllReduce", 7, nranks=2), pid=1),
        info(body("AllGather", 7, nranks=2), pid=2),
    ]
    result = read(tmp_path, near)
    (mismatch,) = find_hangs(result).mismatches
    assert not result.groups[mismatch.group].certain
    far = [info(body("AllReduce", 7, nranks=2), pid=1), info(body("AllGather", 8, nranks=2), pid=2)]
    found = find_hangs(read(tmp_path, far))
    assert found.mismatches == ()
    assert found.drifts == ()
    assert found.unchecked_groups == 1


def findings_text(result: LogResult) -> str:
    answer = LogAnswer(result, find_hangs(result))
    section = next(one for one in SECTIONS if one.name == "hangs")
    return " ".join(str(row) for row in section.rows(answer))


def test_many_ranks_that_did_the_same_are_named_as_one(tmp_path: Path) -> None:
    logs = [rank_log(rank, healthy(4 if rank == 37 else 6), 64) for rank in range(64)]
    said = findings_text(read(tmp_path, *logs))
    assert "rank 37 (node01:37) at opCount 3; ahead: ranks 0-63 except 37 at opCount 5" in said
    wrong = healthy()
    wrong[3] = body("Broadcast", 3)
    logs = [rank_log(rank, wrong if rank == 37 else healthy(), 64) for rank in range(64)]
    said = findings_text(read(tmp_path, *logs))
    assert "ranks 0-63 except 37: AllGather" in said
    assert "rank 37 (node01:37): Broadcast" in said


def test_many_mismatches_are_counted_beyond_the_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nsys_tui.logs.nccl.hangs.MOST_MISMATCHES", 2)
    wrong = [body("Broadcast", n) for n in range(6)]
    found = report(tmp_path, healthy(), wrong)
    assert len(found.mismatches) == 2
    assert found.more_mismatches == 4


@needs_logs
@pytest.mark.parametrize(
    "name", ["nemo-8rank-synthetic.log", "nccl-tests-2.27.7-allreduce-1proc-2gpu.log"]
)
def test_sound_logs_have_no_findings(name: str) -> None:
    found = find_hangs(read_logs([LOGS / name]))
    assert found.mismatches == ()
    assert found.drifts == ()


@needs_logs
def test_what_a_window_cuts_off_is_no_drift() -> None:
    found = find_hangs(read_logs([LOGS / "nemo-8rank-synthetic.log"], steps=(45, 47)))
    assert found.mismatches == ()
    assert found.drifts == ()


def test_repeated_calls_are_counted_and_ranks_without_a_log_are_named(tmp_path: Path) -> None:
    """Rank 1 stops early, rank 3 has no log at all: either may be to blame."""
    same = [body("AllReduce", n) for n in range(6)]
    result = read(tmp_path, *[rank_log(r, same[: 2 if r == 1 else 6]) for r in range(3)])
    section = next(one for one in SECTIONS if one.name == "hangs")
    table = section.table(LogAnswer(result, find_hangs(result)))
    (did,) = table.data[3]
    assert did.endswith("not called: AllReduce sum fp32 × 1024 (4 times)")
    assert table.notes == ("no line of rank 3 in these logs: a rank that is behind may be there",)
