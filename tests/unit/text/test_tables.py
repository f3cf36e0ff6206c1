from __future__ import annotations

import csv
import html.parser
import io
import json
import math

import numpy as np
import pytest

from nsys_tui.errors import UsageError
from nsys_tui.model.table import Column, Table, Unit
from nsys_tui.names import escaped
from nsys_tui.text.formats import whole
from nsys_tui.text.sections import filled, sections
from nsys_tui.text.tables import render

NASTY = 'a"b,c;d\ne\tf\r\x1b[31m|<b>*_x_`\u202e\\'


def table(*names: str) -> Table:
    n = len(names)
    return Table(
        "demo",
        "A demo",
        (
            Column("Time", Unit.PERCENT, 1),
            Column("Total Time", Unit.NS),
            Column("Avg", Unit.NS, 1),
            Column("Bytes", Unit.MB, 3),
            Column("Count", Unit.COUNT),
            Column("Name"),
        ),
        (
            np.linspace(12.25, 50.0, n),
            np.arange(1, n + 1) * 1234567,
            np.full(n, 25606585.05),
            [2_400_000] * n,
            [1000] * n,
            list(names),
        ),
    )


def test_column_format_follows_nsys_to_the_cell() -> None:
    assert render(table("k", "longer"), "column") == (
        " Time (%)  Total Time (ns)    Avg (ns)    Bytes (MB)  Count   Name \n"
        " --------  ---------------  ------------  ----------  -----  ------\n"
        "     12.3        1,234,567  25,606,585.1       2.400  1,000  k     \n"
        "     50.0        2,469,134  25,606,585.1       2.400  1,000  longer\n"
    )


def test_column_options_hide_header_separators_and_columns() -> None:
    text = render(table("kernel"), "column:nohdr:nofmt:0:.:.:0:0:4")
    assert text == "         1234567  25606585.1  ker…\n"


@pytest.mark.parametrize("kind", ["column", "table"])
def test_a_long_name_is_whole_and_widens_no_other_row(kind: str) -> None:
    name = "k" * 100_000
    names = ["short", name, *["other"] * 20]
    lines = render(table(*names), whole(kind, None)).splitlines()
    assert sum(name in line for line in lines) == 1
    assert sum(map(len, lines)) < 120_000
    nsys = render(table(*names), f"{kind}:nolimit").splitlines()
    assert min(map(len, nsys)) > 100_000
    narrow = render(table("k" * 499, "short"), whole(kind, None))
    assert narrow == render(table("k" * 499, "short"), f"{kind}:nolimit")
    assert max(map(len, render(table(name), whole(kind, 600)).splitlines())) <= 600


def test_text_is_cut_at_one_hundred_cells_unless_nolimit() -> None:
    name = "n" * 150
    assert "n" * 99 + "…" in render(table(name), "column")
    assert name not in render(table(name), "table")
    assert name in render(table(name), "column:nolimit")


def test_the_box_of_table_is_as_nsys_draws_it() -> None:
    assert render(table("k"), "table:0:0:0:0:0:.") == (
        "+------+\n| Name |\n+------+\n| k    |\n+------+\n"
    )
    assert render(table("k" * 200), "table", ascii_only=True).isascii()


def test_wide_characters_keep_the_columns_aligned() -> None:
    lines = render(table("核函数", "k"), "column:0:0:0:0:5:6").splitlines()
    assert lines[2] == " 1,000  核函数"
    assert lines[3] == " 1,000  k     "


@pytest.mark.parametrize("fmt", ["column", "table", "markdown", "html", "htable"])
def test_formats_for_people_show_control_characters_instead_of_sending_them(fmt) -> None:
    text = render(table(NASTY), fmt)
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "␛" in text
    assert "\r" not in text


def test_json_is_an_array_of_row_objects_with_printed_headers() -> None:
    rows = json.loads(render(table(NASTY), "json"))
    assert rows == [
        {
            "Time (%)": 12.3,
            "Total Time (ns)": 1234567,
            "Avg (ns)": 25606585.1,
            "Bytes (MB)": 2.4,
            "Count": 1000,
            "Name": NASTY,
        }
    ]
    assert json.loads(render(table(), "json")) == []


def test_csv_and_tsv_survive_any_name() -> None:
    rows = list(csv.reader(io.StringIO(render(table(NASTY, "k"), "csv"), newline="")))
    assert rows[0] == ["Time (%)", "Total Time (ns)", "Avg (ns)", "Bytes (MB)", "Count", "Name"]
    assert [row[-1] for row in rows[1:]] == [escaped(NASTY), "k"]
    assert rows[1][:5] == ["12.3", "1234567", "25606585.1", "2.400", "1000"]
    assert {len(line.split("\t")) for line in render(table(NASTY), "tsv").split("\n")[:-1]} == {6}
    assert "e\\tf" in render(table(NASTY), "tsv:esc")
    assert "\x1b" not in render(table(NASTY), "csv")


def test_markdown_escapes_markup_and_keeps_one_line_a_row() -> None:
    lines = render(table("f<int>(char *)|x_y"), "markdown").splitlines()
    assert len(lines) == 3
    assert lines[2].endswith("| f\\<int\\>(char \\*)\\|x_y |")
    assert lines[1] == "| ---: | ---: | ---: | ---: | ---: | :--- |"


