"""Every word that a user meets is explained, and docstrings cite words that exist."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

import pytest
from paths import ROOT
from synth import Synth

from nsys_tui.analysis.rules.ranking import RULES
from nsys_tui.analysis.stalls.causes import Cause
from nsys_tui.analysis.stats.query import REPORTS
from nsys_tui.analysis.stats.reports import DEFAULT
from nsys_tui.cli import main
from nsys_tui.commands.explain import exit_codes, explanations
from nsys_tui.model.capabilities import Capability
from nsys_tui.model.table import Column, Unit
from nsys_tui.text.definitions import CAUSE, define, definitions, on_screen
from nsys_tui.text.formats import Units

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

assert set(DEFAULT) <= set(REPORTS), "which the import of the reports fills"
SOURCES = sorted((ROOT / "nsys_tui").rglob("*.py"))
MAKERS = {
    *("Column", "column", "columns", "data", "number", "record", "records"),
    *("Numbers", "Texts", "Drawn", "written"),
    *("numbers", "durations", "texts", "strings", "counts"),
    *("count", "known", "shown", "text", "whole_numbers"),
}
"""What makes a column of a table or a screen; the first text is its header or key."""
SEVERAL = ("columns", "whole_numbers")
"""Those whose first text is several keys."""


def headers_and_keys() -> Iterator[str]:
    """All that columns are called, read off the calls that make them."""
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
                continue
            if node.func.id in MAKERS:
                named = [k.value for k in node.keywords if k.arg in ("header", "key")]
                first = [one for one in (*node.args[:1], *named) if isinstance(one, ast.Constant)]
                for text in (str(one.value) for one in first if isinstance(one.value, str)):
                    yield from text.split() if node.func.id in SEVERAL else [text]


def test_every_column_is_explained() -> None:
    names = set(headers_and_keys()) - {""}
    assert {"Total Time", "idle_ns", "held up"} <= names
    assert sorted(name for name in names if not define(name)) == [], "define these"


def test_columns_of_launches_are_explained_by_letter(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(Synth(tmp_path / "r.sqlite").gpu(0).launch("k", (1, 2), (3, 4)).write())
    assert main(["stats", path, "--report", "cuda_kern_exec_sum", "--format", "csv"]) == 0
    headers = capsys.readouterr().out.partition("\n")[0].split(",")
    assert {"TAvg (ns)", "QStdDev (ns)"} <= {*headers}
    assert [header for header in headers if not define(header)] == []


def test_every_cause_has_a_paragraph_of_its_own() -> None:
    explained = {one.name.removeprefix(CAUSE) for one in definitions() if CAUSE in one.name}
    assert explained == {cause.key for cause in Cause}
    assert all(define(cause.label) for cause in Cause)


@pytest.mark.parametrize("word", [*RULES, *REPORTS, *Capability, *map(str, exit_codes())])
def test_rules_reports_capabilities_and_exit_codes_are_explained(word: str) -> None:
    found = [*explanations(word)]
    assert len("".join(found)) > len(word) + 20
    assert word not in (*RULES, *REPORTS) or found[0].startswith(word)


def test_exit_codes_are_those_of_the_documentation() -> None:
    listed = re.search(r"Exit codes: (.*?)\.\n", (ROOT / "docs/json.md").read_text(), re.DOTALL)
    assert listed is not None
    codes = {int(code) for code in re.findall(r"\b\d+\b", listed[1])} | set(range(70, 81))
    assert codes == set(exit_codes())


def test_docstrings_cite_words_that_exist() -> None:
    text = "\n".join(path.read_text() for path in SOURCES)
    cited = re.findall(r'[Dd]efinitions(?:: | \()"([^"]+)"', text)
    assert len(cited) > 10
    assert [word for word in cited if not define(word)] == []


def test_no_word_stands_twice_but_for_a_cause_of_that_name() -> None:
    words = [word for one in definitions() for word in one.words if CAUSE not in one.name]
    assert sorted({word for word in words if words.count(word) > 1}) == []


def test_a_key_is_its_word_without_the_unit_or_the_words_it_is_made_of() -> None:
    assert [one.name for one in define("busy_share")] == ["busy"]
    assert [one.name for one in define("Mean skew")] == ["mean", "skew"]
    assert define("mean_of_nothing_known") == []


@pytest.mark.parametrize(
    ("unit", "category", "names"),
    [
        (Unit.NS, "time", ("ns", "us", "ms", "sec")),
        (Unit.MB, "mem", ("B", "KB", "KiB", "MB", "MiB", "GB", "GiB")),
        (Unit.MB_PER_S, "thru", ("B", "KiB", "MB", "GiB")),
        (Unit.PERCENT, "ratio", ("%",)),
    ],
)
def test_a_header_is_explained_with_the_unit_it_is_printed_with(
    unit: Unit, category: str, names: tuple[str, ...]
) -> None:
    printed = [Units().with_unit(category, name).header(Column("Avg", unit)) for name in names]
    assert printed[-1].startswith("Avg (")
    assert [define(header) for header in printed] == [define("Avg")] * len(names)
    assert define("Avg (of what)") == []


def test_explain_prints_the_paragraph(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "GPU", "busy"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("busy (also: gpu busy")
    assert "the length of the union" in out


@pytest.mark.parametrize("head", ["cause: wait", "cause: MPI", "exit code 2"])
def test_what_is_printed_as_a_heading_is_found_once(
    head: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", *head.split()]) == 0
    assert capsys.readouterr().out.startswith(f"{head}\n\n")
    assert [one.name for one in define("wait")] == ["waited", "cause: wait"]


def test_explain_alone_lists_the_terms(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain"]) == 0
    out = capsys.readouterr().out
    assert all(one.name in out for one in definitions())


def test_an_unknown_word_suggests_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "bussy"]) == 64
    assert "did you mean busy" in capsys.readouterr().err


def test_a_screen_explains_its_columns_first() -> None:
    assert next(one.name for one in on_screen("fleet", ["held up"])) == "held up"
    screens = {screen for one in definitions() for screen in one.screens}
    assert {"overview", "timeline", "nvtx", "kernels", "stalls", "stacks"} <= screens
    for screen, word in (("timeline", "GPC"), ("timeline", "RX"), ("stalls", "HtoD")):
        assert any(word in one.text for one in on_screen(screen, [])), word


def test_a_long_name_from_a_report_means_nothing_and_takes_no_time() -> None:
    assert define("void flash_fwd_kernel<Flash_fwd_kernel_traits<128, 64>>" + " params" * 40) == []
    assert define("busy " * 2000) == []
