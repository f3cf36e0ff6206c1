"""A fleet of reports without GPU work tells no figure of a GPU."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from synth import Synth

from nsys_tui.cli import main

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_a_fleet_without_gpu_work_has_no_span(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spans = []
    for name, status in (("host", 66), ("gpu", 0)):
        (tmp_path / name).mkdir()
        for rank in range(2):
            synth = Synth(tmp_path / name / f"r{rank}.sqlite").session(1000).process(7 + rank)
            synth.nvtx("step", 0, 900)
            if name == "gpu":
                synth.kernel("k", 10, 60)
            synth.write()
        assert main(["fleet", str(tmp_path / name), "--format", "json"]) == status
        spans.append(json.loads(capsys.readouterr().out)["span_ns"])
    assert spans[0] is None
    assert spans[1][1] - spans[1][0] == 50


def test_sql_tells_the_steps_of_a_report_without_kernels(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    synth = Synth(tmp_path / "r.sqlite").session(1000).process(7)
    for number in range(4):
        synth.nvtx(f"step {number}", number * 100, number * 100 + 90)
    path = str(synth.write())
    query = "select label, gpu_busy_ns from steps limit 1"
    assert main(["sql", path, query, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == [{"label": "step 0", "gpu_busy_ns": None}]


def test_runs_without_steps_have_no_mean_wall(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(Synth(tmp_path / "r.sqlite").session(1000).process(7).nvtx("x", 0, 900).write())
    base = str(tmp_path / "base.json")
    assert main(["baseline", "add", "--file", base, path]) == 0
    capsys.readouterr()
    assert main(["baseline", "runs", base, "--format", "json"]) == 0
    assert [run["mean_wall_ns"] for run in json.loads(capsys.readouterr().out)] == [None]
