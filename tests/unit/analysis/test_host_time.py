from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from synth import Synth

from nsys_tui.analysis.host_time import host_time, osrt_calls, python_samples
from nsys_tui.analysis.overview import overview
from nsys_tui.analysis.thread_states import Witness
from nsys_tui.analysis.window import Scope
from nsys_tui.cli import main
from nsys_tui.reader import open_report

if TYPE_CHECKING:
    from pathlib import Path

    from nsys_tui.model.report import Report


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Thread 7 runs 600 of 1000 us, thread 8 100; a read of 300 us holds another call."""
    synth = Synth(tmp_path / "host.sqlite").process(1000)
    synth.meta("PROCESS_0:COLLECT_CUDA_TRACE", "true", capture=True)
    synth.meta("CAPTURE_EVENT_TYPE", "OSRuntime", capture=True)
    for time, switched_in, tid in (
        (0, True, 7),
        (400_000, False, 7),
        (800_000, True, 7),
        (1_000_000, False, 7),
        (100_000, True, 8),
        (200_000, False, 8),
    ):
        synth.sched(time, switched_in, tid=tid)
    synth.osrt("read", 400_000, 700_000, tid=7).osrt("ioctl", 500_000, 600_000, nesting=1, tid=7)
    synth.osrt("poll", 750_000, 800_000, tid=7).mpi("MPI_Barrier", 700_000, 750_000, tid=7)
    synth.environment("NvDriverVersion", "0").session(duration=1_000_000)
    return synth.write()


@pytest.fixture
def report(path: Path) -> Report:
    return open_report(path)


def test_threads_by_time_on_a_cpu(report: Report) -> None:
    threads = host_time(report, Scope()).threads
    assert [(t.name, t.cpu_ns, t.witness) for t in threads] == [
        ("tid 7", 600_000, Witness.MEASURED),
        ("tid 8", 100_000, Witness.MEASURED),
    ]
    assert threads[0].share == pytest.approx(0.6)


def test_a_window_clips_what_ran(report: Report) -> None:
    (thread,) = host_time(report, Scope(window=(300_000, 900_000))).threads
    assert (thread.cpu_ns, thread.share) == (200_000, pytest.approx(1 / 3))


def test_of_nested_calls_the_outermost_counts(report: Report) -> None:
    assert len(osrt_calls(report, Scope())) == 2
    found = overview(report).calls
    assert [(call.name, call.total_ns) for call in found] == [("read", 300_000), ("poll", 50_000)]


def test_without_gpu_work_the_verb_tells_of_the_host_and_why(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["overview", str(path)]) == 0
    said = capsys.readouterr().out
    assert "none: CUDA was asked for; no CUDA call was seen" in said
    assert "Threads by CPU time" in said
    assert "Top OS runtime calls" in said
    assert "recorded  1 MPI calls, 2 OS runtime calls" in said
    assert not any(word in said for word in ("driver", "gpu_active", "Time of each GPU"))
    assert main(["overview", str(path), "--format", "json"]) == 0
    host = json.loads(capsys.readouterr().out)["host"]
    assert [thread["cpu_ns"] for thread in host["threads"]] == [600_000, 100_000]
    assert [call["name"] for call in host["os_runtime_calls"]] == ["read", "poll"]


def test_a_report_with_gpu_work_tells_of_the_host_only_where_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    synth = Synth(tmp_path / "gpu.sqlite").process(1000).kernel("k", 0, 10, corr=1)
    path = synth.sched(0, True, tid=7).sched(10, False, tid=7).write()
    assert overview(open_report(path)).host is None
    assert main(["overview", str(path)]) == 0
    assert "Threads by CPU time" not in capsys.readouterr().out
    assert main(["overview", str(path), "--section", "threads"]) == 0
    assert "tid 7" in capsys.readouterr().out


def test_samples_of_python_are_counted_and_their_lack_named(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "python.sqlite").process(1000).domain(1, "Python Backtrace")
    synth.mark("", 10, domain=1).mark("", 20, domain=1).mark("own", 30)
    report = open_report(synth.write())
    assert len(python_samples(report)) == 2
    assert any(note.startswith("2 Python samples: nsys exports") for note in overview(report).notes)
