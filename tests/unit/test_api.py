"""The Python API: DataFrames equal plain SQL and the command line, and share memory."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from demo_making import make_report
from paths import needs_reports, report_paths

import nsys_tui
from nsys_tui import cli
from nsys_tui.analysis.stats.query import REPORTS as STATS
from nsys_tui.analysis.stats.reports import DEFAULT
from nsys_tui.errors import NoDataError, UnreadableReportError, UsageError
from nsys_tui.export.events import TABLES

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("api") / "report.sqlite"
    make_report(made, steps=4)
    return made


@pytest.fixture
def profile(path: Path):
    with nsys_tui.open(path, use_cache=False) as opened:
        yield opened


def sql(path: Path, query: str) -> list[tuple]:
    return sqlite3.connect(path).execute(query).fetchall()


def test_kernels_are_those_of_the_file(path: Path, profile) -> None:
    frame = profile.kernels
    rows = sql(
        path,
        """SELECT k.start, k."end", s.value, k.streamId, k.correlationId
        FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s ON s.id = k.demangledName
        ORDER BY k.start, k._rowid_""",
    )
    assert len(frame) == len(rows)
    found = frame.sort_values(["start_ns", "rowid"], kind="stable")
    columns = zip(*rows, strict=True)
    for key, values in zip(
        ("start_ns", "end_ns", "name", "stream", "correlation"), columns, strict=True
    ):
        assert found[key].tolist() == list(values), key
    assert {frame[key].dtype for key in ("start_ns", "end_ns", "duration_ns")} == {
        np.dtype("int64")
    }
    assert isinstance(frame["name"].dtype, pd.CategoricalDtype)


def test_times_are_shared_with_the_report_and_cannot_be_changed(profile) -> None:
    ranges = profile.ranges
    held = profile.report.ranges
    assert np.shares_memory(ranges["start_ns"].to_numpy(), held.start)
    first = int(held.start[0])
    with pytest.raises(ValueError, match="read-only"):
        ranges.loc[0, "start_ns"] = -1
    ranges["start_ns"] = ranges["start_ns"] - first  # "-=" writes into it before pandas 3
    copied = profile.ranges.copy()
    copied.loc[0, "start_ns"] = -1
    assert int(held.start[0]) == profile.ranges["start_ns"][0] == first


def test_a_window_is_text_or_ns(path: Path, profile) -> None:
    lo, hi = 400_000_000, 450_000_000
    (count,) = sql(
        path,
        f"""SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL
        WHERE start < {hi} AND ("end" > {lo} OR start >= {lo})""",
    )[0]
    assert len(profile.events("kernels", window=("400ms", "450ms"))) == count
    assert len(profile.events("kernels", window=(lo, hi))) == count
    assert len(profile.events("kernels", window=(None, None))) == len(profile.kernels)
    one = profile.events("kernels", device=1)
    assert set(one["device"]) == {"GPU 1"}
    for wrong in ({"window": (5, 5)}, {"device": 9}):
        with pytest.raises(UsageError):
            profile.events("kernels", **wrong)


def test_analyses_are_those_of_the_command_line(
    path: Path, profile, capsys: pytest.CaptureFixture[str]
) -> None:
    def printed(*words: str):
        assert cli.main([words[0], str(path), *words[1:], "--format", "json", "--no-cache"]) == 0
        return json.loads(capsys.readouterr().out)

    gaps = printed("stalls")["gaps"]
    stalls = profile.stalls()
    for key in ("start_ns", "idle_ns", "cause", "thread", "severity"):
        assert stalls[key].astype(object).where(stalls[key].notna(), None).tolist() == [
            gap[key] for gap in gaps
        ]
    kernels = printed("stats", "-r", "cuda_gpu_kern_sum")
    stats = profile.stats("cuda_gpu_kern_sum")
    assert stats["total_time_ns"].tolist() == [row["Total Time (ns)"] for row in kernels]
    assert stats["time_share"].sum() == pytest.approx(1)
    devices = printed("overview")["devices"]
    assert profile.overview()["busy_ns"].tolist() == [device["busy_ns"] for device in devices]
    steps = printed("iterations")["iterations"]
    assert profile.iterations()["time_ns"].tolist() == [step["time_ns"] for step in steps]
    findings = printed("analyze")["findings"]
    assert profile.findings()["title"].tolist() == [finding["title"] for finding in findings]


def test_a_report_compared_with_itself_is_the_same(profile) -> None:
    found = profile.compare(profile)
    assert found.attrs["verdict"] == "same"
    assert (found["delta"] == 0).all()


@needs_reports
@pytest.mark.parametrize("real", report_paths(), ids=lambda real: real.stem)
def test_every_table_of_every_report_becomes_a_frame(real: Path) -> None:
    with nsys_tui.open(real, use_cache=False) as profile:
        asks = [lambda name=name: profile.events(name) for name in TABLES]
        asks += [lambda name=name: profile.stats(name) for name in (*DEFAULT, *STATS)]
        asks += [lambda name=name: profile.overview(name) for name in ("devices", "ranges")]
        for ask in asks:
            try:
                frame = ask()
            except NoDataError:
                continue
            assert frame.columns.is_unique
            keys = [str(key) for key in frame.columns]
            assert all(re.fullmatch(r"[a-z0-9_]+", key) for key in keys), keys
            for key in keys:
                if key.endswith("_ns") and not re.search("avg|med|mean|stddev|q1|q3", key):
                    assert frame[key].dtype in ("int64", "Int64"), (key, frame[key].dtype)


def test_a_window_is_a_pair_or_a_text(profile) -> None:
    pair = profile.stalls(by="cause", window=("0.4s", 500_000_000))
    assert profile.stalls(by="cause", window="0.4s/0.5s").equals(pair)


@pytest.mark.parametrize(("part", "error"), [
    ({"window": (0.4, 0.5)}, UsageError),
    ({"window": "0.4s"}, UsageError),
    ({"window": (1,)}, UsageError),
    ({"window": 5}, UsageError),
    ({"devise": 1}, TypeError),
    ({"device": "0"}, TypeError),
    ({"by": "x"}, UsageError),
])  # fmt: skip
def test_what_would_be_misread_is_refused(profile, part: dict, error: type) -> None:
    with pytest.raises(error):
        profile.stalls(**part)


def test_what_is_none_is_not_asked_for(profile) -> None:
    whole = profile.stalls(by="cause")
    assert profile.stalls(by="cause", window=None, device=None).equals(whole)
    one = profile.stalls(by="cause", device=np.int32(1))
    assert one.equals(profile.stalls(by="cause", device=1))
    assert not one.equals(whole)


def test_what_cannot_be_compared_is_refused(profile, path: Path) -> None:
    with pytest.raises(TypeError, match=r"nsys_tui\.open"):
        profile.compare(path)
    for threshold in (-0.01, 3):
        with pytest.raises(UsageError, match="no threshold"):
            profile.compare(profile, threshold=threshold)


def test_a_closed_report_says_so(path: Path) -> None:
    with nsys_tui.open(path, use_cache=False) as gone:
        assert len(gone.kernels)
    assert len(gone.kernels), "what was read stays"
    with pytest.raises(UnreadableReportError, match="it is closed\nopen it again"):
        gone.ranges  # noqa: B018


def test_frames_need_little_more_memory_than_their_columns(profile) -> None:
    events = profile.report.operations
    frame = profile.events("operations")
    own = sum(value.nbytes for value in vars(events).values() if isinstance(value, np.ndarray))
    labels = frame.memory_usage(deep=True).sum() - frame.memory_usage().sum()
    assert frame.memory_usage(index=False).sum() <= 1.5 * own, labels


def test_importing_loads_no_pandas_and_the_package_is_typed() -> None:
    code = "import sys, nsys_tui.api; print('pandas' in sys.modules, 'numpy' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["False", "False"]
    assert (ROOT / "nsys_tui" / "py.typed").is_file()


def test_the_example_of_the_documentation_runs(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (ROOT / "docs/python.md").read_text("utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", text, re.S)
    monkeypatch.chdir(path.parent)
    (path.parent / "after.sqlite").write_bytes(path.read_bytes())
    names: dict[str, object] = {}
    exec(compile(example, "python.md", "exec"), names)
    assert "same" in capsys.readouterr().out
    assert names["slow"]["mean"].is_monotonic_decreasing  # type: ignore[index]
