"""``e`` on every screen: what is shown goes to a file, in the format of its suffix."""

from __future__ import annotations

import csv
import json
import sqlite3
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest
from demo_making import make
from synth import Synth
from tui.frames import rows, running, settled, text, until

from nsys_tui import cli
from nsys_tui.errors import INCONCLUSIVE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from textual.pilot import Pilot


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("demo"), steps=4).path


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


async def press(pilot: Pilot[int], *keys: str) -> None:
    for key in keys:
        await pilot.press(key)
        await settled(pilot)


async def export(pilot: Pilot[int], path: Path) -> str:
    """Writes the focused pane to a file; the text of the screen says what came of it."""
    await press(pilot, "e", "ctrl+u", "ctrl+k")
    pilot.app.screen.query_one("Input").value = str(path)  # type: ignore[attr-defined]
    await press(pilot, "enter")
    return text(pilot)


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    capsys.readouterr()
    assert cli.main([*arguments, "--no-cache"]) == 0
    return capsys.readouterr().out


def records(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


async def test_kernels_as_shown_with_the_figures_of_sql(demo: Path, tmp_path: Path) -> None:
    async with running(demo) as pilot:
        await press(pilot, "3", "slash", *"gemm", "ctrl+f")
        assert "written: " in await export(pilot, tmp_path / "k.csv")
    database = sqlite3.connect(demo)
    wanted = [
        total
        for (total,) in database.execute(
            "select sum(end - start) from CUPTI_ACTIVITY_KIND_KERNEL group by shortName"
        )
    ]
    database.close()
    rows = records(tmp_path / "k.csv")
    totals = [int(row["total (ns)"]) for row in rows]
    assert 0 < len(rows) < len(wanted), "only what the filter leaves"
    assert totals == sorted(totals, reverse=True), "in the order of the screen"
    assert all("gemm" in row["name"] for row in rows)
    assert set(totals) <= set(wanted)


async def test_a_file_is_never_replaced_and_an_odd_suffix_is_refused(
    demo: Path, tmp_path: Path
) -> None:
    there = tmp_path / "there.csv"
    there.write_text("kept")
    async with running(demo) as pilot:
        await press(pilot, "3")
        assert "exists already" in await export(pilot, there)
        await press(pilot, "escape")
        assert ".csv .tsv .json .md .parquet" in await export(pilot, tmp_path / "a.xlsx")
    assert there.read_text() == "kept"
    assert not (tmp_path / "a.xlsx").exists()


async def test_tree_holds_folded_lines_with_their_paths(demo: Path, tmp_path: Path) -> None:
    async with running(demo) as pilot:
        await press(pilot, "4")
        tree = pilot.app.screen.query_one("#tree")
        await export(pilot, tmp_path / "tree.json")
        shown = tree.shown  # type: ignore[attr-defined]
    found = json.loads((tmp_path / "tree.json").read_text())
    assert len(found) > shown
    for row in found:
        parts = row["path"].split(" / ")
        assert len(parts) == row["depth"]
        assert parts[-1] == row["range"]
    by_path = {row["path"]: row for row in found}
    assert all(
        path.rpartition(" / ")[0] in by_path for path, row in by_path.items() if row["depth"] > 1
    )


@pytest.mark.parametrize("suffix", ["csv", "tsv", "md", "json", "parquet"])
async def test_events_in_every_format(demo: Path, tmp_path: Path, suffix: str) -> None:
    if suffix == "parquet":
        pytest.importorskip("pyarrow")
    path = tmp_path / f"events.{suffix}"
    async with running(demo) as pilot:
        pilot.app.show("events")  # type: ignore[attr-defined]
        await settled(pilot)
        shown = pilot.app.screen.table.shown  # type: ignore[attr-defined]
        await export(pilot, path)
    if suffix == "parquet":
        from pyarrow import parquet

        assert parquet.read_table(path).num_rows == shown
    elif suffix == "json":
        assert len(json.loads(path.read_text())) == shown
    else:
        heads = {"csv": 1, "tsv": 1, "md": 2}[suffix]
        assert len(path.read_text().splitlines()) == shown + heads


async def test_overview_is_what_the_command_prints(
    demo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with running(demo) as pilot:
        await export(pilot, tmp_path / "o.json")
        await export(pilot, tmp_path / "o.md")
        pilot.app.front.query_one("#kernels").focus()  # type: ignore[attr-defined]
        await export(pilot, tmp_path / "kernels.csv")
    command = ("overview", str(demo), "--names", "short", "--format")
    assert (tmp_path / "o.json").read_text() == printed(capsys, *command, "json")
    assert (tmp_path / "o.md").read_text() == printed(capsys, *command, "markdown")
    kernels = printed(capsys, *command, "csv", "--section", "kernels")
    assert (tmp_path / "kernels.csv").read_text() == kernels


async def test_stacks_as_picture_and_as_the_command_prints_them(
    demo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with running(demo) as pilot:
        await press(pilot, "6")
        await export(pilot, tmp_path / "s.svg")
        await export(pilot, tmp_path / "s.folded")
        await export(pilot, tmp_path / "s.json")
        await press(pilot, "down", "enter")
        await export(pilot, tmp_path / "zoomed.folded")
    assert ElementTree.parse(tmp_path / "s.svg").getroot().tag.endswith("svg")
    command = ("stacks", str(demo), "--names", "short", "--format")
    folded = (tmp_path / "s.folded").read_text()
    assert folded == printed(capsys, *command, "folded")
    assert (tmp_path / "s.json").read_text() == printed(capsys, *command, "json")
    zoomed = (tmp_path / "zoomed.folded").read_text().splitlines()
    assert 0 < len(zoomed) < len(folded.splitlines())
    assert set(zoomed) <= set(folded.splitlines())
    assert len({line.partition(";")[0] for line in zoomed}) == 1


async def test_comparison_is_what_the_command_prints(
    demo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = make(tmp_path, steps=5).path
    async with running(demo, other) as pilot:
        await press(pilot, "7")
        await export(pilot, tmp_path / "c.json")
        await export(pilot, tmp_path / "c.csv")
        rows = pilot.app.screen.table.shown  # type: ignore[attr-defined]
    capsys.readouterr()
    words = ["compare", str(demo), str(other), "--format", "json", "--no-cache", "--names", "short"]
    assert cli.main(words) in (0, INCONCLUSIVE)
    wanted = json.loads(capsys.readouterr().out)
    found = json.loads((tmp_path / "c.json").read_text())
    assert found["summary"] == wanted["summary"]
    assert found["kernels"] == wanted["kernels"]
    assert len(records(tmp_path / "c.csv")) == rows


async def test_panes_beside_a_table_write_the_table(demo: Path, tmp_path: Path) -> None:
    async with running(demo) as pilot:
        await press(pilot, "3", "tab")
        assert pilot.app.screen.focused.id == "histogram"  # type: ignore[union-attr]
        await export(pilot, tmp_path / "k.csv")
        await press(pilot, "f10")
        assert pilot.app.screen.table.size.height == 0, "the chart fills the screen"  # type: ignore[attr-defined]
        await export(pilot, tmp_path / "again.csv")
    assert "total (ns)" in (tmp_path / "k.csv").read_text()
    assert (tmp_path / "k.csv").read_text() == (tmp_path / "again.csv").read_text()


async def test_stalls_and_instances_have_rows_of_their_own(demo: Path, tmp_path: Path) -> None:
    async with running(demo, size=(160, 45)) as pilot:
        await press(pilot, "5")
        await export(pilot, tmp_path / "gaps.csv")
        gaps = pilot.app.screen.table.shown  # type: ignore[attr-defined]
        await press(pilot, "3", "space")
        await export(pilot, tmp_path / "instances.csv")
        instances = pilot.app.screen.instances.shown  # type: ignore[attr-defined]
    rows = records(tmp_path / "gaps.csv")
    assert len(rows) == gaps
    assert {row["sev"] for row in rows} <= {"-", "L", "M", "!H"}
    rows = records(tmp_path / "instances.csv")
    assert len(rows) == instances
    assert all(int(row["duration (ns)"]) >= 0 for row in rows)


@pytest.mark.parametrize("key", ["3", "6", "f7"])
async def test_the_footer_names_the_export_from_the_first_visit_on(demo: Path, key: str) -> None:
    async with running(demo, size=(160, 45)) as pilot:
        await press(pilot, key)
        await shown(pilot, lambda footer: "e export" in footer)


async def test_the_footer_follows_a_table_that_becomes_empty(demo: Path) -> None:
    async with running(demo, size=(160, 45)) as pilot:
        await press(pilot, "3", "slash", *"zzz", "ctrl+f", "enter")
        await shown(pilot, lambda footer: "e export" not in footer)
        await press(pilot, "escape")
        await shown(pilot, lambda footer: "e export" in footer)


async def shown(pilot: Pilot[int], wanted: Callable[[str], bool]) -> None:
    """Waits for the footer to show what is wanted; it follows the frame that is painted."""
    await until(lambda: wanted(rows(pilot)[-1]))


async def test_whole_numbers_beside_unknown_ones_are_exact(tmp_path: Path) -> None:
    long = 2**53 + 1
    made = Synth(tmp_path / "long.sqlite").process(100, "train").gpu(0)
    made.kernel("k()", 10, 20).launch("k()", (0, 5), (long, long + 7)).launch(
        "k()", (30, 31), (100, 100 + long), stream=9
    )
    async with running(made.write(), size=(160, 45)) as pilot:
        await press(pilot, "3", "space")
        await export(pilot, tmp_path / "i.json")
    latencies = [row["latency (ns)"] for row in json.loads((tmp_path / "i.json").read_text())]
    assert sorted(latencies, key=str) == sorted([None, long, 70], key=str)
