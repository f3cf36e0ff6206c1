from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING, Any

import pytest
from synth import Synth
from training import Run

from nsys_tui import cli

if TYPE_CHECKING:
    from pathlib import Path

    from nsys_tui.analysis.rules.finding import Finding

Out = pytest.CaptureFixture[str]
QUIET = ("--run-noise", "0")
"""As if runs did not differ: what these tests plant is smaller than what is assumed of one run."""
NASTY = "evil|`\x1b[31m;x(int)"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("runs")
    made = {
        "a": Run(jitter=0.004, seed=1),
        "b": Run(jitter=0.004, seed=2, scale=1.05),
        "c": Run(jitter=0.004, seed=3),
        "other": Run(names=((NASTY, 90),), step_name="epoch"),
        "nasty": Run(names=((NASTY, 300), ("gemm_kernel(float*)", 300)), step_name="step"),
    }
    return {name: str(run.write(folder / f"{name}.sqlite")) for name, run in made.items()}


def run(capsys: Out, *words: str) -> tuple[int, str, str]:
    status = cli.main([*words])
    out, err = capsys.readouterr()
    return status, out, err


def as_json(capsys: Out, *words: str) -> dict[str, Any]:
    _, out, _ = run(capsys, "compare", *words, "--format", "json", "--no-cache", *QUIET)
    return dict(json.loads(out))


def test_exit_status_tells_gate_and_not_comparable(runs: dict[str, str], capsys: Out) -> None:
    for words, status in (
        (("a", "b"), 0),
        (("a", "b", "--gate", "3%"), 1),
        (("a", "b", "--gate", "6%"), 0),
        (("b", "a", "--gate", "3%"), 0),
        (("a", "c", "--gate", "3%"), 0),
        (("a", "a", "--gate", "0%"), 0),
        (("a", "other", "--gate", "3%"), 2),
    ):
        paths = [runs.get(word, word) for word in words]
        found, _, err = run(capsys, "compare", *paths, *QUIET, "--no-cache", "--no-findings")
        assert found == status, words
        assert ("gate 3% hit" in err) == (status == 1)
        assert ("not comparable" in err) == (status == 2)


def test_json_holds_everything(runs: dict[str, str], capsys: Out) -> None:
    data = as_json(capsys, runs["a"], runs["b"])
    assert (data["verdict"], data["basis"], data["threshold"]) == ("worse", "steps", 0.01)
    assert data["change"] == pytest.approx(0.047, abs=0.004)
    assert data["interval"][0] < data["change"] < data["interval"][1]
    assert data["a"]["steps"] == {
        "rule": "by NVTX name",
        "name": "step #",
        "steady": 11,
        "compared": 11,
    }
    gemm = next(row for row in data["kernels"] if row["name"] == "gemm_kernel")
    assert gemm["kind"] == "slower"
    assert gemm["a_ns"] + gemm["delta_ns"] == pytest.approx(gemm["b_ns"])
    assert 0 < data["summary"]["busy_share"]["a_share"] < 1
    assert {change["status"] for change in data["findings"]} <= {"solved", "new", "in both"}


def test_a_report_against_itself_is_the_same(runs: dict[str, str], capsys: Out) -> None:
    data = as_json(capsys, runs["a"], runs["a"])
    assert (data["verdict"], data["change"]) == ("same", 0.0)
    assert all(row["delta_ns"] == 0 for row in data["kernels"])


def test_text_says_what_is_unfair_before_the_verdict(
    runs: dict[str, str], tmp_path: Path, capsys: Out
) -> None:
    other = str(Run(gpu="Faster GPU").write(tmp_path / "other.sqlite"))
    words = ("compare", runs["a"], other, "--no-cache", "--no-findings", *QUIET)
    _, out, _ = run(capsys, *words)
    lines = out.splitlines()
    unfair = lines.index("! unfair: GPUs: Test GPU | Faster GPU")
    verdict = next(place for place, line in enumerate(lines) if line.startswith("same: mean wall"))
    assert unfair < verdict < next(n for n, line in enumerate(lines) if "gemm_kernel" in line)
    assert "not compared: --findings" in out


