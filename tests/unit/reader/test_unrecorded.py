"""GPU work that calls asked for and of which there is no row is told when the report is opened."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from synth import Synth

from nsys_tui.reader import open_report

if TYPE_CHECKING:
    from pathlib import Path

CALLS = {
    "KERNEL": "cuLaunchKernelEx",
    "MEMCPY": "cudaMemcpyAsync_v3020",
    "MEMSET": "cudaMemsetAsync_v3020",
    "GRAPH_TRACE": "cudaGraphLaunch_v10000",
}


def told(synth: Synth) -> list[str]:
    return [note.table for note in open_report(synth.write(), use_cache=False).notes]


@pytest.mark.parametrize("kind", CALLS)
def test_work_without_a_row_is_told_where_a_call_asked_for_it(tmp_path: Path, kind: str) -> None:
    synth = Synth(tmp_path / "r.sqlite").api(CALLS[kind], 0, 5)
    table = f"CUPTI_ACTIVITY_KIND_{kind}"
    (note,) = open_report(synth.write(), use_cache=False).notes
    assert note.table == table
    name = CALLS[kind].partition("_")[0]
    assert note.text.startswith(f"{table} is missing, though {name} was called: ")


@pytest.mark.parametrize("kind", CALLS)
def test_work_that_is_there_is_not_told(tmp_path: Path, kind: str) -> None:
    synth = Synth(tmp_path / "r.sqlite").api(CALLS[kind], 0, 5)
    synth.kernel("k", 0, 5).memcpy(5, 6).memset(6, 7).graph(7, 8)
    assert told(synth) == []


def test_calls_that_failed_ask_for_nothing(tmp_path: Path) -> None:
    assert told(Synth(tmp_path / "r.sqlite").api(CALLS["MEMSET"], 0, 5, returned=2)) == []


@pytest.mark.parametrize("node", [7, None])
def test_graphs_whose_nodes_were_traced_are_there(tmp_path: Path, node: int | None) -> None:
    synth = Synth(tmp_path / "r.sqlite").api(CALLS["GRAPH_TRACE"], 0, 5)
    synth.kernel("k", 0, 5, graphNodeId=node)
    assert told(synth) == ([] if node else ["CUPTI_ACTIVITY_KIND_GRAPH_TRACE"])


def test_a_column_that_is_not_believed_is_told_alone(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").api(CALLS["MEMSET"], 0, 5).memset(5, 6)
    synth.sql("ALTER TABLE CUPTI_ACTIVITY_KIND_MEMSET RENAME deviceId TO place")
    assert told(synth) == ["CUPTI_ACTIVITY_KIND_MEMSET"]
