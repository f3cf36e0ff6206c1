from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from nsys_tui.state import ColourBy, Cursor, Display, Filter, ViewState, Window
from nsys_tui.ui import resume

if TYPE_CHECKING:
    from pathlib import Path

LEFT = ViewState(
    window=Window(-5, 900),
    cursor=Cursor(17, "gpu:0"),
    filter=Filter("gemm", 2_000, devices=frozenset({1}), processes=frozenset({2**50})),
    display=Display(
        colour_by=ColourBy.NAME,
        pinned=("gpu:1", "gpu:0"),
        hidden=frozenset({"cpu:3"}),
        folded=frozenset({"nvtx"}),
    ),
)


def test_what_was_kept_comes_back(tmp_path: Path) -> None:
    resume.keep("id", "kernels", LEFT, tmp_path)
    found = resume.seen("id", tmp_path)
    assert found is not None
    assert found.screen == "kernels"
    assert found.on(ViewState()) == LEFT
    assert resume.seen("other", tmp_path) is None


def test_the_whole_trace_stays_the_whole_trace(tmp_path: Path) -> None:
    resume.keep("id", "overview", replace(LEFT, window=None), tmp_path)
    found = resume.seen("id", tmp_path)
    assert found is not None
    assert found.on(LEFT).window is None


@pytest.mark.parametrize(
    "change",
    [
        {"screen": "home"},
        {"screen": []},
        {"window": [5, 5]},
        {"window": [5]},
        {"window": ["a", "b"]},
        {"window": [0, 2**70]},
        {"cursor": None},
        {"cursor": [None, ""]},
        {"filter": {"pattern": 3}},
        {"filter": {"devices": [True]}},
        {"filter": []},
        {"colour_by": "taste"},
        {"pinned": 3},
        {"hidden": None},
    ],
    ids=str,
)
def test_a_file_that_makes_no_sense_counts_as_none(tmp_path: Path, change: dict[str, Any]) -> None:
    resume.keep("id", "kernels", LEFT, tmp_path)
    file = tmp_path / "seen/id.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    assert resume.seen("id", tmp_path) is None


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "\0" * 9, "[" * 100_000, '"x"'])
def test_a_damaged_file_counts_as_none(tmp_path: Path, text: str) -> None:
    resume.keep("id", "kernels", LEFT, tmp_path)
    (tmp_path / "seen/id.json").write_text(text)
    assert resume.seen("id", tmp_path) is None


def test_only_the_latest_files_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resume, "KEPT", 3)
    for number in range(6):
        resume.keep(f"r{number}", "kernels", LEFT, tmp_path)
    kept = list((tmp_path / "seen").iterdir())
    assert len(kept) == 3
    assert resume.seen("r5", tmp_path) is not None


def test_a_folder_that_cannot_be_written_is_no_fault(tmp_path: Path) -> None:
    (tmp_path / "seen").write_text("a file")
    resume.keep("id", "kernels", LEFT, tmp_path)
    assert resume.seen("id", tmp_path) is None
