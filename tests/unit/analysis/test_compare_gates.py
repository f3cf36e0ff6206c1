from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from training import Run

from nsys_tui import cli
from nsys_tui.analysis.compare.gates import parse_gate
from nsys_tui.analysis.compare.history import sentences, shifts, since_jump
from nsys_tui.analysis.compare.pooling import runs_of
from nsys_tui.analysis.compare.side import Side, Steps
from nsys_tui.analysis.compare.stats import Sample
from nsys_tui.analysis.iterations.steps import Rule
from nsys_tui.analysis.rules import ranking
from nsys_tui.errors import UsageError
from nsys_tui.export import measured_sides
from nsys_tui.patterns import matching

if TYPE_CHECKING:
    from pathlib import Path

Out = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs that differ by 0.3 %: four of A, four of B that take 5 % longer, and others."""
    made = tmp_path_factory.mktemp("gates")
    noise = np.random.default_rng(8).normal(0, 0.003, 8)
    for number in range(4):
        for name, scale, place in (("a", 1.0, number), ("b", 1.05, number + 4)):
            run = Run(jitter=0.004, seed=place, scale=scale * (1 + noise[place]))
            run.write(made / f"{name}{number}.sqlite")
    Run(names=(("other(int)", 50), ("else(int)", 70))).write(made / "other.sqlite")
    Run(gpu="Faster GPU", scale=0.5).write(made / "faster.sqlite")
    Run(scale=2).write(made / "slow.sqlite")
    return made


def run(folder: Path, capsys: Out, *words: str) -> tuple[int, str, str]:
    known = {path.stem: str(path) for path in folder.glob("*.sqlite")}
    status = cli.main([*(known.get(word, word) for word in words), "--no-cache"])
    out, err = capsys.readouterr()
    return status, out, err


A, B = ("a0", "a1", "a2", "a3"), ("b0", "b1", "b2", "b3")


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ((*A, "--against", *B), 0),
        ((*A, "--against", *B, "--gate", "1%"), 1),
        ((*B, "--against", *A, "--gate", "1%"), 0),
        ((*A, "--against", *B, "--gate", "5%"), 3),
        ((*A, "--against", *B, "--gate", "5%", "--inconclusive", "pass"), 0),
        ((*A, "--against", *B, "--gate", "step:9%"), 0),
        ((*A, "--against", *B, "--gate", "9%", "--gate", "kernel:gemm.*:2%"), 1),
        ((*A, "--against", *B, "--gate", "kernel:^memset:2%"), 2),
        ((*A, "--against", *B, "--gate", "compute:+50us"), 1),
        ((*A, "--against", *B, "--gate", "compute:+500us"), 0),
        (("a0", "other", "--force", "--gate", "kernel:gemm:5%"), 2),
        (("a0", "other", "--force", "--gate", "kernel:gemm|other:5%"), 0),
        (("a0", "a1"), 3),
        (("a0", "a0"), 0),
        (("a0", "other"), 2),
        (("slow", "faster"), 2),
        (("slow", "faster", "--force"), 0),
        (("faster", "slow", "--force", "--gate", "3%"), 1),
    ],
)
def test_exit_status_of_every_verdict(
    folder: Path, words: tuple[str, ...], status: int, capsys: Out
) -> None:
    found, _, err = run(folder, capsys, "compare", *words, "--no-findings")
    assert found == status, err


def test_the_verdict_is_told_before_the_rows_are_made(
    folder: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise OSError("rows")

    _, whole, _ = run(folder, capsys, "compare", "a0", "b0")
    monkeypatch.setattr(measured_sides, "measure", broken)
    _, out, _ = run(folder, capsys, "compare", "a0", "b0")
    head, _, rest = whole.partition(out)
    assert (head, rest[:1]) == ("", "\n")
    assert "inconclusive: mean wall per step" in out


def test_reasons_say_what_they_rest_on(folder: Path, capsys: Out) -> None:
    _, out, _ = run(folder, capsys, "compare", "a0", "b0", "--section", "summary")
    assert "within this pair: run noise 2% assumed" in out
    assert "; more runs a side may settle it (threshold 1%)" in out
    _, out, _ = run(folder, capsys, "compare", *A, "--against", *B, "--section", "summary")
    assert "4 against 4 runs, which differ by 0." in out
    _, out, _ = run(folder, capsys, "compare", "a0", "other")
    assert "not comparable: 5 of 5 kernel names differ" in out
    _, out, _ = run(folder, capsys, "compare", "slow", "faster")
    assert "GPUs: Test GPU in A, Faster GPU in B, which explains a change" in out


def test_gates_as_json_junit_and_step_summary(
    folder: Path, tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    summary = tmp_path / "summary.md"
    summary.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    words = (
        *A,
        "--against",
        *B,
        "--gate",
        "1%",
        "--gate",
        "kernel:<gemm>:2%",
        "--gate",
        "memory:5%",
    )
    extra = ("--junit", str(tmp_path / "j.xml"), "--step-summary", "--format", "json")
    status, out, _ = run(folder, capsys, "compare", *words, "--no-findings", *extra)
    assert status == 1
    verdicts = [gate["verdict"] for gate in json.loads(out)["gates"]]
    assert verdicts == ["worse", "not comparable", "same"]
    suite = ET.parse(tmp_path / "j.xml").getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("3", "1", "1")
    assert [case.get("name") for case in suite] == ["1%", "kernel:<gemm>:2%", "memory:5%"]
    assert summary.read_text().startswith("before\n### worse: mean wall per step")
    assert "memory:5%" in summary.read_text()


@pytest.mark.parametrize(("gate", "failures"), [((), "0"), (("--gate", "3%"), "1")])
def test_a_test_fails_where_the_exit_status_does(
    folder: Path, tmp_path: Path, capsys: Out, gate: tuple[str, ...], failures: str
) -> None:
    words = ("faster", "slow", "--force", "--no-findings", *gate)
    status, out, _ = run(folder, capsys, "compare", *words, "--junit", str(tmp_path / "j.xml"))
    assert "worse: mean wall" in out
    suite = ET.parse(tmp_path / "j.xml").getroot()
    assert (str(status), suite.get("failures")) == (failures, failures)


def test_a_file_of_runs_holds_nothing_secret_and_survives_merges(
    folder: Path, tmp_path: Path, capsys: Out
) -> None:
    file = tmp_path / "perf" / "base.json"
    assert run(folder, capsys, "baseline", "add", "--file", str(file), *A)[0] == 0
    wrong = ("baseline", "add", "--file", str(file), "--label", "x", *A)
    assert run(folder, capsys, *wrong)[0] == 64
    text = file.read_text()
    assert len(json.loads(text)["runs"]) == 5  # and the null that ends it
    assert str(folder) not in text
    lines = text.splitlines()
    assert lines[1:-1] == sorted(lines[1:-1])
    merged = [lines[0], "<<<<<<< ours", *lines[1:3], "=======", *lines[2:], ">>>>>>> theirs"]
    file.write_text("\n".join(merged))
    words = ("b0", "--baseline-file", str(file), "--gate", "1%", "--section", "summary")
    status, out, _ = run(folder, capsys, "compare", *words)
    assert status == 1
    assert "4 against 1 runs" in out
    status, out, _ = run(folder, capsys, "compare", "a1", "--baseline-file", str(file))
    assert "it holds B itself, which is left out" in out
    file.write_text('{"nsys-tui baseline": 9, "runs": [\nnull]}\n')
    assert run(folder, capsys, "compare", "b0", "--baseline-file", str(file))[0] == 64


def test_a_report_is_in_every_row_the_same_as_in_the_file_that_holds_it(
    folder: Path, capsys: Out, tmp_path: Path
) -> None:
    file = tmp_path / "base.json"
    assert run(folder, capsys, "baseline", "add", "--file", str(file), "a0")[0] == 0
    words = ("a0", "--baseline-file", str(file), "--threshold", "0.01%", "--section", "summary")
    status, out, _ = run(folder, capsys, "compare", *words)
    assert status == 0
    assert "inconclusive" not in out
    assert out.count(" same") > 5


def test_a_run_of_another_kind_is_named_when_it_is_added(
    folder: Path, tmp_path: Path, capsys: Out
) -> None:
    add = "baseline", "add", "--file", str(tmp_path / "base.json")
    assert "not alike" not in run(folder, capsys, *add, *A, "slow")[2]
    for other, why in (("other", "kernel names differ"), ("faster", "GPUs Test GPU | Faster GPU")):
        status, _, err = run(folder, capsys, *add, other)
        assert status == 0
        assert f"and {other} are not alike: " in err
        assert why in err
        (tmp_path / "base.json").unlink()
        run(folder, capsys, *add, "a0")


@pytest.mark.parametrize(
    "damage",
    [
        {"metrics": {}},
        {"facts": {"nsys": 5}},
        {"recorded": [1]},
        {"origin": {"jobs": 5, "ranks": {}, "world": None, "communicators": [], "gpus": []}},
        {"kinds": [[1]]},
    ],
)
def test_a_damaged_file_of_runs_is_no_fault_of_the_program(
    folder: Path, tmp_path: Path, capsys: Out, damage: dict[str, object]
) -> None:
    file = tmp_path / "base.json"
    assert run(folder, capsys, "baseline", "add", "--file", str(file), A[0])[0] == 0
    first, line, last = file.read_text().splitlines()
    data = json.loads(line.removesuffix(","))
    data["run"] |= damage
    file.write_text(f"{first}\n{json.dumps(data)},\n{last}\n")
    words = ("compare", "b0", "--baseline-file", str(file), "--section", "summary")
    assert run(folder, capsys, *words)[0] in (0, 3, 64)


def test_a_side_is_measured_once(
    folder: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["compare", str(folder / "a0.sqlite"), str(folder / "b0.sqlite"), "--findings"]
    said = []
    for _ in range(2):
        assert cli.main(words) == 3
        said.append(capsys.readouterr().out)
        monkeypatch.setattr(measured_sides, "measure", None)
        monkeypatch.setattr(ranking, "find", None)
    assert "Findings" in said[0]
    assert said[0] == said[1]
    monkeypatch.setattr(measured_sides, "_rules", lambda: "a rule was changed")
    monkeypatch.setattr(ranking, "find", lambda *_: [])
    cli.main(words)
    assert capsys.readouterr().out != said[0]


@pytest.mark.parametrize("style", ["short", "normalised"])
def test_kernels_pair_whatever_else_one_side_has(tmp_path: Path, capsys: Out, style: str) -> None:
    kernels = (
        ("void k<f_kernel(int)::{lambda(int)#1}>(int)", 50),
        ("void gemm<float>(int)", 70),
    )
    more = (*kernels, ("void gemm<double>(int)", 3))
    for name, names in (("a", kernels), ("b", more)):
        Run(names=names).write(tmp_path / f"{name}.sqlite")
    words = ("--section", "kernels", "--format", "json", "--force")
    pairs: list[tuple[str, ...]] = [("a", "b", "--names", style)]
    file = str(tmp_path / "runs.json")
    assert run(tmp_path, capsys, "baseline", "add", "a", "--file", file, "--names", style)[0] == 0
    pairs += [("b", "--baseline-file", file)]
    for pair in pairs:
        rows = json.loads(run(tmp_path, capsys, "compare", *pair, *words)[1])["kernels"]
        calls = {row["name"]: {row["a_count"], row["b_count"]} for row in rows}
        lambdas = "f" if style == "short" else "k"
        assert calls == {"gemm f32": {4}, "gemm f64": {0, 4}, lambdas: {4}}


FLOAT, DOUBLE, HALF = (f"void gemm<{of}, (int)128>(int)" for of in ("float", "double", "__half"))


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({FLOAT: 50, DOUBLE: 90}, {FLOAT: 60, DOUBLE: 80}, {"gemm f32": 20, "gemm f64": -11}),
        ({FLOAT: 50}, {FLOAT: 60}, {"gemm": 20}),
        ({FLOAT: 50}, {DOUBLE: 60}, {"gemm f32 -> gemm f64": 20}),
        ({FLOAT: 50, HALF: 9}, {DOUBLE: 60, HALF: 9},
         {"gemm f32 -> gemm f64": 20, "gemm f16": 0}),
        ({FLOAT: 50, HALF: 10}, {DOUBLE: 66}, {"gemm (other template arguments)": 10}),
    ],
)  # fmt: skip
def test_kernels_of_a_name_are_told_apart_by_template_arguments(
    tmp_path: Path,
    capsys: Out,
    before: dict[str, int],
    after: dict[str, int],
    expected: dict[str, int],
) -> None:
    for name, kernels in (("a", before), ("b", after)):
        for number in range(2):
            path = tmp_path / f"{name}{number}.sqlite"
            Run(names=(*kernels.items(), ("other(int)", 200)), seed=number).write(path)
    for words in (("a0", "b0"), ("a0", "a1", "--against", "b0", "b1")):
        words = ("compare", *words, "--no-findings", "--format", "json")
        rows = json.loads(run(tmp_path, capsys, *words)[1])["kernels"]
        told = {row["name"]: round(100 * row["change"]) for row in rows}
        assert told == expected | {"other": 0}


@pytest.mark.parametrize(
    ("pattern", "rows", "by"),
    [
        ("gemm f32", ["gemm f32"], ""),
        ("^gemm$", ["gemm f32"], ""),
        ("^at::native::elementwise_kernel$", ["elementwise add f32"], ", by normalised names"),
        ("gemm<float, ", ["gemm f32"], ", by full names"),
        ("other|float", ["other"], ""),
    ],
)
def test_gates_look_for_kernels_under_all_their_names(
    tmp_path: Path, capsys: Out, pattern: str, rows: list[str], by: str
) -> None:
    torch = (
        "void at::native::elementwise_kernel<(int)128, at::native::gpu_kernel_impl<"
        "at::native::CUDAFunctor_add<float>>(T1)::[lambda(int) (instance 1)]>(int, T2)"
    )
    kernels = ((FLOAT, 50), (DOUBLE, 90), (torch, 40), ("other(int)", 70))
    file = str(tmp_path / "base.json")
    for name, scale in (("a", 1.0), ("b", 1.5)):
        slower = ((n, round(ns * scale)) if n != DOUBLE else (n, ns) for n, ns in kernels)
        Run(names=tuple(slower)).write(tmp_path / f"{name}.sqlite")
    assert run(tmp_path, capsys, "baseline", "add", "a", "--file", file)[0] == 0
    for words in (("a", "b"), ("b", "--baseline-file", file)):
        words = (*words, "--gate", f"kernel:{pattern}:20%", "--no-findings", "--format", "json")
        status, out, err = run(tmp_path, capsys, "compare", *words)
        (gate,) = json.loads(out)["gates"]
        assert (status, gate["verdict"], gate["rows"]) == (1, "worse", rows), err
        assert ("; 1 of 2 rows" in gate["reason"]) is (pattern == "^gemm$")
        assert gate["reason"].partition(", by")[2] == by.removeprefix(", by")


def test_baselines_that_know_no_variants_are_compared_by_name(tmp_path: Path, capsys: Out) -> None:
    for name in "ab":
        path = tmp_path / f"{name}.sqlite"
        Run(names=((FLOAT, 50), (DOUBLE, 90)), jitter=0.001, seed=ord(name)).write(path)
    file = tmp_path / "base.json"
    run(tmp_path, capsys, "baseline", "add", "a", "--file", str(file))
    lines = file.read_text().splitlines()
    assert "void" not in lines[1]
    kept = json.loads(lines[1].removesuffix(","))
    assert kept["run"].pop("variants")
    file.write_text("\n".join((lines[0], json.dumps(kept) + ",", *lines[2:])))
    words = ("compare", "b", "--baseline-file", str(file), "--format", "json", "--force")
    status, out, err = run(tmp_path, capsys, *words)
    assert status in (0, 3), err
    assert [row["name"] for row in json.loads(out)["kernels"]] == ["gemm"]


def side(wall: float, kernel: float) -> Side:
    nothing = np.zeros(9, np.int64)
    return Side(
        label="", identity="", facts={}, options={}, kinds=(), device_count=1, base_ns=0,
        steps=Steps(Rule.NAME, "step", nothing, nothing), steps_found=9, groups={}, lacks={},
        metrics={"wall": Sample.of([round(wall)] * 9), "busy": Sample.of([round(kernel)] * 9)},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        (lambda n: 1.0, None),
        (lambda n: 1 + 0.06 * (n >= 8), "jumped by +6.1% at run 9 of 12 (8)"),
        (lambda n: 1 + 0.01 * n, "drifts: +11.2% over 12 runs"),
        (lambda n: 1 + 0.02 * min(max(n - 4, 0), 3), "cannot tell which"),
        (lambda n: 1 + 0.08 * (n >= 10), "% at run 11 of 12 (10)"),
        (lambda n: 1 + 0.2 * (n == 11), None),
    ],
)
def test_jumps_are_told_from_drifts_and_from_nothing(shape: object, expected: str | None) -> None:
    draws = np.random.default_rng(4).normal(0, 0.004, 12)
    assert callable(shape)
    sides = [side(1e6 * shape(n) * (1 + draws[n]), 1e6) for n in range(12)]
    told = sentences(shifts(sides), [*map(str, range(12))])
    assert len(told) == bool(expected)
    assert all(expected in text for text in told if expected)
    assert shifts(sides[:9]) == []
    moments = range(0, 12 * 10**12, 10**12)
    both = [
        replace(each, label=str(n), recorded=(begun + rank, begun + 10**9))
        for n, (each, begun) in enumerate(zip(sides, moments, strict=True))
        for rank in (0, 1)
    ]
    runs = runs_of(both)
    assert sentences(shifts(runs), [*map(str, range(12))]) == told
    assert runs[0].label == "0 and 1 more"


def test_two_jumps_are_no_drift() -> None:
    draws = np.random.default_rng(4).normal(0, 0.004, 12)
    levels = [1 + 0.06 * (n >= 4) + 0.06 * (n >= 8) for n in range(12)]
    sides = [side(1e6 * level * (1 + draws[n]), 1e6) for n, level in enumerate(levels)]
    found = shifts(sides)
    assert [(shift.kind, shift.at, round(shift.size, 2)) for shift in found] == [
        ("jump", 4, 0.06),
        ("jump", 8, 0.06),
    ]
    assert since_jump(found) == 8


@pytest.mark.parametrize(
    "text", ["", "much", "step", "step:", "nothing:3%", "kernel:3%", "step:a:3%", "slow:+3ms",
             "kernel:(:3%", "step:-3%", "step:-3ms"],
)  # fmt: skip
def test_what_is_no_gate_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_gate(text)


def test_a_pattern_that_takes_for_ever_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nsys_tui.patterns.SECONDS", 0.2)
    assert matching("gemm", ["a_gemm", "b"]) == ["a_gemm"]
    with pytest.raises(UsageError, match="too slow"):
        matching(r"(a+)+$", ["a" * 60 + "!"])