def test_the_verdict_is_printed_before_the_rules_run(
    runs: dict[str, str], capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed = []

    def told(*_: object) -> list[Finding]:
        printed.append(capsys.readouterr())
        return []

    monkeypatch.setattr("nsys_tui.analysis.rules.ranking.find", told)
    words = ("compare", runs["a"], runs["b"], "--gate", "3%", "--no-cache", *QUIET)
    assert run(capsys, *words)[0] == 1
    before = "".join(out + err for out, err in printed)
    assert len(printed) == 2
    assert "gate 3% hit" in before
    assert "worse: mean wall" in before
    printed.clear()
    for extra in (("--format", "csv"), ("--section", "summary"), ("--no-findings",)):
        run(capsys, *words, *extra)
    assert not printed, "rules whose findings nobody sees are not run"


def test_markdown_is_safe_for_a_pull_request(runs: dict[str, str], capsys: Out) -> None:
    words = (runs["a"], runs["nasty"], "--format", "markdown", "--no-cache")
    _, out, _ = run(capsys, "compare", *words)
    assert out.startswith("### ")
    assert "<details><summary>Kernels and CUDA graphs, mean per step" in out
    assert out.count("<details>") == out.count("</details>")
    assert "\x1b" not in out
    assert "evil\\|\\`" in out


def test_csv_has_one_header_and_plain_numbers(runs: dict[str, str], capsys: Out) -> None:
    _, out, _ = run(
        capsys, "compare", runs["a"], runs["b"], "--format", "csv", "--no-cache", *QUIET
    )
    rows = list(csv.DictReader(io.StringIO(out)))
    assert {row["Section"] for row in rows} >= {"summary", "kernels", "copies", "api", "stalls"}
    wall = next(row for row in rows if row["Name"] == "wall")
    assert float(wall["A"]) + float(wall["Delta"]) == pytest.approx(float(wall["B"]))
    assert wall["Verdict"] == "worse"


def test_sections_and_rows_can_be_chosen(runs: dict[str, str], capsys: Out) -> None:
    words = ("compare", runs["a"], runs["b"], "--no-cache", "--section", "kernels", "--top", "1")
    _, out, _ = run(capsys, *words, *QUIET)
    assert "gemm_kernel" in out
    assert "adamw" not in out
    assert "2 more names, 2 of them changed" in out
    assert "CUDA API calls" not in out
    data = as_json(capsys, runs["a"], runs["b"], "--section", "kernels")
    assert "kernels" in data
    assert "api" not in data


def test_parts_of_one_report(runs: dict[str, str], capsys: Out) -> None:
    data = as_json(capsys, runs["a"], "--iteration-a", "2", "--iteration-b", "step 5")
    assert data["a"]["label"] == "a.sqlite iteration 2: step 2"
    assert data["b"]["label"] == "a.sqlite iteration 5: step 5"
    assert data["verdict"] == "not comparable"
    data = as_json(capsys, runs["a"], "--window-a", "/5ms", "--window-b", "5ms/10ms")
    assert data["summary"]["wall"]["b_ns"] == 5_000_000
    status, _, err = run(capsys, "compare", runs["a"], "--iteration-a", "99", "--no-cache")
    assert status == 64
    assert "0 to 11" in err


def test_a_baseline_serves_when_its_report_is_gone(
    runs: dict[str, str], tmp_path: Path, capsys: Out
) -> None:
    before = Run(jitter=0.004, seed=1).write(tmp_path / "before.sqlite")
    direct = as_json(capsys, str(before), runs["b"])
    assert run(capsys, "baseline", "save", "main", str(before), "--no-cache")[0] == 0
    kept = as_json(capsys, runs["b"], "--baseline", "main")
    for key in ("verdict", "change", "interval", "summary", "kernels", "stalls", "findings"):
        assert kept[key] == direct[key], key
    before.unlink()
    status, out, _ = run(
        capsys, "compare", runs["b"], "--baseline", "main", "--gate", "3%", "--no-cache", *QUIET
    )
    assert status == 1
    assert "baseline main: before.sqlite; its report is no longer there" in out
    _, out, _ = run(capsys, "baseline", "list")
    assert "gone: only its figures are kept" in out
    listed = json.loads(run(capsys, "baseline", "list", "--format", "json")[1])
    assert [(b["name"], b["there"], b["steady_steps"]) for b in listed] == [("main", False, 11)]
    assert run(capsys, "baseline", "rm", "main")[0] == 0
    status, _, err = run(capsys, "compare", runs["b"], "--baseline", "main", "--no-cache")
    assert status == 64
    assert "no baseline is called 'main'" in err


def test_a_window_is_of_both_sides_unless_one_has_its_own(
    runs: dict[str, str], capsys: Out
) -> None:
    def kernels(*words: str) -> list[tuple[int, int]]:
        data = as_json(capsys, runs["a"], runs["b"], "--no-findings", *words)
        return [(row["a_count"], row["b_count"]) for row in data["kernels"]]

    both = kernels("--window-a", "2ms/9ms", "--window-b", "2ms/9ms")
    assert kernels("--window", "2ms/9ms") == both != kernels()
    own = kernels("--window-a", "2ms/5ms", "--window-b", "2ms/9ms")
    assert kernels("--window", "2ms/9ms", "--window-a", "2ms/5ms") == own != both


def test_a_baseline_is_of_the_part_that_was_asked_for(runs: dict[str, str], capsys: Out) -> None:
    part = ("--window", "2ms/9ms")
    assert run(capsys, "baseline", "save", "part", runs["a"], *part, "--no-cache")[0] == 0
    data = as_json(capsys, runs["a"], "--baseline", "part", *part)
    assert data["verdict"] == "same"
    assert data["a"]["base_ns"] == data["b"]["base_ns"] == 7_000_000
    assert run(capsys, "baseline", "save", "x", runs["a"], "--device", "9", "--no-cache")[0] == 64


def test_a_baseline_decides_how_kernels_are_named(runs: dict[str, str], capsys: Out) -> None:
    run(capsys, "baseline", "save", "full", runs["a"], "--names", "full", "--no-cache")
    words = ("compare", runs["b"], "--baseline", "full", "--no-cache", "--format", "json", *QUIET)
    code, out, _ = run(capsys, *words)
    assert code == 0
    assert {row["kind"] for row in json.loads(out)["kernels"]} == {"slower"}
    code, _, err = run(capsys, *words, "--names", "short")
    assert code == 64
    assert "baseline full was saved with --names full" in err


@pytest.mark.parametrize("name", ["../evil", "", ".hidden", "a/b", "x" * 65, "a\n"])
def test_names_of_baselines_never_leave_their_folder(
    runs: dict[str, str], name: str, capsys: Out
) -> None:
    status, _, err = run(capsys, "baseline", "save", name, runs["a"], "--no-cache")
    assert status == 64
    assert "not a name for a baseline" in err


def test_a_damaged_baseline_is_named_with_the_next_step(runs: dict[str, str], capsys: Out) -> None:
    _, out, _ = run(capsys, "baseline", "save", "x", runs["a"], "--no-cache")
    path = out.strip()
    with open(path, "w", encoding="utf-8") as file:
        file.write('{"name": "x", "side": 3}')
    status, _, err = run(capsys, "compare", runs["a"], "--baseline", "x", "--no-cache")
    assert status == 64
    assert "cannot be read as a baseline" in err
    assert "baseline save x" in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["A"], "nothing to compare it with"),
        (["A", "B", "--baseline", "x"], "give one report"),
        (["A", "--baseline", "x", "--folded"], "holds no stacks"),
        (["A", "B", "--window-a", "0/1ms", "--iteration-a", "1"], "exclude each other"),
        (["A", "B", "--gate", "much"], "not a percentage"),
        (["A", "B", "--gate", "-1"], "not a percentage"),
        (["A", "B", "--iteration", "("], "not a regular expression"),
    ],
)
def test_usage_errors_say_what_to_do(
    runs: dict[str, str], words: list[str], said: str, capsys: Out
) -> None:
    known = {"A": runs["a"], "B": runs["b"]}
    status, out, err = run(capsys, "compare", *(known.get(w, w) for w in words), "--no-cache")
    assert (status, out) == (64, "")
    assert said in err


