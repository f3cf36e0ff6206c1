from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
from synth import Synth
from unit.fleet.fleet_reports import ALL_REDUCE, REDUCED, US, UTC

from nsys_tui.fleet.heat_maps import HELD, heat_map, map_names
from nsys_tui.fleet.loading import run_fleet
from nsys_tui.fleet.mapping import Opening, map_report
from nsys_tui.fleet.summary import Options, ReportSummary
from nsys_tui.fleet.table_parts import Ask
from nsys_tui.fleet.tables import SECTIONS, summary_sections

if TYPE_CHECKING:
    from pathlib import Path

UNCACHED = Opening(use_cache=False)


def summary(path: Path, options: Options | None = None) -> ReportSummary:
    found = map_report(str(path), options or Options(), UNCACHED)
    assert isinstance(found, ReportSummary), found
    return found


def test_communicators_and_ranks_come_from_nccls_payloads(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "node.sqlite").gpu(0).gpu(1)
    for place, rank in ((0, 5), (1, 2)):
        pid = 500 + place
        synth.process(pid, "python3").cuda_device(pid, place, place)
        for size in (2, 8):
            fields = {"NCCL communicator ID": 16 + size, "No. of ranks": size}
            own = rank if size == 8 else place
            synth.nvtx("ncclCommInitRank", 10 * size, 10 * size + 5, json=json.dumps(
                fields | {"Rank": own}))  # fmt: skip
        for call, size in enumerate((8, 2, 8)):
            at = 1000 * (call + 1)
            synth.nvtx("ncclAllReduce", at, at + 20, json=json.dumps(
                {"NCCL communicator ID": 16 + size, "Message size [bytes]": 4}))  # fmt: skip
            synth.launch(ALL_REDUCE, (at + 5, at + 9), (at + 50, at + 90), device=place)
    fleet = run_fleet([synth.write()], opening=UNCACHED)
    assert [(m.rank, m.source) for m in fleet.members] == [(2, "NCCL"), (5, "NCCL")]
    groups = {g.communicator: g.calls for g in fleet.collectives.groups}
    assert groups == {"0x18": 2, "0x12": 1}


