"""No name of a report reaches a terminal, a pipe or a file as something that steers a terminal."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from synth import Synth

from nsys_tui import cli
from nsys_tui.names import escaped

if TYPE_CHECKING:
    from pathlib import Path

NASTY = "k\x1b[31m\u202egnp\u2066x\u2069\u200f\u2028\u2029\ra\x07\x9b2J\x85"
STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")

VERBS = ("overview", "stalls", "iterations", "analyze", "compare", "fleet")


@pytest.fixture
def report(tmp_path: Path) -> str:
    made = Synth(tmp_path / "r.sqlite").process(7, NASTY).thread(7, NASTY).gpu(0, NASTY)
    for start in range(0, 50_000_000, 5_000_000):
        made.nvtx(f"{NASTY} step", start, start + 4_000_000)
        made.nvtx(f"{NASTY} phase", start + 1, start + 3_000_000)
        call = (start + 5, start + 9)
        made.launch(NASTY, call, (start + 10, start + 1_000_000))
        made.osrt(NASTY, start + 1_000_000, start + 4_500_000)
    return str(made.write())


@pytest.mark.parametrize("fmt", ["table", "csv", "tsv", "markdown", "html", "json"])
@pytest.mark.parametrize(
    "verb", ["overview", "stalls", "iterations", "analyze", "compare", "fleet"]
)
def test_names_are_written_out(
    report: str, capsys: pytest.CaptureFixture[str], verb: str, fmt: str
) -> None:
    again = [report] if verb == "compare" else []
    cli.main([verb, report, *again, "--format", fmt, "--no-cache"])
    out, err = capsys.readouterr()
    assert len(out) > 100
    assert not STEERING.search(out)
    assert not STEERING.search(err)


@pytest.mark.parametrize("fmt", ["folded", "svg", "tree", "json"])
def test_names_of_stacks_are_written_out(
    report: str, capsys: pytest.CaptureFixture[str], fmt: str
) -> None:
    assert cli.main(["stacks", report, "--format", fmt, "--no-cache"]) == 0
    out = capsys.readouterr().out
    assert "gnp" in out
    assert not STEERING.search(out)


@pytest.mark.parametrize("fmt", ["column", "table", "csv", "tsv", "markdown", "html", "json"])
@pytest.mark.parametrize("name", ["cuda_gpu_kern_sum", "nvtx_sum", "osrt_sum", "cuda_gpu_trace"])
def test_names_of_stats_are_written_out(
    report: str, capsys: pytest.CaptureFixture[str], name: str, fmt: str
) -> None:
    assert cli.main(["stats", report, "-r", name, "-f", fmt, "--no-cache"]) == 0
    out = capsys.readouterr().out
    assert "gnp" in out
    assert not STEERING.search(out)


def test_line_breaks_and_tabs_stay_where_a_format_quotes_them() -> None:
    assert escaped("a\nb\tc\r\nd") == "a\nb\tc\r\nd"
    assert escaped("a\rb\u202e") == "a\\x0db\\u202e"
