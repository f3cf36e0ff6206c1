"""Logs longer than one block: what they say does not depend on where the blocks end."""

from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING

import pytest
from loglines import body, info, init, logs_json, nemo, read

from nsys_tui.errors import UnreadableReportError
from nsys_tui.logs import scan, textfile
from nsys_tui.logs.nccl import hangs

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def rank_log(rank: int, calls: int, *, wrong: int = -1, moving: bool = True) -> list[str]:
    """Calls of one rank, which makes and destroys its communicator twice under one pointer."""
    made = []
    for half in range(2):
        made.append(init("0xa0", rank, 2, comm_id=f"0xc{half}"))
        for number in range(calls):
            size = 7 if half and number == wrong else 1024 << number % 3
            made.append(body(count=size, op_count=number * moving, comm="0xa0", nranks=2))
            if not rank and number % 4 == 3:
                made.append(nemo(half * calls + number))
        made.append(f"comm 0xa0 rank {rank} nranks 2 cudaDev 0 busId 1000 - Destroy COMPLETE")
    return [one if "iteration" in one else info(one, pid=1000 + rank) for one in made]


@pytest.mark.parametrize("moving", [True, False])
@pytest.mark.parametrize("steps", [None, (11, 51)])
def test_small_blocks_say_the_same(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    moving: bool,
    steps: tuple[int, int] | None,
) -> None:
    files = [rank_log(0, 40, moving=moving), rank_log(1, 38, wrong=21, moving=moving)]
    whole = logs_json(read(tmp_path, *files, steps=steps), "calls")
    assert len(whole["communicators"]) == 4
    assert [one["what"] for one in whole["mismatches"]] == ["size"]
    assert [len(one["behind"]) for one in whole["drifts"]] == [1, 1]
    monkeypatch.setattr(textfile, "BLOCK_BYTES", 1500)
    monkeypatch.setattr(hangs, "_AT_ONCE", 20)
    assert logs_json(read(tmp_path, *files, steps=steps), "calls") == whole


def test_ranks_whose_counters_are_far_apart_are_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hangs, "_AT_ONCE", 20)
    files = []
    for rank in range(2):
        first = rank << 40
        lines = [body(op_count=first + n, comm="0xa0", nranks=2) for n in range(60)]
        files.append([info(one, pid=rank) for one in (init("0xa0", rank, 2), *lines)])
    found = hangs.find_hangs(read(tmp_path, *files))
    assert [one.calls for drift in found.drifts for one in drift.behind] == [60]
    assert not found.mismatches


def test_more_lines_take_hardly_more_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(textfile, "BLOCK_BYTES", 1 << 18)
    held = []
    for calls in (4_000, 16_000):
        lines = [info(body(count=1 << n % 9, op_count=n)) for n in range(calls)]
        tracemalloc.start()
        result = read(tmp_path, lines)
        held.append(tracemalloc.get_traced_memory()[0])
        tracemalloc.stop()
        assert len(result.calls) == calls
    assert held[1] - held[0] < 2 * 12_000


def test_a_file_that_breaks_off_leaves_no_calls_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = [info(init("0xa0", 0, 2)), info(body(comm="0xa0", nranks=2))]
    (tmp_path / "alone").mkdir()
    alone = logs_json(read(tmp_path / "alone", good), "calls")

    def broken(path: Path, *_: object) -> Iterator[bytes]:
        yield path.read_bytes()
        if path.name == "rank0.log":
            raise UnreadableReportError("the disk failed")

    monkeypatch.setattr(scan, "blocks", broken)
    both = logs_json(read(tmp_path, [info(body(comm="0xb0"), pid=7)] * 9, good), "calls")
    assert [one["why"] for one in both["skipped"]] == ["the disk failed"]
    same = ("per_op", "aggregate", "collective_lines", "gpus", "groups")
    assert {key: both[key] for key in same} == {key: alone[key] for key in same}
