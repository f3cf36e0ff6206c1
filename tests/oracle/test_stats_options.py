"""What people type by habit at ``nsys stats``: units, layouts and options, beside NVIDIA's own."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Final

import pytest
from oracle.completing import complete
from oracle.differences import STATS
from oracle.real_nsys import laid_out, run
from paths import REPORTS, needs_reports

from nsys_tui.cli import main

VERSION: Final = "2023.4"
TABLES: Final = "cuda_gpu_mem_time_sum,cuda_api_sum,cuda_api_trace,openacc_sum,osrt_sum"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    copy = tmp_path_factory.mktemp("options") / "r.sqlite"
    shutil.copyfile(REPORTS / "nsys-stats-2023.3.sqlite", copy)
    complete(copy, VERSION)
    return copy


@needs_reports
@pytest.mark.parametrize(
    "words",
    [
        ("-f", "csv:time=us"),
        ("-f", "csv:ts=sec:dur=ms:nohdr"),
        ("-f", "csv:noconv:dur=ms"),
        ("-f", "csv:nohdrunit"),
        ("-f", "tsv:dur=us", "--timeunit", "milli"),
        ("-f", "csv:dur=us", "--timeunit", "seconds"),
        ("-f", "column:nofmt"),
        ("-f", "table:nofmt:time=us,column:nofmt:nohdr"),
        ("-f", "column:nofmt:autolines=0:colmax=0"),
        ("-r", "cuda_gpu_mem_size_sum", "-f", "csv:mem=KiB"),
        ("-r", "cuda_gpu_mem_size_sum", "-f", "tsv:mem=B"),
        ("-r", "cuda_gpu_mem_size_sum", "-f", "column:nofmt:mem=B"),
        ("-r", "cuda_gpu_mem_size_sum", "-f", "csv:bytes=GB"),
        ("-r", "cuda_gpu_mem_size_sum", "-f", "csv:mem=MiB", "--force-overwrite=true"),
    ],
)
def test_formats_units_and_titles_are_as_nsys_has_them(
    words: tuple[str, ...], report: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tables = () if "-r" in words else ("-r", TABLES)
    theirs = run(laid_out(VERSION), "stats", *tables, *words, str(report))
    assert main(["stats", "--no-cache", *tables, *words, str(report)]) == 0
    ours = capsys.readouterr().out
    assert simple(ours) == simple(theirs)


def simple(text: str) -> list[str]:
    """The lines without what is named in docs/nsys-stats.md: notices, ends of cut names, boxes."""
    text = re.sub(r"\+[-+]+\+|[┌├└][^\n]*", "rule", text).replace("│", "|").replace("...", "…")
    lines = [line.rstrip() for line in text.splitlines()]
    return [line for line in lines if line and not line.startswith(("Processing", "SKIPPED"))]


@needs_reports
def test_notices_stand_where_nsys_has_them(
    report: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("stats", "-r", "cuda_gpu_mem_time_sum,openacc_sum,osrt_sum", str(report))
    theirs = run(laid_out(VERSION), *words)
    assert main([*words, "--no-cache"]) == 0
    ours = capsys.readouterr().out
    assert outline(ours) == outline(theirs)


def outline(text: str) -> list[str]:
    """What each line is: a notice, a title, blank, or of a table."""
    heads = ("Processing", "SKIPPED", " ** ")
    return [
        next((head for head in heads if line.startswith(head)), "row" if line.strip() else "")
        for line in text.splitlines()
    ]


def test_the_page_lists_every_named_difference() -> None:
    page = (Path(__file__).parents[2] / "docs/nsys-stats.md").read_text()
    for name, one in STATS.items():
        tables = ", ".join(f"`{table}`" for table in sorted(one.tables))
        assert f"| {name} | {one.why} | {tables} |" in page, name
