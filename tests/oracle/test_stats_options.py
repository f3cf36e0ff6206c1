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
OLD_TABLES: Final = "gpumemtimesum,cudaapisum,cudaapitrace,openaccsum,osrtsum"
KINDS: Final = ("csv", "tsv", "json", "hdoc", "htable", "column:nofmt")


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
        ("-f", "json", "-r", "osrt_sum", "-q"),
        ("-f", "hdoc:title=Mine:css=my.css"),
        ("-f", "htable:dur=us"),
        ("-f", "csv,tsv,hdoc", "-q"),
        ("-f", "csv:ts=sec:dur=ms:nohdr"),
        ("-f", "csv:noconv:dur=ms"),
        ("-f", "csv:nohdrunit"),
        ("-f", "tsv:dur=us", "--timeunit", "milli"),
        ("-f", "csv:dur=us", "--timeunit", "seconds"),
        ("-f", "column:nofmt"),
        ("-f", "table:nofmt:time=us,column:nofmt:nohdr"),
        ("-f", "column:nofmt:autolines=0:colmax=0"),
        ("-r", "cuda_gpu_kern_sum:base:nvtx-name,cuda_gpu_sum:base", "-f", "column:nofmt"),
        ("-r", "cuda_gpu_mem_size_sum", "-f", "csv:mem=KiB"),
        ("-r", "cuda_gpu_mem_size_sum", "-f", "tsv:mem=B"),
        ("-r", "cuda_gpu_mem_size_sum", "-f", "column:nofmt:mem=B"),
        ("-r", "cuda_gpu_mem_size_sum", "-f", "csv:bytes=GB"),
        ("-r", "cuda_gpu_mem_size_sum", "-f", "csv:mem=MiB", "--force-overwrite=true"),
    ],
)
def test_what_is_printed_is_nsys_s_to_the_byte(
    words: tuple[str, ...], report: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tables = () if "-r" in words else ("-r", TABLES)
    if "-q" not in words and any(word.startswith(("csv", "tsv")) for word in words):
        words = (*words, "-q")  # ours are on stderr
    theirs = run(laid_out(VERSION), "stats", *tables, *words, str(report))
    assert main(["stats", "--no-cache", *tables, *words, str(report)]) == 0
    ours = capsys.readouterr().out
    assert plain(ours) == plain(theirs)


def plain(text: str) -> str:
    """The text without folders, and without what we add to a reason."""
    text = re.sub(r"with \[\S*/(\w+)\.py\]", r"with [\1]", text).replace("... \n", "...\n")
    return re.sub(r"(SKIPPED: .*? data)\b.*", r"\1", re.sub(r"[^ \[]*/r.sqlite", "r.sqlite", text))


@needs_reports
@pytest.mark.parametrize(
    ("kind", "tables"), [*((kind, TABLES) for kind in KINDS), ("csv", OLD_TABLES)]
)
def test_files_and_what_is_said_of_them_are_nsys_s_to_the_byte(
    kind: str,
    tables: str,
    report: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ("-r", tables, "-f", kind, "-o", "all", str(report))
    said = {}
    for name in ("theirs", "ours"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        if name == "theirs":
            said[name] = run(laid_out(VERSION), "stats", *words)
        else:
            assert main(["stats", "--no-cache", *words]) == 0
            said[name] = capsys.readouterr().out
    assert plain(said["ours"]) == plain(said["theirs"])
    theirs, ours = (
        {path.name: path.read_text() for path in (tmp_path / name).iterdir() if path.stat().st_size}
        for name in said
    )
    assert len(ours) == 4
    assert ours == theirs


def test_the_page_lists_every_named_difference() -> None:
    page = (Path(__file__).parents[2] / "docs/nsys-stats.md").read_text()
    for name, one in STATS.items():
        tables = ", ".join(f"`{table}`" for table in sorted(one.tables))
        assert f"| {name} | {one.why} | {tables} |" in page, name