def test_without_payloads_streams_stand_for_communicators(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").gpu(0).process(7, "python3")
    for at, stream in ((100, 40), (200, 22), (300, 40)):
        synth.launch(ALL_REDUCE, (at, at + 1), (at + 5, at + 9), stream=stream)
    synth.launch("ncclDevKernel_SendRecv(int)", (400, 401), (405, 409), stream=50)
    found = summary(synth.write()).processes[0].collectives
    assert [found.keys[code] for code in found.key] == [
        (REDUCED, "stream 2"),
        (REDUCED, "stream 1"),
        (REDUCED, "stream 2"),
    ]
    assert found.point_to_point == 1
    said = "in them while nothing computes, ≈ bubbles of pipelines or exchanges of experts"
    notes = run_fleet([tmp_path / "r.sqlite"], opening=UNCACHED).notes
    assert [note for note in notes if note.endswith(said)]


def test_an_mpi_thread_or_table_or_process_name_tells_the_rank(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").gpu(0).gpu(1).gpu(2)
    for place, name in enumerate(("a.out", "b.out", "trainer rank 4")):
        pid = 60 + place
        synth.process(pid, name).cuda_device(pid, place, place)
        synth.kernel("k", 10, 20, device=place)
    synth.process(60).nvtx("MPI Rank 9", 1, None, type=39)
    fleet = run_fleet([synth.write()], opening=UNCACHED)
    assert {m.process.pid: (m.rank, m.source) for m in fleet.members} == {
        60: (9, "MPI"),
        61: (0, "by order of files"),
        62: (4, "process name"),
    }


def test_several_processes_share_the_node_number_of_their_launcher(tmp_path: Path) -> None:
    paths = []
    for node in (0, 1):
        synth = Synth(tmp_path / f"node{node}.sqlite").gpu(0).gpu(1)
        synth.meta("PROCESS_0:ENVIRONMENT_VARIABLE", f"SLURM_NODEID={node}", capture=True)
        for place in (0, 1):
            pid = 80 - place
            synth.process(pid).cuda_device(pid, place, place).kernel("k", 10, 20, device=place)
        paths.append(synth.write())
    fleet = run_fleet(paths[::-1], opening=UNCACHED)
    expected = [("node0.sqlite", 80), ("node0.sqlite", 79), ("node1.sqlite", 80)]
    assert [(m.file, m.process.pid) for m in fleet.members][:3] == expected
    assert all(m.source.startswith("≈ node number") for m in fleet.members)
    assert "guessed" in " ".join(fleet.notes)


def test_memory_held_is_the_most_of_each_bin(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").session(4096, utc=UTC).gpu(0).process(7, "python3")
    synth.kernel("k", 0, 4096)
    synth.memory_usage(100, 1000, address=1).memory_usage(900, 500, address=2)
    synth.memory_usage(1500, 500, True, address=2).memory_usage(3000, 1000, True, address=1)
    fleet = run_fleet([synth.write()], opening=UNCACHED)
    assert fleet.members[0].process.memory_peak.tolist() == [1500]
    assert HELD in map_names(fleet)
    shown = heat_map(fleet, HELD, 8)
    held = [0] * 4097
    for change, amount in ((100, 1000), (900, 500), (1500, -500), (3000, -1000)):
        for ns in range(change, 4097):
            held[ns] += amount
    expected = [
        max(held[max(0, int(lo)) : min(4097, int(hi))], default=0)
        for lo, hi in zip(shown.edges[:-1].tolist(), shown.edges[1:].tolist(), strict=True)
    ]
    assert shown.values[0].tolist() == expected
    assert SECTIONS["memory"](fleet, Ask())["Peak"] == [1500]


def test_metrics_are_means_over_their_samples(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").session(1 << 20, utc=UTC).gpu(0).gpu(1)
    synth.environment("Hostname", "box").process(7, "python3").kernel("k", 0, 1 << 20)
    samples = {gpu: [(ns, (ns // 1000 * (gpu + 1)) % 97) for ns in range(0, 1 << 20, 10_000)]
               for gpu in (0, 1)}  # fmt: skip
    for gpu, values in samples.items():
        for ns, value in values:
            synth.gpu_metric(ns, "SM Active [%]", value, gpu=gpu)
    fleet = run_fleet([synth.write()], opening=UNCACHED)
    shown = heat_map(fleet, "SM Active [%]", 40)
    assert shown.labels == ("box GPU 0", "box GPU 1")
    assert shown.top == 100
    for gpu, values in samples.items():
        for place, (lo, hi) in enumerate(
            zip(shown.edges[:-1].tolist(), shown.edges[1:].tolist(), strict=True)
        ):
            inside = [value for ns, value in values if lo <= ns < hi]
            found = shown.values[gpu, place]
            assert np.isnan(found) if not inside else found == np.mean(inside)
    table = SECTIONS["metrics"](fleet, Ask())
    assert table["Samples"] == [105, 105]
    assert table["Mean"] == [np.mean([v for _, v in samples[gpu]]) for gpu in (0, 1)]


def test_reports_without_gpu_work_still_have_ranks_and_steps(tmp_path: Path) -> None:
    paths = []
    for rank in (0, 1):
        synth = Synth(tmp_path / f"rank_{rank}.sqlite").session(10**6, utc=UTC).process(9 + rank)
        for step in range(3):
            synth.nvtx(f"step {step}", step * 1000, step * 1000 + 500 + rank)
        paths.append(synth.write())
    fleet = run_fleet(paths, opening=UNCACHED)
    assert [m.rank for m in fleet.members] == [0, 1]
    steps = SECTIONS["steps"](fleet, Ask())
    assert list(steps["Slowest rank"])[2] == 1
    assert map_names(fleet) == []
    notes = SECTIONS["ranks"](fleet, Ask()).notes
    assert "--trace=cuda" in notes[0]
    for name in summary_sections(fleet):
        SECTIONS[name](fleet, Ask())


def test_steps_with_other_names_are_matched_by_order(tmp_path: Path) -> None:
    paths = []
    for rank, word in enumerate(("step", "iteration")):
        synth = Synth(tmp_path / f"rank_{rank}.sqlite").session(10**6, utc=UTC).process(9)
        for step in range(4 - rank):
            synth.nvtx(f"{word} {step}", step * US, step * US + 500)
        paths.append(synth.write())
    table = SECTIONS["steps"](run_fleet(paths, opening=UNCACHED), Ask())
    assert list(table["Ranks"]) == [2, 2, 2, 1]
    assert "matched by order" in table.notes[1]


def test_an_iteration_pattern_decides_what_a_step_is(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").session(10**6, utc=UTC).process(9)
    for step in range(3):
        synth.nvtx(f"epoch {step}", step * US, step * US + 500)
    found = summary(synth.write(), Options(iteration="^epoch")).processes[0].steps
    assert found.labels == ("epoch 0", "epoch 1", "epoch 2")
    assert found.rule == "by the pattern asked for"


def test_a_graph_traced_as_a_whole_makes_exposed_times_upper_bounds(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").gpu(0).process(9).graph(10, 50)
    fleet = run_fleet([synth.write()], opening=UNCACHED)
    assert any("upper bounds" in note for note in fleet.notes)
