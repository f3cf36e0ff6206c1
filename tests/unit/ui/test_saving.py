"""Files that the app writes: only where none is, whole or not at all, as the suffix says."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
import pytest

from nsys_tui.errors import CancelledError, UsageError
from nsys_tui.model.progress import silent
from nsys_tui.model.table import Column, Table, Unit
from nsys_tui.ui import saving
from nsys_tui.ui.saving import Saving, fresh_path, table_writers, text_writer, written

if TYPE_CHECKING:
    from pathlib import Path

    from nsys_tui.model.progress import Progress

NAMES = ['plain, with "quotes"', "a\tb|c\x1b[31m", "=1+1"]


def table() -> Table:
    columns = (Column("name"), Column("total", Unit.NS), Column("share", Unit.PERCENT, 1))
    return Table("t", "T", columns, (NAMES, np.array([3, 2, 1]), [50.04, None, 0.0]))


def test_name_must_be_new_and_in_a_folder(tmp_path: Path) -> None:
    there = tmp_path / "there.csv"
    there.write_text("kept")
    for name in ("", "  ", str(there), str(tmp_path / "none" / "a.csv")):
        with pytest.raises(UsageError):
            fresh_path(name)
    assert fresh_path(f" {tmp_path}/new.csv ") == tmp_path / "new.csv"


def test_suffix_chooses_the_writer(tmp_path: Path) -> None:
    offered = Saving("t", "a.csv", table_writers(table, 3))
    for name in ("a", "a.xlsx"):
        with pytest.raises(UsageError, match=r"\.csv \.tsv \.json \.md \.parquet"):
            offered.checked(str(tmp_path / name))
    assert offered.checked(str(tmp_path / "a.CSV")).name == "a.CSV"


def test_parquet_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saving, "find_spec", lambda _name: None)
    offered = Saving("t", "a.csv", table_writers(table, 3))
    with pytest.raises(UsageError, match=r"needs pyarrow\n.*install .*pyarrow"):
        offered.checked(str(tmp_path / "a.parquet"))


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".json", ".md"])
def test_text_formats_are_those_of_the_commands(tmp_path: Path, suffix: str) -> None:
    from nsys_tui.text.tables import render

    path = tmp_path / f"a{suffix}"
    size = written(path, table_writers(table, 3)[suffix], silent)
    text = path.read_text(encoding="utf-8")
    assert size == path.stat().st_size
    assert text == render(table(), saving.TEXTS[suffix])
    if suffix == ".json":
        assert [row["name"] for row in json.loads(text)] == NAMES
        assert [row["share (%)"] for row in json.loads(text)] == [50.0, None, 0.0]


def test_parquet_holds_exact_values(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "a.parquet"
    written(path, table_writers(table, 3)[".parquet"], silent)
    rows = parquet.read_table(path).to_pydict()
    assert rows == {"name": NAMES, "total (ns)": [3, 2, 1], "share (%)": [50.04, None, 0.0]}


def test_an_unfinished_file_does_not_stay(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"

    def cancelled(_what: str, done: int, _total: int) -> None:
        if done:
            raise CancelledError("cancelled")

    endless = text_writer(lambda: iter(lambda: "row\n", ""), 10**9)
    with pytest.raises(CancelledError):
        written(path, endless, cancelled)
    assert not path.exists()


def test_a_file_that_came_meanwhile_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("kept")
    with pytest.raises(UsageError, match="exists already"):
        written(path, table_writers(table, 3)[".csv"], silent)
    assert path.read_text() == "kept"


def test_a_full_disk_is_an_error_with_the_file(tmp_path: Path) -> None:
    def full(_file: BinaryIO, _progress: Progress) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(UsageError, match=r"a\.csv: No space left"):
        written(tmp_path / "a.csv", full, silent)
    assert not (tmp_path / "a.csv").exists()