def test_differential_stacks_for_flamegraph_pl(runs: dict[str, str], capsys: Out) -> None:
    status, out, err = run(capsys, "compare", runs["a"], runs["b"], "--folded", "--no-cache")
    assert status == 0
    stacks = {}
    for line in out.splitlines():
        frames, *weights = line.rsplit(" ", 2)
        stacks[frames] = tuple(map(int, weights))
    assert set(stacks) == {
        "step #;adamw",
        "step #;gemm_kernel",
        "step #;softmax_kernel",
        "step #;[CUDA memcpy Device-to-Host]",
    }
    before, after = stacks["step #;gemm_kernel"]
    # Four kernels of 300 us a step.
    assert before == pytest.approx(1_200_000, rel=0.005)
    assert after == pytest.approx(1_260_000, rel=0.005)
    assert "ns per steady step of A and of B" in err


def test_without_gpu_work_samples_of_as_many_steps_are_folded(tmp_path: Path, capsys: Out) -> None:
    paths = []
    for name, steps, slow in (("a", 12, 1), ("b", 15, 3)):
        made = Synth(tmp_path / f"{name}.sqlite")
        for step in range(steps):
            begin = step * 100_000
            made.nvtx("step", begin, begin + 90_000)
            for sample in range(slow):
                made.sample(begin + 10 + sample, ("slow", "main"))
            made.sample(begin + 50, ("same", "main"))
        paths.append(str(made.write()))
    status, out, err = run(capsys, "compare", *paths, "--folded", "--no-cache")
    assert (status, out) == (0, "main;same 12 12\nmain;slow 12 36\n")
    assert "samples in as many steady steps of A and of B" in err
    svg = tmp_path / "d.svg"
    run(capsys, "compare", *paths, "--svg", str(svg), "--no-cache")
    assert "A 12 samples, +24 samples" in svg.read_text()


