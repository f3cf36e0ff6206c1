from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from demo_making import make_report
from paths import needs_reports, report_paths
from synth import Synth

from nsys_tui.analysis.rules.case import Case
from nsys_tui.analysis.rules.finding import (
    CERTAINTY,
    OF_GAPS,
    Confidence,
    Finding,
    Severity,
    severity,
)
from nsys_tui.analysis.rules.ranking import RULES, find, gravest, ranked
from nsys_tui.cli import main
from nsys_tui.demo import problems
from nsys_tui.demo.report import simulate
from nsys_tui.reader import open_report

if TYPE_CHECKING:
    from pathlib import Path

MS = 1_000_000


@pytest.mark.parametrize(
    ("saved", "expected"),
    [(50.0, "high"), (49.9, "medium"), (10.0, "medium"), (9.9, "low"), (0, "low")],
)
def test_severity_is_the_share_that_could_be_saved(saved: float, expected: str) -> None:
    ms = 1_000_000
    assert severity(round(saved * ms), 1000 * ms) == expected
    assert severity(round(saved / 5 * ms), 1000 * ms, OF_GAPS) == (
        "medium" if expected == "low" and saved else expected
    )
    assert severity(round(saved * ms), 0) is Severity.LOW


def test_what_takes_no_time_worth_a_word_is_not_grave_in_a_short_run() -> None:
    assert severity(999_999, 1_000_000) is Severity.MEDIUM
    assert severity(99_999, 100_000) is Severity.LOW


def test_the_rules_all_say_how_sure_they_are() -> None:
    by_cause = {"gpu_idle", "sync_by_range"}
    finding = {name for name, rule in RULES.items() if rule.finds}
    assert finding - by_cause == {*CERTAINTY}


def finding(grade: Severity, saved: int, rule: str = "r") -> Finding:
    return Finding(rule, grade, "t", "s", "a", saved, None, None, "1", "c")


def test_the_gravest_come_first(tmp_path: Path) -> None:
    found = [
        finding(Severity.LOW, 900),
        finding(Severity.HIGH, 5),
        finding(Severity.HIGH, 7),
        finding(Severity.MEDIUM, 9),
    ]
    case = Case(open_report(Synth(tmp_path / "r.sqlite").process(10).write()))
    assert [(f.severity.letter, f.saved_ns) for f in ranked(case, found)] == [
        ("H", 7),
        ("H", 5),
        ("M", 9),
        ("L", 900),
    ]
    assert gravest(found) is Severity.HIGH
    assert gravest([]) is None


