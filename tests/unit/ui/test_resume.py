from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from nsys_tui.paths import state_folder
from nsys_tui.state import ColourBy, Cursor, Display, Filter, ViewState, Window
from nsys_tui.ui import resume

LEFT = ViewState(
    window=Window(-5, 900),
    cursor=Cursor(17, "gpu:0"),
    filter=Filter("gemm", 2_000, devices=frozenset({1}), processes=frozenset({2**50})),
    display=Display(
        colour_by=ColourBy.NAME,
        pinned=("gpu:1", "gpu:0"),
        hidden=frozenset({"cpu:3"}),
        folded=frozenset({"nvtx"}),
        opened=frozenset({"others"}),
    ),
)


def test_what_was_kept_comes_back() -> None:
    resume.keep("id", "kernels", LEFT)
    found = resume.seen("id")
    assert found is not None
    assert found.screen == "kernels"
    assert found.on(ViewState()) == LEFT
    assert resume.seen("other") is None


def test_the_whole_trace_stays_the_whole_trace() -> None:
    resume.keep("id", "overview", replace(LEFT, window=None))
    found = resume.seen("id")
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
def test_a_file_that_makes_no_sense_counts_as_none(change: dict[str, Any]) -> None:
    resume.keep("id", "kernels", LEFT)
    file = state_folder() / "seen/id.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    assert resume.seen("id") is None


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "\0" * 9, "[" * 100_000, '"x"'])
def test_a_damaged_file_counts_as_none(text: str) -> None:
    resume.keep("id", "kernels", LEFT)
    (state_folder() / "seen/id.json").write_text(text)
    assert resume.seen("id") is None


def test_only_the_latest_files_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resume, "KEPT", 3)
    for number in range(6):
        resume.keep(f"r{number}", "kernels", LEFT)
    kept = list((state_folder() / "seen").iterdir())
    assert len(kept) == 3
    assert resume.seen("r5") is not None


def test_a_folder_that_cannot_be_written_is_no_fault() -> None:
    state_folder().mkdir(parents=True)
    (state_folder() / "seen").write_text("a file")
    resume.keep("id", "kernels", LEFT)
    assert resume.seen("id") is None
