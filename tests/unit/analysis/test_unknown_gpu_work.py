"""GPU work that is not believed is not known: no verb prints 0 busy, all idle, or all gone."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from synth import Synth

from nsys_tui.cli import main

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def sound(tmp_path: Path) -> Path:
    report = Synth(tmp_path / "sound.sqlite").process(1).memset(0, 50, stream=9)
    for number in range(4):
        at = 1000 * number
        report.kernel("gemm", at, at + 100).memcpy(at + 200, at + 300).nvtx("step", at, at + 900)
    return report.write()


@pytest.fixture(params=["KERNEL", "MEMCPY", "MEMSET"])
def strange(request: pytest.FixtureRequest, sound: Path) -> Path:
    path = sound.with_name("strange.sqlite")
    shutil.copyfile(sound, path)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute(f"ALTER TABLE CUPTI_ACTIVITY_KIND_{request.param} RENAME deviceId TO place")
    return path


def document(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    main([*map(str, arguments), "--format", "json", "--no-cache"])
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_the_overview_has_no_figure_of_it(
    strange: Path, sound: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert document(capsys, "overview", sound)["breakdown"]["gpu_active_ns"] > 0
    found = document(capsys, "overview", strange)
    session = found["breakdown"].pop("session_ns")
    assert session == found["report"]["session_ns"]
    assert set(found["breakdown"].values()) == {None}
    assert found["headline"] is None
    assert found["base_ns"] is None
    assert found["devices"] == found["top_kernels"] == []
    assert any("place" in str(note) for note in found["notes"])
    assert not any("no GPU work in this report" in str(note) for note in found["notes"])


def test_the_overview_in_words_says_not_known(
    strange: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["overview", str(strange), "--no-cache"])
    text = capsys.readouterr().out
    assert "GPU work  not known" in text
    assert "0 ns" not in text.partition("Top NVTX ranges")[0]
    assert "verdict   Cannot say: CUPTI_ACTIVITY_KIND_" in text


def test_no_idle_time_is_told(strange: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["stalls", str(strange), "--no-cache"]) != 0
    assert "GPU work is not known" in capsys.readouterr().err


@pytest.mark.parametrize("swapped", [False, True])
def test_nothing_is_compared_as_new_or_gone(
    sound: Path, strange: Path, swapped: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    sides = (strange, sound) if swapped else (sound, strange)
    found = document(capsys, "compare", *sides, "--findings")
    assert "better" not in json.dumps(found)
    assert "worse" not in json.dumps(found)
    main(["compare", *map(str, sides), "--no-cache"])
    text = capsys.readouterr().out
    assert "GPU work not known" in text
    assert f"not known in {'A' if swapped else 'B'}" in text
    assert "wall" not in text.partition("Kernels and CUDA graphs")[0].partition("Verdict")[2]


@pytest.mark.parametrize("alone", [True, False])
def test_a_fleet_counts_nothing_of_it_and_says_so(
    strange: Path, sound: Path, capsys: pytest.CaptureFixture[str], alone: bool
) -> None:
    paths = [strange] if alone else [sound, strange]
    found = document(capsys, "fleet", *paths, "--workers", 1)["sections"]
    unknown = f"GPU work of rank {len(paths) - 1} is not known: it is not in this"
    for name in ("ranks", "total", "steps", "step_ranks", "kernels", "copies"):
        assert unknown in found[name]["notes"], name
    assert len(found["ranks"]["rows"]) == len(paths) - 1
    assert any("strange.sqlite: CUPTI" in note for note in found["reports"]["notes"])
    assert found["step_ranks"]["rows"][-1]["median_compute_ns"] is None
    most = {row["most_compute_ns"] for row in found["steps"]["rows"]}
    assert most == ({None} if alone else {100})


@pytest.fixture
def unlinked(sound: Path) -> Path:
    """A copy in which nothing tells which call launched a kernel."""
    path = sound.with_name("unlinked.sqlite")
    shutil.copyfile(sound, path)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL RENAME correlationId TO link")
    return path


@pytest.mark.parametrize("report", ["cuda_gpu_kern_sum", "cuda_gpu_sum", "cuda_gpu_trace"])
def test_stats_name_the_column_that_is_missing(
    report: str, strange: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["stats", "-r", report, str(strange), "--no-cache"])
    said = capsys.readouterr().out
    assert "SKIPPED" in said
    assert "has no column deviceId" in said.partition("SKIPPED")[2]
    assert "does not contain" not in said


def test_launches_without_their_link_are_skipped_by_its_name(
    unlinked: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["stats", "-r", "cuda_kern_exec_sum", str(unlinked), "--no-cache"])
    said = capsys.readouterr().out
    assert "has no column correlationId" in said.partition("SKIPPED")[2]


def test_iterations_do_not_say_that_there_is_no_gpu_work(
    strange: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["iterations", str(strange), "--no-cache"]) == 0
    said = capsys.readouterr().out
    assert "no GPU work" not in said
    assert "how busy GPUs were is not known" in said


def test_causes_are_not_compared_where_one_side_cannot_know_them(
    sound: Path, unlinked: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["compare", str(sound), str(unlinked), "--no-cache"])
    said = capsys.readouterr().out
    assert "not known in B" in said.partition("Idle time by cause")[2].partition("\n\n")[0]
    assert document(capsys, "compare", sound, unlinked)["stalls"] == []


def test_what_a_lost_table_gives_is_not_said_to_be_none(
    sound: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with closing(sqlite3.connect(sound, isolation_level=None)) as db:
        db.execute("DROP TABLE StringIds")
    main(["analyze", str(sound), "--no-cache"])
    text = capsys.readouterr().out
    (said,) = [one for one in text.split("\n") if "grids, blocks" in one]
    assert "StringIds is missing" in said
    assert "nothing can be found: GPU work is not known" in text
    assert "nothing found" not in text


@pytest.mark.parametrize("swapped", [False, True])
def test_calls_that_one_side_lost_are_not_compared_as_new_or_gone(
    sound: Path, swapped: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    called = Synth(sound.with_name("called.sqlite"))
    for number in range(4):
        at = 1000 * number
        called.launch("gemm", (at, at + 9), (at + 20, at + 120))
    paths = [called.write(), sound][:: -1 if swapped else 1]
    assert document(capsys, "compare", *paths)["api"] == []
    main(["compare", *map(str, paths), "--no-cache"])
    assert "CUDA API calls in this report: GPU work is there" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("call", "what", "group", "figure"),
    [
        ("cudaLaunchKernel_v7000", "kernels", "kernels", "compute"),
        ("cudaMemcpyAsync_v3020", "copies", "copies", "memory"),
    ],
)
def test_work_that_one_side_lost_is_told_and_not_judged(
    sound: Path, call: str, what: str, group: str, figure: str, capsys: pytest.CaptureFixture[str]
) -> None:
    called = Synth(sound.with_name("called.sqlite")).process(1).memset(0, 50, stream=9)
    for number in range(4):
        called.api(call, 1000 * number, 1000 * number + 9)
        if what == "kernels":
            called.memcpy(1000 * number + 200, 1000 * number + 300)
        else:
            called.kernel("gemm", 1000 * number, 1000 * number + 100)
    lost = called.write()
    main(["compare", str(sound), str(lost), "--no-cache"])
    assert f"B: {what} of 4 calls are not recorded" in capsys.readouterr().out
    for side, judged in ((sound, True), (lost, False)):
        found = document(capsys, "compare", sound, side)
        figures = found["summary"]
        assert (figure in figures, "busy" in figures, "idle" in figures) == (judged,) * 3
        assert bool(found[group]) == judged