def test_html_is_well_formed_and_escaped() -> None:
    seen = []

    class Collect(html.parser.HTMLParser):
        def handle_starttag(self, tag, attrs):
            seen.append(tag)

    Collect().feed(render(table("<script>alert(1)</script>"), "html:title=T&T"))
    assert "script" not in seen
    assert seen.count("td") == 6
    assert "T&amp;T" in render(table("k"), "html:title=T&T")


def test_missing_values_are_empty_or_null() -> None:
    hole = Table(
        "t", "T", (Column("A", Unit.NS, 1), Column("B")), ([math.nan, math.inf], [None, "x"])
    )
    assert render(hole, "csv") == "A (ns),B\n,\n,x\n"
    assert json.loads(render(hole, "json")) == [
        {"A (ns)": None, "B": None},
        {"A (ns)": None, "B": "x"},
    ]


@pytest.mark.parametrize(
    ("unit", "header", "total"),
    [
        ("ns", "Total Time (ns)", 1234567),
        ("us", "Total Time (us)", 1234.567),
        ("ms", "Total Time (ms)", 1.2346),
        ("sec", "Total Time (sec)", 0.0012),
    ],
)
def test_time_units_scale_times_only(unit, header, total) -> None:
    (row,) = json.loads(render(table("k"), f"json:time={unit}"))
    assert row[header] == total
    assert row["Count"] == 1000
    assert row["Time (%)"] == 12.3


@pytest.mark.parametrize("bad", ["xml", "csv:nofmt", "column:bold", "json:x"])
def test_unknown_formats_and_options_are_usage_errors(bad) -> None:
    with pytest.raises(UsageError):
        render(table("k"), bad)


def test_rounding_breaks_ties_away_from_zero_as_the_sqlite_in_nsys_does() -> None:
    rounded = {0.25: 0.3, 0.75: 0.8, 11499.25: 11499.3, -2.25: -2.3, 0.35: 0.4, 1.05: 1.1}
    rounded |= {25606585.0769: 25606585.1, 3.0: 3.0, 2.5 / 7: 0.4}  # 0.35: 0.3 from 3.43 on
    column = Table("t", "T", (Column("A", Unit.NONE, 1),), ([*rounded],))
    assert [row["A"] for row in json.loads(render(column, "json"))] == [*rounded.values()]


def test_a_long_table_is_measured_by_its_first_rows_and_cuts_no_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from nsys_tui.text import tables

    monkeypatch.setattr(tables, "MEASURED", 1)
    numbers = Table("t", "T", (Column("N"), Column("A", Unit.COUNT)), (["a", "bcdefg"], [1, 10**9]))
    assert render(numbers, "column").splitlines() == [
        " N        A      ",
        " -  -------------",
        " a              1",
        " …  1,000,000,000",
    ]


def test_numbers_of_numpy_in_a_list_are_numbers() -> None:
    columns = (Column("Time", Unit.NS), Column("Mean", Unit.NS, 1))
    data = ([np.int64(2**53 + 1), np.int64(3)], [np.float32(2.5), np.float64("nan")])
    one = Table("t", "T", columns, data)
    assert render(one, "csv") == f"Time (ns),Mean (ns)\n{2**53 + 1},2.5\n3,\n"
    assert json.loads(render(one, "json"))[1] == {"Time (ns)": 3, "Mean (ns)": None}


@pytest.mark.parametrize("value", [2**53 + 1, 2**63 + 1, 10**18 + 7])
def test_integers_beyond_floats_keep_every_digit(value: int) -> None:
    one = Table("demo", "A demo", (Column("Bytes", Unit.COUNT),), ([value, None, 5],))
    assert f"{value:,}" in render(one, "column:nolimit")
    assert str(value) in render(one, "csv").split()


def test_numbers_of_numpy_in_a_list_and_masked_ones_are_printed() -> None:
    columns = (Column("A", Unit.COUNT), Column("B", Unit.NS), Column("C", Unit.PERCENT, 1))
    masked = np.ma.masked_array([2**53 + 1, 7], [False, True])
    table = Table("t", "T", columns, ([np.int64(5), np.uint8(6)], masked, [np.float32(0.5), None]))
    assert render(table, "csv").splitlines()[1:] == [f"5,{2**53 + 1},0.5", "6,,"]
    assert table.rows() == [(5, 2**53 + 1, 0.5), (6, None, None)]


def test_columns_without_anything_are_for_programs_only() -> None:
    columns = (
        Column("Name"),
        Column("Range"),
        Column("Bus", Unit.PERCENT, 1),
        Column("At", Unit.NS),
    )
    every = Table("t", "T", columns, (["a", "b"], ["", None], [math.nan, math.nan], [0, None]))
    assert [column.header for column, _ in filled(every)] == ["Name", "At"]
    assert "".join(sections([every], "csv", None)).startswith("Name,Range,Bus (%),At (ns)\n")
    blank = Table("t", "T", columns[:2], ([""], [""]))
    assert len(filled(blank)) == 2, "a table of nothing stays one"
