from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from nsys_tui.paths import state_folder
from nsys_tui.state import ColourBy, Filter, Mark, Selection, Window
from nsys_tui.ui.marks import load_marks, save_marks

if TYPE_CHECKING:
    import pytest

FULL = Mark(
    "a", 2**62, "timeline", "gpu0",
    Selection("operation", ("KERNEL", 7), Window(1, 2), ("l",), "k"),
    Window(-5, 10), Filter("gemm", 5, frozenset({1, 2}), frozenset(), frozenset({99})),
    ColourBy.NAME, "label \x1b", "note",
)  # fmt: skip


def test_marks_come_back_as_they_were() -> None:
    marks = {"a": FULL, "b": Mark("b", 5, "kernels")}
    assert save_marks("id", marks) == ""
    assert load_marks("id") == marks


def test_every_report_has_its_own() -> None:
    save_marks("one", {"a": FULL})
    assert load_marks("two") == {}


def test_a_file_that_makes_no_sense_counts_as_none() -> None:
    folder = state_folder() / "marks"
    folder.mkdir(parents=True)
    for text in ("", "[1]", '[{"letter": "a"}]', '{"a": 1}', "\x00"):
        (folder / "id.json").write_text(text)
        assert load_marks("id") == {}


def test_a_folder_that_cannot_be_written_is_no_error() -> None:
    blocked = state_folder()
    blocked.parent.mkdir(parents=True, exist_ok=True)
    blocked.touch()
    assert save_marks("id", {"a": FULL}) == f"{blocked}/marks: Not a directory"


def test_a_full_disk_leaves_the_old_marks_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    save_marks("id", {"a": FULL})
    before = (state_folder() / "marks" / "id.json").read_text()

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert save_marks("id", {"b": FULL}).endswith("No space left on device")
    assert [path.name for path in (state_folder() / "marks").iterdir()] == ["id.json"]
    assert (state_folder() / "marks" / "id.json").read_text() == before
