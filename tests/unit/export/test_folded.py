from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from typing import TYPE_CHECKING

from stack_making import from_stacks
from synth import Synth

from nsys_tui.cli import main
from nsys_tui.export.folded import DOCUMENT, flame_graph, folded_lines
from nsys_tui.text.documents import document_text

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

SVG = "{http://www.w3.org/2000/svg}"


def test_separator_and_line_breaks_never_split_a_frame() -> None:
    tree = from_stacks([(("a;b", 'c\n"d"'), 5), (("", "\x1b[31m"), 2)])
    assert list(folded_lines(tree)) == ["[unnamed];[31m 2", 'a_b;c "d" 5']


def test_stacks_that_become_equal_are_summed() -> None:
    tree = from_stacks([(("a;b",), 5), (("a_b",), 7), (("a_b",), 0)])
    assert list(folded_lines(tree)) == ["a_b 12"]


def test_json_keeps_frames_as_they_are() -> None:
    tree = from_stacks([(("a;b", "c"), 5), (("a;b",), 1)])
    data = json.loads("".join(document_text(DOCUMENT, tree)))
    assert data["total"] == 6
    assert {"frames": ["a;b", "c"], "weight": 5, "count": 1} in data["stacks"]


def test_flame_graph_is_valid_xml_whatever_the_names_hold() -> None:
    tree = from_stacks([(("<script>", "a & b ]]>\x00"), 75), (("x", "y"), 25)])
    root = ElementTree.fromstring(flame_graph(tree, "<title> & co"))
    frames = [g for g in root.iter(f"{SVG}g") if g.get("class") == "frame"]
    assert len(frames) == 5
    parts = {frame.get("data-name"): float(frame.get("data-w") or 0) for frame in frames}
    assert parts["all"] == 1
    assert parts["<script>"] == 0.75
    assert parts["y"] == 0.25


def test_children_lie_inside_their_parent_widest_first() -> None:
    tree = from_stacks([(("a", "small"), 10), (("a", "wide"), 60), (("b",), 30)])
    root = ElementTree.fromstring(flame_graph(tree, "t"))
    place = {
        frame.get("data-name"): (float(frame.get("data-x") or 0), float(frame.get("data-w") or 0))
        for frame in root.iter(f"{SVG}g")
    }
    assert place["a"] == (0, 0.7)
    assert place["wide"] == (0, 0.6)
    assert place["small"] == (0.6, 0.1)
    assert place["b"] == (0.7, 0.3)


def test_an_empty_tree_draws_an_empty_graph() -> None:
    root = ElementTree.fromstring(flame_graph(from_stacks([]), "nothing"))
    assert not list(root.iter(f"{SVG}g"))


def test_without_gpu_work_the_stacks_are_of_what_was_recorded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = Synth(tmp_path / "r.sqlite").process(100).sample(10, ("leaf", "main")).write()
    assert main(["stacks", str(report)]) == 0
    told = capsys.readouterr()
    assert "main;leaf 1" in told.out
    assert "no GPU work here, so CPU samples: --source cpu" in told.err


def test_a_terminal_gets_a_tree_of_what_weighs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(100)
    for number in range(300):
        synth.nvtx(f"aten::add, op_id = {number}", 1000 * number, 1000 * number + 900)
        synth.launch("add", (1000 * number, 1000 * number + 9), (1000 * number, 1000 * number + 99))
    report = (
        synth.nvtx("rare", 400_000, 400_900)
        .launch("tiny", (400_000, 400_009), (400_000, 400_010))
        .write()
    )
    monkeypatch.setattr("nsys_tui.commands.stacks.room", lambda _: 60)
    assert main(["stacks", str(report)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[-1] for line in lines] == ["all", "aten::add", "add"]
    assert main(["stacks", str(report), "--format", "folded"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 301
