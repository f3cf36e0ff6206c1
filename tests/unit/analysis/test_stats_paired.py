"""The tables that nsys itself printed about a report, line by line."""

from __future__ import annotations

import re

import pytest
from paths import REPORTS, needs_reports

from nsys_tui.analysis.stats.reports import run_report
from nsys_tui.reader import open_report
from nsys_tui.text.tables import render

STEP = re.compile(r"\[\d+/\d+\] Executing '(\w+)' stats report\n")
PAIRED = ("osrt_sum", "cuda_api_sum", "cuda_gpu_kern_sum", "cuda_gpu_mem_time_sum")


def printed_tables() -> dict[str, str]:
    text = (REPORTS / "nsys-stats-2023.3.txt").read_text(errors="replace")
    parts = STEP.split(text.partition("\nGenerated:")[0])
    return {name: body.strip("\n") for name, body in zip(parts[1::2], parts[2::2], strict=True)}


@needs_reports
@pytest.mark.parametrize("name", [*PAIRED, "cuda_gpu_mem_size_sum"])
def test_the_table_is_the_one_that_nsys_printed(name: str) -> None:
    with_report = open_report(REPORTS / "nsys-stats-2023.3.sqlite", use_cache=False)
    ours = render(run_report(with_report, name), "column:nofmt").strip("\n")
    assert ours.split("\n") == printed_tables()[name].split("\n")
