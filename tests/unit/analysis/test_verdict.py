"""The verdict line on runs whose truth is planted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from synth import Synth

from nsys_tui.analysis.rules.case import Case
from nsys_tui.analysis.rules.ranking import find_in
from nsys_tui.analysis.rules.verdict import verdict
from nsys_tui.reader import open_report

if TYPE_CHECKING:
    from pathlib import Path

MS = 1_000_000


def told(synth: Synth) -> str:
    case = Case(open_report(synth.write()))
    return verdict(case, find_in(case))


def late_loader(path: Path, read: int) -> Synth:
    """Ten kernels of 50 ms; before the last one the host reads a file for ``read`` ns."""
    synth = Synth(path / "r.sqlite").process(10, "train")
    start = 0
    for number in range(10):
        if number == 9:
            synth.osrt("pread64", start + 10, start + read - 10)
            start += read
        synth.launch(f"work{number}", call=(start, start + 5), gpu=(start + 10, start + 50 * MS))
        start += 50 * MS
    return synth


def test_what_could_give_back_most_is_named_with_its_share(tmp_path: Path) -> None:
    line = told(late_loader(tmp_path, read=100 * MS))
    assert line.startswith("GPU 83% busy. Worth fixing: idle, OSRT call: pread64 (up to 16.7%); ")


def test_what_gives_back_less_than_a_hundredth_is_not_worth_fixing(tmp_path: Path) -> None:
    line = told(late_loader(tmp_path, read=4 * MS))
    assert line == "GPU 99% busy. Nothing found that would give back 1%"


def test_a_run_of_one_kernel_is_decided_by_it(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(10)
    line = told(synth.launch("lone", call=(0, 5), gpu=(10, 50 * MS)))
    assert line == "GPU 100% busy. Most of the run is lone (100.0%). " + (
        "Nothing found that would give back 1%"
    )


def test_without_gpu_work_it_says_what_would_record_it(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(10).osrt("read", 0, 50)
    line = told(synth)
    assert line == "Cannot say: no kernels in this report: record with nsys profile --trace=cuda"


def test_without_calls_it_does_not_guess_why_the_gpu_stood_idle(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(10)
    synth.kernel("a", 0, 50 * MS).kernel("b", 100 * MS, 150 * MS)
    assert told(synth).startswith("GPU 67% busy. Worth fixing: idle, unknown (up to 33.3%)")


def test_idle_time_below_the_threshold_without_calls_cannot_be_explained(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(10)
    for number in range(100):
        synth.kernel(f"k{number}", number * 50_000, number * 50_000 + 45_000)
    assert "Why it is idle cannot be said: no CUDA API calls" in told(synth)


def test_a_busy_gpu_without_calls_is_not_called_idle(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(10)
    synth.kernel("a", 0, 50 * MS).kernel("b", 50 * MS, 100 * MS)
    assert told(synth) == "GPU 100% busy. Nothing found that would give back 1%"