def test_a_guess_comes_after_what_is_known_of_like_size(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(10).kernel("k", 0, 1000 * MS)
    case = Case(open_report(synth.write()))

    def told(rule: str, saved_ms: int) -> Finding:
        about = f"{rule} {saved_ms}"
        (one,) = case.finding(rule, "t", "a", subject=about, saved_ns=saved_ms * MS, window=None)
        return one

    small, known = told("movement_kernels", 15), told("frequent_allocation", 20)
    like, larger = told("movement_kernels", 39), told("movement_kernels", 41)
    assert ranked(case, [small, like, known, larger]) == [larger, known, like, small]
    assert (small.severity, told("frequent_allocation", 15).severity) == (
        Severity.LOW,
        Severity.MEDIUM,
    )


def test_the_verb_hears_the_counters_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A kernel of few warps that keeps the tensor cores busy is at no fault."""
    synth = Synth(tmp_path / "r.sqlite").process(10).gpu(0)
    synth.kernel("gemm", 0, 90_000_000, grid=(1080, 1, 1), registersPerThread=255)
    for number in range(90):
        synth.gpu_metric(number * 1_000_000, "Tensor Active [Throughput %]", 92)
    assert main(["analyze", str(synth.write()), "--format", "json"]) == 0
    found = {one["rule"]: one for one in json.loads(capsys.readouterr().out)["findings"]}
    assert "let it do less" in found["dominant_kernel"]["advice"]
    assert found["low_occupancy"]["metrics"] == "tensor cores 92.0%"
    assert found["low_occupancy"]["advice"].startswith("no fault here")


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("demo")
    path, truth = folder / "demo.sqlite", folder / "truth.json"
    make_report(path, truth_path=truth)
    return path, json.loads(truth.read_text())


def test_every_planted_problem_is_found_with_its_figure(demo: tuple[Path, dict[str, Any]]) -> None:
    found = find(open_report(demo[0]))
    planted: dict[str, list[dict[str, Any]]] = {}
    for problem in demo[1]["problems"]:
        planted.setdefault(problem["kind"], []).append(problem)
    by_rule = {f.rule: f for f in reversed(found)}
    worst = {kind: max(p["duration_ns"] for p in mine) for kind, mine in planted.items()}
    # What the host does after waits, and launches that come late for them, are of these waits, too.
    assert 1 <= by_rule["sync_by_range"].saved_ns / worst["sync_stall"] < 1.2
    phase = max(planted["launch_bound"], key=lambda problem: problem["idle_ns"])
    # Queued kernels are up to a microsecond apart in the demo.
    assert 0 < phase["idle_ns"] - by_rule["launch_bound"].saved_ns <= 1000 * phase["operations"]
    exposed = max(device["exposed_comm_ns"] for device in demo[1]["devices"])
    assert by_rule["exposed_communication"].stake_ns == exposed
    straggler = planted["straggler"][0]
    extra = straggler["compute_ns"] - straggler["other_compute_ns"]
    # What it computes longer while its host reads on already is waited for nevertheless.
    assert 0.85 * extra < by_rule["gpu_imbalance"].saved_ns < 0.9 * extra
    # No compute hides the wait for the straggler, and the last bucket of each step stays.
    assert exposed - extra < by_rule["exposed_communication"].saved_ns < 0.8 * exposed
    assert "Train step 8" in by_rule["slow_steps"].title
    assert any("pread64" in f.title for f in found if f.severity is Severity.HIGH)
    assert "pageable" in by_rule["cuda_memcpy_async"].title


def test_a_slow_gpu_gives_back_what_the_run_does_without_its_fault(
    demo: tuple[Path, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def lasts() -> int:
        ends = [(one.start, one.end) for one in simulate().operations]
        return max(end for _, end in ends) - min(start for start, _ in ends)

    told = {f.rule: f for f in reversed(find(open_report(demo[0])))}["gpu_imbalance"]
    slow = lasts()
    monkeypatch.setattr(problems, "STRAGGLER_PERMILLE", 0)
    assert slow - lasts() < told.saved_ns < 1.2 * (slow - lasts())


def test_findings_say_where_to_look(demo: tuple[Path, dict[str, Any]]) -> None:
    report = open_report(demo[0])
    lo, hi = report.extent
    for f in find(report):
        assert f.advice
        assert f.command.startswith("nsys-tui ")
        assert f.screen in "123456789"
        if f.window is not None:
            assert lo <= f.window[0] < f.window[1] <= hi


def test_commands_that_findings_name_show_something(demo: tuple[Path, dict[str, Any]]) -> None:
    found = find(open_report(demo[0]))
    told = {text for one in found for text in (one.command, one.settle)}
    ours = [text.split()[1:] for text in told if text.startswith("nsys-tui ")]
    assert ["collectives", "REPORT"] in ours
    for words in ours:
        assert main([str(demo[0]) if word == "REPORT" else word for word in words]) == 0, words


@needs_reports
@pytest.mark.parametrize("path", report_paths(), ids=lambda path: path.stem)
def test_every_rule_in_every_format_on_every_report(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for fmt in ("table", "csv", "markdown"):
        assert main(["analyze", str(path), "--format", fmt]) == 0
    assert main(["analyze", str(path), "-r", "all"]) == 0
    capsys.readouterr()
    assert main(["analyze", str(path), "-r", "all", "--format", "json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert set(shown["rules"]) == set(RULES)


def test_the_exit_code_is_zero_unless_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(Synth(tmp_path / "r.sqlite").process(1).kernel("k", 0, 900).write())
    assert main(["analyze", path]) == 0
    assert main(["analyze", path, "--fail-on", "low"]) == 1
    assert main(["analyze", path, "--fail-on", "medium"]) == 0
    assert main(["analyze", path, "-r", "gpu_gaps", "--fail-on", "low"]) == 0
    capsys.readouterr()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--timeunit=ms"], "--format csv:time=ms"),
        (["-o", "x"], "> FILE"),
        (["--filter-time=0/1s"], "--window"),
        (["--help-formats"], "analyze --help"),
    ],
)
def test_options_of_nsys_analyze_name_what_does_the_same(
    words: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["analyze", *words, "r.sqlite"]) == 64
    err = capsys.readouterr().err
    assert words[0].partition("=")[0] in err
    assert says in err


def test_usage_errors_name_the_way_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(Synth(tmp_path / "r.sqlite").process(1).kernel("k", 0, 9).write())
    assert main(["analyze", path, "-r", "nonsense"]) == 64
    assert "gpu_gaps" in capsys.readouterr().err
    assert main(["analyze", path, "-r", "all", "--format", "csv"]) == 64
    assert main(["analyze"]) == 64
    assert main(["analyze", "--help-rules"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in RULES)
    assert main(["analyze", "--help-rules", "cuda-sync-api"]) == 0  # an older name
    shown = capsys.readouterr().out
    assert [name for name in RULES if f"{name} --" in shown] == ["cuda_api_sync"]


@needs_reports
@pytest.mark.parametrize("path", report_paths(), ids=lambda path: path.stem)
def test_every_finding_of_a_real_report_can_be_followed(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its window lies where its GPU works (else the host), its time within, its command runs."""
    report = open_report(path, use_cache=False)
    ops = report.operations
    found = find(report)
    for entry in found:
        assert len(entry.title) <= 100
        assert entry.advice
        if entry.window is not None:
            start, end = entry.window
            assert start <= end
            on = ops if entry.device is None else ops.take(ops.device == entry.device)
            lo, hi = on.bounds() or report.extent
            assert lo <= end, entry.title
            assert start <= hi, entry.title
            assert 0 <= entry.saved_ns <= (hi - lo) * max(1, len(report.devices)), entry.title
    commands = {entry.command for entry in found} | {
        entry.settle for entry in found if entry.settle.startswith("nsys-tui ")
    }
    report.close()
    for command in commands:
        program, *words = shlex.split(command)
        assert program == "nsys-tui"
        words = [str(path) if word == "REPORT" else word for word in words]
        assert main(words) in (0, 1), command
        assert capsys.readouterr().out, command


@pytest.mark.parametrize(("priced", "leads"), [(49, False), (51, True)])
def test_what_could_give_back_little_stands_behind_more_idle_time_without_a_price(
    tmp_path: Path, priced: int, leads: bool
) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(10).kernel("k", 0, 1000 * MS)
    case = Case(open_report(synth.write()))
    (copies,) = case.finding(
        "exposed_copies", "t", "a", subject="copies", saved_ns=priced * MS, window=None
    )
    (idle,) = case.finding(
        "gpu_idle", "t", "a", subject="idle", saved_ns=0, stake_ns=400 * MS, window=None,
        at_most=Severity.MEDIUM, confidence=Confidence.INFERRED,
    )  # fmt: skip
    assert ranked(case, [copies, idle]) == ([copies, idle] if leads else [idle, copies])


@pytest.mark.parametrize(("stake", "rated"), [(900_000, Severity.LOW), (1_100_000, "medium")])
def test_little_time_without_a_price_is_low(tmp_path: Path, stake: int, rated: str) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(10)
    for start in range(0, 100, 10):
        synth.kernel("k", start * 1_000_000, (start + 10) * 1_000_000)
    lost = np.array([0], np.int64), np.array([stake], np.int64)
    (one,) = Case(open_report(synth.write(), use_cache=False)).finding(
        "gpu_idle", "idle", "see why", subject="idle", saved_ns=0, stake_ns=stake, window=None,
        lost=lost, confidence=Confidence.INFERRED,
    )  # fmt: skip
    assert one.severity == rated
