from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any

import pytest
from e2e.capture_lab import Lab, make_lab, nsys_tui
from synth import Synth
from tui.frames import rows, running, settled, text

from nsys_tui.config import load_config
from nsys_tui.ui import progress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from textual.pilot import Pilot

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with make_lab(tmp_path_factory.mktemp("lab") / "ssh") as lab:
        yield lab


@pytest.fixture
def settings(lab: Lab, tmp_path: Path) -> str:
    config = tmp_path / "config.toml"
    config.write_text(f"[capture]\nssh = {json.dumps(list(lab.ssh))}\n")
    return str(config)


def test_every_verb_reads_a_report_on_another_machine(settings: str, tmp_path: Path) -> None:
    there = tmp_path / "runs of it"
    there.mkdir()
    Synth(there / "r 1.sqlite").process(1).kernel("gemm", 0, 500).write()
    name = f"gpu-box:{there}/r 1.sqlite"
    cache = tmp_path / "cache"
    where = {"NSYS_TUI_CONFIG": settings, "XDG_CACHE_HOME": str(cache)}
    run = nsys_tui("overview", name, "--format", "json", **where)
    assert run.returncode == 0, run.stderr
    fetched = [path for path in (cache / "nsys-tui" / "remote").rglob("*") if not path.is_dir()]
    assert {"index.json", "r_1.sqlite"} <= {path.name for path in fetched}
    assert not [path for path in fetched if path.stat().st_mode & 0o077]
    assert json.loads(run.stdout)["devices"][0]["busy_ns"] == 500
    again = nsys_tui(name, NSYS_TUI_CONFIG=settings)
    assert "gemm" in again.stdout


def test_a_folder_is_listed_and_the_next_step_named(settings: str, tmp_path: Path) -> None:
    Synth(tmp_path / "r.sqlite").process(1).kernel("gemm", 0, 500).write()
    run = nsys_tui("overview", f"gpu-box:{tmp_path}/", NSYS_TUI_CONFIG=settings)
    assert run.returncode == 64
    assert "r.sqlite" in run.stderr
    assert "name one of the reports" in run.stderr


def test_an_option_in_place_of_a_host_is_refused(settings: str) -> None:
    run = nsys_tui("overview", "--", "-oProxyCommand=touch /tmp/x:/y", NSYS_TUI_CONFIG=settings)
    assert run.returncode in (64, 65)
    assert "Traceback" not in run.stderr


def shown(pilot: Pilot[int]) -> str:
    """The screen; empty while it is being laid out anew."""
    with contextlib.suppress(AssertionError):
        return text(pilot)
    return ""


async def test_a_folder_there_is_listed_on_the_screen_and_a_fetch_shows_and_stops(
    settings: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "LONG", 0.01)  # a quick disk is done before a line is worth it
    there = tmp_path / "runs"
    there.mkdir()
    Synth(there / "there.sqlite").process(1).kernel("gemm", 0, 500).write()
    with (there / "there.sqlite").open("ab") as file:
        file.truncate(500_000_000)
    here = Synth(tmp_path / "here.sqlite").process(1).kernel("gemm", 0, 500).write()
    async with running(here, size=(120, 30), config=load_config(settings)) as pilot:
        app: Any = pilot.app
        seen: set[str] = set()

        async def choose(keys: str, until: Callable[[], bool]) -> None:
            await pilot.press(*keys, "enter")
            for _ in range(400):
                await pilot.pause(0.05)
                seen.update(word for word in [app.status_text()[0]] if "fetching there" in word)
                if until():
                    return
            raise AssertionError(text(pilot))

        await pilot.press("o")
        await choose(
            f"gpu-box:{there}/",
            lambda: "500 MB" in shown(pilot),
        )
        await choose("", lambda: bool(seen))
        await pilot.press("escape")
        await settled(pilot)
        assert len(app.sessions) == 1
        await pilot.press("o")
        await choose(f"gpu-box:{there}/there.sqlite", lambda: len(app.sessions) == 2)
        await settled(pilot)
        assert "there.sqlite" in rows(pilot)[0]
