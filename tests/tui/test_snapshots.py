"""Every screen as text, in two sizes, on the demo and on two real reports.

A frame that changed on purpose is written again by ``tests/run --snapshots``; the diff is read
like code.
"""

from __future__ import annotations

import difflib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from demo_making import make
from paths import REPORTS
from scrubbing import private_words, scrubbed
from tui.frames import rows, running, settled

from nsys_tui.ui.keymap import screen_actions
from nsys_tui.ui.screens.fleet.screen import FleetScreen

if TYPE_CHECKING:
    from textual.pilot import Pilot

FOLDER: Final = Path(__file__).with_name("snapshots")
REAL: Final = {
    "training": "pytorch-nccl-2gpu-2026.2.sqlite",
    "hpc": "cloverleaf-a100-2024.5.sqlite",
}
SIZES: Final = ("80x24", "160x45")
SCREENS: Final = {
    "overview": "1",
    "timeline": "2 f tab",
    "kernels": "3",
    "nvtx": "4",
    "stalls": "5",
    "stacks": "6",
    "compare": "7",
    "capture": "9",
    "events": "2 f i",
    "steps": "4 t",
    "fleet": "f7 home",
    "logs": "f8",
    "sql": "8 f2 k e r n e l s space t h a t enter f4",
}
"""Keys to each screen. Those of `WITH_ANOTHER` open two reports."""
WITH_ANOTHER: Final = ("compare", "fleet")
ON_DEMO: Final = {
    "sql-error": "8 i s e l e c space n a f5",
    "logs-files": "f8 o l o g s enter",
    "help": "question_mark",
    "palette": "ctrl+p",
    "jump": "ctrl+o",
    "display": "C",
    "save": "3 e",
    "frequency": "3 F",
    "goto": "2 g",
    "area": "2 f v right right right right v",
    "marks": "2 f m a apostrophe",
    "captures": "9 h",
    "targets": "9 ctrl+e",
}
"""Dialogs and states that look alike on every report."""
CASES: Final = [
    *((report, name, size) for report in ("demo", *REAL) for name in SCREENS for size in SIZES),
    *(("demo", name, "80x24") for name in ON_DEMO),
]
IDS: Final = ["-".join(case) for case in CASES]


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Path]]:
    """By name: the report, and another one to stand beside it."""
    folder = tmp_path_factory.mktemp("snapshots")
    demo = make(folder, steps=5).path
    longer = make(folder / "longer", steps=7).path
    found = {"demo": [demo, longer.rename(folder / "longer.sqlite")]}
    for name, file in REAL.items():
        if (REPORTS / file).is_file():
            first = scrubbed(REPORTS / file, folder / f"{name}.sqlite")
            found[name] = [first, scrubbed(first, folder / f"{name}-again.sqlite")]
    return found


@pytest.fixture(autouse=True)
def same_everywhere(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, reports: dict[str, list[Path]]
) -> None:
    """No nsys, no zone and no folder of this machine shows in a frame; all screens are imported."""
    screen_actions()
    monkeypatch.setattr(FleetScreen, "WORKERS", 1)
    monkeypatch.setenv("NSYS_TUI_CONFIG", "config.toml")
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.chdir(reports["demo"][0].parent)


@pytest.mark.parametrize(("report", "name", "size"), CASES, ids=IDS)
async def test_screens_look_as_they_did(
    reports: dict[str, list[Path]], report: str, name: str, size: str, update_snapshots: bool
) -> None:
    if report not in reports:
        pytest.skip(f"needs {REAL[report]} in ../shared/reports, which is absent")
    width, height = map(int, size.split("x"))
    paths = reports[report] if name in WITH_ANOTHER else reports[report][:1]
    keys = SCREENS.get(name) or ON_DEMO[name]
    async with running(*paths, size=(width, height)) as pilot:
        for key in keys.split():
            await pilot.press(key)
            await _come_to_rest(pilot)
        shown = "".join(f"{row.rstrip()}\n" for row in rows(pilot))
    stored = FOLDER / report / f"{name}-{size}.txt"
    if update_snapshots:
        stored.parent.mkdir(parents=True, exist_ok=True)
        stored.write_text(shown)
    before = stored.read_text() if stored.is_file() else ""
    changes = difflib.unified_diff(
        before.splitlines(), shown.splitlines(), str(stored), "now", lineterm="", n=1
    )
    assert before == shown, "\n".join(
        [*changes, "meant so? tests/run --snapshots writes the frames again"]
    )


async def _come_to_rest(pilot: Pilot[int]) -> None:
    """Waits, and takes passing messages away: their own tests read those.

    After every key, since a dialog leaves what the screen below it said until a timer ends.
    """
    app: Any = pilot.app
    await settled(pilot)
    app.clear_notifications()
    app.say("")
    await settled(pilot)


def test_every_stored_frame_belongs_to_a_screen(update_snapshots: bool) -> None:
    wanted = {FOLDER / report / f"{name}-{size}.txt" for report, name, size in CASES}
    left = set(FOLDER.rglob("*.txt")) - wanted
    if update_snapshots:
        for path in left:
            path.unlink()
    else:
        assert not left


@pytest.mark.parametrize("report", REAL)
def test_no_frame_tells_of_people_machines_or_folders(report: str) -> None:
    if not (REPORTS / REAL[report]).is_file():
        pytest.skip(f"needs {REAL[report]} in ../shared/reports, which is absent")
    words = private_words(REPORTS / REAL[report])
    assert len(words) > 10, "the report names its host and folders"
    for path in sorted((FOLDER / report).glob("*.txt")):
        shown = path.read_text()
        folder_or_address = r"/(home|root|tmp|Users|global)\b|(?<!nsys )\b\d+\.\d+\.\d+\.\d+"
        assert not re.search(folder_or_address, shown), path
        told = {word for word in words if word in shown}
        assert not told, f"{path.name}: {told}"
