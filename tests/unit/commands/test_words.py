"""Options as a user types them: each means what ``--help`` says, or is refused with a next step."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING

import pytest
from synth import Synth

from nsys_tui import cli
from nsys_tui.errors import GATE_HIT, NO_DATA, OK, USAGE

if TYPE_CHECKING:
    from pathlib import Path

NAMES = [f"kernel_{letter}" for letter in "abcdefghijkl"]
Out = pytest.CaptureFixture[str]


@pytest.fixture
def report(tmp_path: Path) -> str:
    """Twelve kernels of different names in three steps."""
    made = Synth(tmp_path / "r.sqlite").process(7, "train").gpu(0)
    for place, name in enumerate(NAMES):
        at = 100_000 * place
        made.launch(name, (at + 10, at + 20), (at + 1_000, at + 2_000 + place))
    for step in range(3):
        made.nvtx(f"train step {step}", 400_000 * step, 400_000 * step + 399_000)
    return str(made.write())


def run(capsys: Out, *words: str) -> tuple[int, str, str]:
    status = cli.main(list(words))
    out, err = capsys.readouterr()
    return status, out, err


@pytest.mark.parametrize(("top", "rows"), [("0", 12), ("5", 5), (None, 10)])
def test_the_overview_lists_so_many_kernels_and_all_for_0(
    report: str, capsys: Out, top: str | None, rows: int
) -> None:
    asked = () if top is None else ("--top", top)
    words = ("overview", report, "--section", "kernels", "--format", "csv", *asked)
    status, out, _ = run(capsys, *words)
    assert status == OK
    assert len(list(csv.DictReader(io.StringIO(out)))) == rows


@pytest.mark.parametrize(
    "words",
    [
        ("overview", "--top", "-1"),
        ("stalls", "--limit", "-1"),
        ("stalls", "--threshold", "-5us"),
        ("stalls", "--threshold", "50"),
        ("iterations", "--limit", "-2"),
        ("collectives", "--top", "few"),
        ("fleet", "--top", "-1"),
        ("compare", "--top", "-1"),
        ("compare", "--seed", "-1"),
    ],
)
def test_no_list_has_less_than_no_rows(report: str, capsys: Out, words: tuple[str, ...]) -> None:
    verb, *asked = words
    status, out, err = run(capsys, verb, report, *asked)
    assert (status, out) == (USAGE, "")
    assert asked[0] in err


@pytest.mark.parametrize(
    ("verb", "sections"),
    [
        ("overview", ("kernels", "ranges")),
        ("fleet", ("ranks", "total")),
        ("collectives", ("ranks", "operations")),
        ("logs", ("ranks", "steps")),
    ],
)
def test_a_csv_file_holds_one_section(
    report: str, capsys: Out, verb: str, sections: tuple[str, ...]
) -> None:
    asked = [word for name in sections for word in ("--section", name)]
    status, out, err = run(capsys, verb, report, "--format", "csv", *asked)
    assert (status, out) == (USAGE, "")
    assert "csv holds one section" in err


def test_json_holds_the_sections_that_were_asked_for(report: str, capsys: Out) -> None:
    words = ("overview", report, "--format", "json", "--section", "kernels", "--section", "each")
    found = json.loads(run(capsys, *words)[1])
    always = {"schema", "window_ns", "base_ns", "span_ns", "notes"}
    assert found.keys() == {*always, "top_kernels", "other_gpu_work", "each"}
    assert len(found["top_kernels"]) == 10


def test_the_section_each_is_of_iterations_unless_a_range_is_named(
    report: str, capsys: Out
) -> None:
    words = ("overview", report, "--section", "each", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(run(capsys, *words)[1])))
    assert [row["Piece"] for row in rows] == ["train step 0", "train step 1", "train step 2"]
    status, out, err = run(capsys, *words, "--each", "nothing")
    assert (status, out) == (USAGE, "")
    assert "no NVTX range called 'nothing'" in err


def test_a_section_without_data_names_the_option_that_records_it(report: str, capsys: Out) -> None:
    status, out, err = run(capsys, "overview", report, "--section", "memory")
    assert (status, out) == (NO_DATA, "")
    assert "--cuda-memory-usage=true" in err
    status, out, err = run(capsys, "export", report, "--table", "samples")
    assert (status, out) == (NO_DATA, "")
    assert "--sample=process-tree" in err
    status, _, err = run(capsys, "export", report, "--table", "api", "--window", "5s/6s")
    assert status == NO_DATA
    assert "no CUDA API calls in what was chosen" in err


@pytest.mark.parametrize("word", ["low", "Low", "l", "L"])
def test_a_severity_is_a_word_or_its_letter(report: str, capsys: Out, word: str) -> None:
    assert run(capsys, "analyze", report, "--fail-on", word)[0] == GATE_HIT


@pytest.mark.parametrize(
    ("typed", "same"),
    [
        (("-f", "column"), ()),
        (("--format=.", "--force-overwrite=true", "-q"), ()),
        (("-f", "hdoc"), ("--format", "html")),
        (("-r", "gpu_gaps:gap=1", "-f", "csv"), ("-r", "gpu_gaps:gap=1", "--format", "csv")),
    ],
)
def test_analyze_takes_words_of_nsys_s(
    report: str, capsys: Out, typed: tuple[str, ...], same: tuple[str, ...]
) -> None:
    status, out, _ = run(capsys, "analyze", report, *typed)
    assert (status, out) == run(capsys, "analyze", report, *same)[:2]
    assert status == OK
    assert out


def test_analyze_takes_the_options_of_csv_and_refuses_others_by_name(
    report: str, capsys: Out
) -> None:
    rule = ("analyze", report, "-r", "gpu_gaps:gap=0.01:rows=1", "-f")
    _, whole, _ = run(capsys, *rule, "csv")
    assert (header := whole.splitlines()[0]).startswith("Row#,Duration (ns),Start (ns)")
    _, timed, _ = run(capsys, *rule, "csv:time=us")
    assert timed.splitlines()[0] == header.replace("(ns)", "(us)")
    assert run(capsys, *rule, "csv:nohdr")[1] == whole.partition("\n")[2]
    for words, said in (
        (("-f", "csv:nope"), "unknown option 'nope'"),
        (("-f", "json:nohdr"), "only csv and tsv take options here"),
        (("-f", "csv,json"), "one of table, json, csv"),
        (("--timeunit=ms",), "csv:time=ms"),
        (("-o", "base"), "> FILE"),
    ):
        status, out, err = run(capsys, "analyze", report, *words)
        assert (status, out) == (USAGE, "")
        assert said in err


def test_an_option_that_is_not_there_leads_to_the_help_of_its_verb(
    report: str, capsys: Out
) -> None:
    for words, verb in ((["stalls", report], "stalls"), ([report], "open")):
        status, _, err = run(capsys, *words, "--nothing")
        assert status == USAGE
        assert f"see nsys-tui {verb} --help" in err


@pytest.mark.parametrize("verb", ["captures", "targets", "baseline"])
def test_a_verb_of_many_things_alone_lists_them(
    verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Out
) -> None:
    for folder in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(folder, str(tmp_path))
    assert run(capsys, verb) == run(capsys, verb, "list")
    assert run(capsys, verb)[0] == OK


@pytest.mark.parametrize(
    "words",
    [
        ("stacks", "{r}", "-o", "{file}"),
        ("compare", "{r}", "{r}", "--svg", "{file}"),
        ("export", "{r}", "--table", "api", "-o", "{file}"),
        ("fleet", "{r}", "--format", "csv", "-o", "{file}"),
    ],
)
def test_no_file_is_replaced_unless_that_is_asked_for(
    report: str, tmp_path: Path, capsys: Out, words: tuple[str, ...]
) -> None:
    file = tmp_path / "mine"
    file.write_text("kept")
    asked = [word.format(r=report, file=file) for word in words]
    status, _, err = run(capsys, *asked)
    assert (status, file.read_text()) == (USAGE, "kept")
    assert "--force-overwrite replaces it" in err
    assert run(capsys, *asked, "--force-overwrite")[0] == OK
    assert "kept" not in file.read_text()


def test_times_may_be_negative_and_have_a_unit(report: str, capsys: Out) -> None:
    words = ("overview", report, "--section", "devices", "--format", "csv", "--window")
    status, out, _ = run(capsys, *words, "-1ms/2ms")
    assert status == OK
    assert run(capsys, *words[:-1], "--window=-1ms/2ms")[1] == out
    status, _, err = run(capsys, *words, "0.5/0.6")
    assert status == USAGE
    assert "a time without its unit: '0.5'" in err


@pytest.mark.parametrize("verb", ["collectives", "compare", "demo", "fleet", "logs", "stacks"])
def test_paragraphs_of_a_help_are_filled(
    capsys: Out, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = run(capsys, verb, "--help")[1].splitlines()
    assert max(len(line) for line in lines if "  " not in line) <= 80


def test_examples_of_a_help_keep_their_lines(capsys: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    lines = run(capsys, "fleet", "--help")[1].splitlines()
    assert "  nsys-tui fleet reports/ --section stragglers" in lines
    assert "  nsys-tui fleet reports/ --step 5 --section ranks --section calls" in lines


def test_a_misspelt_verb_is_told_from_a_report(report: str, capsys: Out) -> None:
    status, _, err = run(capsys, "overvew", report)
    assert status == USAGE
    assert "did you mean nsys-tui overview?" in err
    assert "there is no such file" in run(capsys, "report7.sqlite")[2]
    status, _, err = run(capsys, "version")
    assert status == USAGE
    assert "neither a verb nor a file" in err
    assert "usage: nsys-tui stalls" in run(capsys, "help", "stalls")[1]
