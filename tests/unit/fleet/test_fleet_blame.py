"""Why a rank was late, against planted reasons; and what it cost the others."""

from __future__ import annotations

import json
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from synth import Synth
from unit.fleet.fleet_reports import ALL_REDUCE, STEP, US, UTC, Run

from nsys_tui import cli
from nsys_tui.fleet.collective_tables import purpose
from nsys_tui.fleet.collectives import CAUSES, blame
from nsys_tui.fleet.fleet import Clock
from nsys_tui.fleet.loading import run_fleet
from nsys_tui.fleet.times import SessionClock

if TYPE_CHECKING:
    from pathlib import Path

    from nsys_tui.fleet.fleet import Fleet

RANKS, STEPS, LATE = 4, 10, 80 * US
ALIGNED = SessionClock(0)


@dataclass
class Reason:
    """A run in which rank 2 comes late to every collective, for one reason."""

    why: str
    late: int = LATE

    def write(self, folder: Path) -> list[Path]:
        return [self.rank(folder / f"rank_{rank}.sqlite", rank) for rank in range(RANKS)]

    def rank(self, path: Path, rank: int) -> Path:
        synth = Synth(path).gpu(0, "Test GPU").session(STEPS * STEP, utc=UTC)
        synth.environment("Hostname", f"node{rank}").process(1000 + rank, "python3")
        late = self.late if rank == 2 else 0
        for step in range(STEPS):
            at = step * STEP + 10 * US
            copy = 20 * US + late * (self.why == "copy")
            if self.why == "loading" and late:
                synth.nvtx("DataLoader.next", at, at + late)
            before = late * (self.why in ("launch", "loading"))
            synth.memcpy(at + before, at + before + copy)
            begin = at + before + copy
            compute = 300 * US + late * (self.why == "kernels")
            call = at + before
            synth.launch("gemm", (call, call + 500), (begin, begin + compute))
            start = begin + compute
            end = at + 20 * US + 300 * US + self.late + 50 * US
            synth.launch(ALL_REDUCE, (start - US, start - 500), (start, end), stream=13)
        return synth.write()


def of(fleet: Fleet, rank: int) -> dict[str, float]:
    found = blame(fleet.collectives)
    place = [m.rank for m in fleet.members].index(rank)
    return dict(zip(CAUSES, found.causes[place].tolist(), strict=True))


@pytest.mark.parametrize(
    ("why", "cause"),
    [
        ("kernels", "more kernel time"),
        ("copy", "data wait"),
        ("loading", "data wait"),
        ("launch", "idle GPU"),
    ],
)
def test_a_planted_reason_is_found_and_what_it_cost(why: str, cause: str, tmp_path: Path) -> None:
    fleet = run_fleet(Reason(why).write(tmp_path))
    found = blame(fleet.collectives)
    assert found.cost.tolist() == [0, 0, STEPS * LATE * (RANKS - 1), 0]
    parts = of(fleet, 2)
    assert parts.pop(cause) == pytest.approx((STEPS - 1) * LATE * (RANKS - 1), rel=1e-3)
    assert parts.pop("unknown") == LATE * (RANKS - 1), "of the first call nothing is known"
    assert sum(parts.values()) == pytest.approx(0, abs=US)


def test_ranks_that_are_all_alike_cost_nothing(tmp_path: Path) -> None:
    found = blame(run_fleet(Reason("kernels", 0).write(tmp_path)).collectives)
    assert found.cost.tolist() == [0] * RANKS
    assert found.mostly == (-1,) * RANKS


def test_costs_are_what_others_waited_for_the_last_alone(tmp_path: Path) -> None:
    run = Run(ranks=4, steps=8, slow={(2, 3): 150 * US, (0, 1): 95 * US})
    fleet = run_fleet(run.write(tmp_path))
    expected = np.zeros(4)
    for step in range(8):
        arrivals = run.arrivals(step)
        expected[arrivals.index(max(arrivals))] += 3 * (max(arrivals) - sorted(arrivals)[-2])
    found = blame(fleet.collectives)
    assert found.cost.tolist() == expected.tolist()
    assert found.causes.sum(axis=1) == pytest.approx(expected)