def test_differential_flame_graph_is_blue_and_orange(
    runs: dict[str, str], tmp_path: Path, capsys: Out
) -> None:
    svg = tmp_path / "d.svg"
    words = ("compare", runs["a"], runs["nasty"], "--svg", str(svg), "--no-cache")
    assert run(capsys, *words)[0] == 0
    tree = ET.parse(svg)
    frames = [g for g in tree.iter() if g.get("class") == "frame"]
    fills = {g.get("data-name"): g[1].get("fill") for g in frames}
    assert fills["gemm_kernel"] in ("hsl(32,90%,95%)", "hsl(215,90%,95%)")
    nasty = next(fill for name, fill in fills.items() if str(name).startswith("evil"))
    assert str(nasty).startswith("hsl(32,90%,57%)")
    assert "stacks of A" in svg.read_text()


def test_output_can_be_cut_by_head(runs: dict[str, str]) -> None:
    words = f"{sys.executable} -m nsys_tui compare {runs['a']} {runs['b']} --no-cache --run-noise 0"
    for options in ("", "--format json", "--format csv", "--folded"):
        done = subprocess.run(
            ["bash", "-c", f"{words} {options} | head -1; exit ${{PIPESTATUS[0]}}"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0
        assert "Traceback" not in done.stderr
        assert len(done.stdout.splitlines()) == 1
