from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING

import pytest
from demo_making import make
from hypothesis import given
from hypothesis import strategies as st

from nsys_tui import cli
from nsys_tui.model.table import FACTS, Column, Table, Unit, table_of
from nsys_tui.names import cell_len
from nsys_tui.text.folding import fitted, flowed, line_width, squeezed, wrapped
from nsys_tui.text.formats import Format
from nsys_tui.text.sections import sections
from nsys_tui.text.tables import render

if TYPE_CHECKING:
    from pathlib import Path

WIDTHS = st.lists(st.tuples(st.integers(1, 90), st.booleans()), min_size=1, max_size=9)


@given(WIDTHS, st.integers(10, 120))
def test_a_row_is_narrowed_only_where_that_makes_it_fit(
    columns: list[tuple[int, bool]], room: int
) -> None:
    widths, is_text = [width for width, _ in columns], [text for _, text in columns]
    found = squeezed(widths, is_text, room)
    if line_width(widths) <= room:
        assert found == widths
    if found is not None:
        assert line_width(found) <= room
        for own, before, text in zip(found, widths, is_text, strict=True):
            assert own == before or (text and max(20, before // 2) <= own < before)


@given(WIDTHS, st.integers(10, 120))
def test_every_column_flows_to_one_line_in_order(
    columns: list[tuple[int, bool]], room: int
) -> None:
    widths = [width for width, _ in columns]
    lines = flowed(widths, room)
    assert [place for line in lines for place in line] == list(range(len(widths)))
    for number, line in enumerate(lines):
        taken = line_width([widths[place] for place in line]) + 4 * (number > 0)
        assert taken <= room or len(line) == 1


@given(st.text("ab 日e\u0301", max_size=80), st.integers(2, 30))
def test_wrapped_text_loses_only_spaces(text: str, room: int) -> None:
    lines = wrapped(text, room)
    assert all(cell_len(line) <= room for line in lines)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")


def test_what_does_not_fit_on_the_lines_there_are_is_marked() -> None:
    assert wrapped("one two three four five six", 10, 2) == ["one two", "three f..."]


def numbers_and_name(name: str) -> Table:
    columns = (Column("GPU"), Column("Busy", Unit.NS), Column("Idle", Unit.NS), Column("Name"))
    return Table("t", "T", columns, (["0"], [1234567], [89], [name]))


def test_a_long_line_of_prose_goes_on_below_its_own_indent() -> None:
    text = "name\n    counts what is there and says so\n\nend\n"
    assert fitted(text, 20) == ("name\n    counts what is\n      there and says\n      so\n\nend\n")
    assert fitted(text, None) == text


def test_a_row_too_wide_for_its_line_goes_on_below_with_its_whole_name() -> None:
    table = numbers_and_name("void gemm_kernel<float, 128, 64>")
    assert render(table, Format("column", room=32)) == (
        " GPU  Busy (ns)  Idle (ns)\n"
        "     Name\n"
        " -------------------------------\n"
        " 0    1,234,567         89\n"
        "     void gemm_kernel<float,\n"
        "     128, 64>\n"
    )
    assert render(table, Format("column", room=80)) == render(table, Format("column"))
    boxed = render(table, Format("table", room=32))
    assert boxed == render(table, Format("column", room=32))


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("demo")).path


VERBS = (
    "overview {}",
    "stats {} --report cuda_gpu_kern_sum --report nvtx_sum",
    "stats {} --report cuda_gpu_mem_time_sum --format table",
    "analyze {}",
    "stalls {}",
    "iterations {}",
    "collectives {}",
    "compare {} {} --window-a 0.3s/0.6s --window-b 0.6s/1.1s",
    "fleet {} --section reports --section ranks --section heat --section kernels",
    "doctor {}",
    "analyze --help-rules",
    "stats --help-reports",
    "stats --help-reports ALL",
)


@pytest.mark.parametrize(
    ("verb", "columns"), [*((verb, 80) for verb in VERBS), (VERBS[0], 50), (VERBS[0], 140)]
)
def test_every_verb_fits_the_terminal_it_prints_to(
    verb: str,
    columns: int,
    demo: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys.stdout, "fileno", lambda: 1, raising=False)
    monkeypatch.setattr(os, "get_terminal_size", lambda *_: os.terminal_size((columns, 24)))
    assert cli.main(verb.format(demo, demo).split()) in (0, 2, 3)
    lines = re.sub(r"\x1b\[[\d;]*m", "", capsys.readouterr().out).splitlines()
    assert len(lines) > 3
    assert [line for line in lines if cell_len(line) > columns] == []


def test_facts_are_lines_whose_values_are_broken_below_themselves() -> None:
    facts = [("host", "alpha beta gamma delta"), ("GPUs", "none")]
    table = table_of("report", "Report", FACTS, facts)
    assert "".join(sections([table], "table", room=27)).splitlines() == [
        "Report", " host  alpha beta gamma", "       delta", " GPUs  none",
    ]  # fmt: skip
    assert "| Fact | Value |" in "".join(sections([table], "markdown"))


def test_sentences_stand_below_each_other_beside_what_leads_them() -> None:
    told = [Column("Finding", prose=True), Column("Advice", prose=True)]
    columns = (Column("Sev"), Column("Could Save", Unit.NS), *told, Column("Rule"))
    data = (
        ["H"],
        [63_380_000],
        ["GPU 1 computes " + "much " * 8 + "longer"],
        ["see why"],
        ["slow"],
    )
    table = Table("findings", "1 finding", columns, data)
    assert "".join(sections([table], "table", room=60)).splitlines() == [
        "1 finding",
        " Sev  Could Save  Finding",
        " ---  ----------  ------------------------------------------",
        " H      63.38 ms  GPU 1 computes much much much much much",
        "                  much much much longer",
        "                  -> see why (slow)",
    ]