def test_the_table_says_who_why_and_where(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [str(path) for path in Reason("kernels").write(tmp_path)]
    assert cli.main(["fleet", *names, "--section", "stragglers", "--format", "json"]) == 0
    section = json.loads(capsys.readouterr().out)["sections"]["stragglers"]
    row = section["rows"][0]
    assert row["rank"] == 2
    assert row["others_waited_ns"] == STEPS * LATE * 3
    assert row["more_kernel_time_ns"] == pytest.approx((STEPS - 1) * LATE * 3, rel=1e-3)
    assert row["why_late"] == "more kernel time 90.0% of that"
    assert row["mostly_in"].endswith("of ranks 0-3")
    assert section["notes"][1] == (
        "rank 2 cost the others 2.400 ms of waiting, hidden or not, "
        "100.0% of what single late ranks cost: "
        "more kernel time 90.0% of that"
    )


@pytest.mark.parametrize("more", [0, LATE])
def test_a_straggler_is_blamed_for_those_that_waited_for_it_and_so_were_late_themselves(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: int
) -> None:
    """Two nodes of four: neighbours reduce, then every fourth; rank 2 computes longer.

    Rank 1 computes more between the two, and for that is blamed itself.
    """
    paths = []
    for rank in range(8):
        node, place = divmod(rank, 4)
        synth = Synth(tmp_path / f"rank_{rank}.sqlite").gpu(0, "Test GPU")
        synth.session(STEPS * STEP, utc=UTC).environment("Hostname", f"node{node}")
        synth.process(1000 + rank, "python3")
        for step in range(STEPS):
            at = step * STEP + 10 * US
            begin = at + 20 * US
            compute = 300 * US + LATE * (rank == 2)
            synth.launch("gemm", (at, at + 500), (begin, begin + compute))
            ends = begin + 350 * US + LATE * (node == 0), begin + 400 * US + LATE + more
            starts = begin + compute, ends[0] + US + more * (rank == 1)
            if starts[1] > ends[0] + US:
                synth.launch("norm", (at, at + 500), (ends[0] + 500, starts[1] - 500))
            for start, end, own in zip(starts, ends, (16 + node, 32 + place), strict=True):
                text = json.dumps({"NCCL communicator ID": own, "Message size [bytes]": 4})
                synth.nvtx("ncclAllReduce", start - 3 * US, start - US, json=text)
                synth.launch(ALL_REDUCE, (start - 2 * US, start - US), (start, end), stream=13)
        paths.append(str(synth.write()))
    asked = ["--section", "stragglers", "--section", "collectives", "--format", "json"]
    assert cli.main(["fleet", *paths, *asked]) == 0
    sections = json.loads(capsys.readouterr().out)["sections"]
    purposes = {row["members"]: row["purpose"] for row in sections["collectives"]["rows"]}
    data = {f"{rank}, {rank + 4}": "≈ data parallel" for rank in range(4)}
    assert purposes == {"0-3": "≈ tensor parallel", "4-7": "≈ tensor parallel"} | data
    worst, *others = sections["stragglers"]["rows"]
    assert worst["rank"] == 2
    assert worst["why_late"].startswith("more kernel time")
    assert worst["mostly_in"].endswith("of ranks 0-3 (≈ tensor parallel)")
    assert worst["others_waited_ns"] == STEPS * LATE * (3 + 4), "in its group, and behind it"
    told = {row["rank"]: (row["others_waited_ns"], row["why_late"] or "") for row in others}
    assert told[1][0] == STEPS * more
    assert told[1][1].startswith("more kernel time") == bool(more)
    assert {cost for rank, (cost, _) in told.items() if rank != 1} == {0}


def test_sends_and_receives_are_never_called_data_parallel() -> None:
    members: Any = [
        SimpleNamespace(rank=rank, report=SimpleNamespace(host="a"), clock=ALIGNED)
        for rank in range(8)
    ]
    shapes = {
        "ncclDevKernel_SendRecv": "≈ pipeline or expert parallel",
        ALL_REDUCE: "≈ data parallel",
    }
    for name, said in shapes.items():
        group: Any = SimpleNamespace(name=name, members=(0, 4))
        assert purpose(group, members) == said


def test_all_ranks_that_can_be_aligned_are_no_group_of_a_purpose() -> None:
    members: Any = [
        SimpleNamespace(
            rank=rank, report=SimpleNamespace(host="a"), clock=ALIGNED._replace(aligned=rank != 3)
        )
        for rank in range(4)
    ]
    group: Any = SimpleNamespace(name=ALL_REDUCE, members=(0, 1, 2))
    assert purpose(group, members) == ""
    group.members = (0, 1)
    assert purpose(group, members) == "≈ tensor parallel"


def test_who_waits_beside_its_kernels_computes_no_less_than_a_rank_that_comes_late(
    tmp_path: Path,
) -> None:
    def rank(place: int) -> Path:
        path = tmp_path / f"rank_{place}.sqlite"
        synth = Synth(path).gpu(0, "Test GPU").session(STEPS * STEP, utc=UTC)
        synth.environment("Hostname", f"node{place}").process(1000 + place, "python3")
        late = 60 * US if place == 2 else 0
        for at in range(10 * US, STEPS * STEP, STEP):
            for begin, compute, ends in ((0, 100, 260), (100 + late // US, 100, 420)):
                begun = at + begin * US + late
                done = begun + compute * US
                synth.launch("gemm", (begun - 600, begun - 100), (begun, done))
                start = done if begin == 0 or late else at + 260 * US
                called = (start - US, start - 500)
                synth.launch(ALL_REDUCE, called, (start, at + ends * US), stream=13)
        return synth.write()

    parts = of(run_fleet([rank(place) for place in range(RANKS)]), 2)
    known = sum(parts.values()) - parts["unknown"]
    assert parts["idle GPU"] == known > 0


def test_calls_in_a_row_out_of_which_a_rank_comes_late_count_once(tmp_path: Path) -> None:
    """Ranks 0 and 1 fall behind the others by a stop; ranks 1 and 3 compute longer in each step."""

    def rank(place: int) -> Path:
        path = tmp_path / f"rank_{place}.sqlite"
        synth = Synth(path).gpu(0, "Test GPU").session(STEPS * STEP, utc=UTC)
        synth.environment("Hostname", f"node{place}").process(1000 + place, "python3")
        for step in range(STEPS):
            begun = step * STEP + 10 * US + (600 * US if step > 7 and place < 2 else 0)
            done = begun + (160 * US if place % 2 else 100 * US)
            synth.launch("gemm", (begun - 600, begun - 100), (begun, done))
            synth.launch(ALL_REDUCE, (done - US, done - 500), (done, begun + 260 * US), stream=13)
        return synth.write()

    paths = [rank(place) for place in range(RANKS)]
    parts = of(run_fleet(paths, clock=Clock.UTC), 1)
    assert parts["late before"] == 0 < parts["more kernel time"]
