"""Names that look like markup, options or commands of a terminal, on the screens beside a report.

Targets, past captures, presets, logs and ranks hold text that others wrote, as reports do.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import pytest
from synth import Synth
from textual.widgets import Input
from tui.frames import running, settled, text

from nsys_tui.capture.record import Failure, Record, ReportFile, State, Store
from nsys_tui.config import Config, TargetConfig

if TYPE_CHECKING:
    from pathlib import Path

    from textual.pilot import Pilot

EVIL: Final = "a\x1b[31m\x07[red][/]\u202e\x9b2J --help"
NAMES: Final = (EVIL, "--output=/etc/passwd", "[/bold]", "x" * 100_000, "\udcff\udc9b", "")
NOT_SHOWN: Final = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\ud800-\udfff]")


@pytest.fixture
def report(tmp_path: Path) -> Path:
    """A report whose ranks, commands and environment are hostile."""
    made = Synth(tmp_path / "evil [red]\x1b[31m.sqlite").process(100, EVIL).gpu(0, name=EVIL)
    made.environment("Hostname", EVIL).meta("PROCESS_0:COMMAND_LINE", EVIL, capture=True)
    made.meta("PROCESS_0:ENVIRONMENT_VARIABLE", f"SLURM_JOB_NAME={EVIL}", capture=True)
    for place, name in enumerate(NAMES):
        at = place * 1000
        shown = name.encode("utf-8", "replace").decode()
        made.nvtx(f"step {shown}", at, at + 900)
        made.launch(f"ncclDevKernel_AllReduce{shown}", (at + 10, at + 20), (at + 100, at + 400))
    return made.write()


async def seen_after(pilot: Pilot[int], *keys: str) -> str:
    shown = []
    for key in keys:
        await pilot.press(key)
        await settled(pilot)
        shown.append(text(pilot))
    app: Any = pilot.app
    assert app.error is None
    return "\n".join(shown)


@pytest.mark.parametrize("size", [(80, 24), (160, 45)])
async def test_targets_and_past_captures_are_shown_and_not_obeyed(
    report: Path, tmp_path: Path, size: tuple[int, int]
) -> None:
    target = TargetConfig(host=EVIL, cwd=EVIL, preamble=EVIL, command=(EVIL, *NAMES[1:4]))
    config = Config(path=tmp_path / "config.toml", targets={EVIL: target, "[/]": target})
    for number, name in enumerate(NAMES):
        stored = name.encode("utf-8", "replace").decode()
        Store().save(
            Record(
                id=f"20260101-00000{number}-abcdef",
                plan={"target": {"name": stored}, "program": [stored, stored]},
                state=(State.DONE, State.FAILED, State.RUNNING)[number % 3],
                where=stored,
                git_commit=stored,
                reports=(ReportFile(stored, 5),),
                failure=Failure("run", "gone", stored, stored, 70) if number % 3 == 1 else None,
                notes=(stored,),
            )
        )
    async with running(report, size=size, config=config) as pilot:
        seen = await seen_after(pilot, "9", "F", "down", "down", "space", "h", "down", "down", "y")
        seen += await seen_after(pilot, "escape", "ctrl+e", "down", "enter", "down", "escape")
        seen += await seen_after(pilot, "escape", "P", "escape", "question_mark", "escape")
    assert NOT_SHOWN.findall(seen) == []
    assert "[red]" in seen
    assert "cannot be used as a name" in seen


@pytest.mark.parametrize("size", [(80, 24), (160, 45)])
async def test_fleets_comparisons_and_logs_are_shown_and_not_obeyed(
    report: Path, tmp_path: Path, size: tuple[int, int]
) -> None:
    other = tmp_path / "--help.sqlite"
    other.write_bytes(report.read_bytes())
    log = tmp_path / "nccl.log"
    lines = [
        f"{name.encode('utf-8', 'replace').decode()}:7:7 [0] NCCL INFO {word}: opCount 0 sendbuff "
        "0x1 recvbuff 0x2 count 4 datatype 7 op 0 root 0 comm 0x5 [nranks=2] stream 0x6"
        for name in NAMES
        for word in ("AllReduce", EVIL)
    ]
    log.write_text("\n".join(lines))
    async with running(report, other, size=size) as pilot:
        seen = await seen_after(pilot, "7", "down", "enter", "escape", "g", "question_mark")
        seen += await seen_after(pilot, "escape", "f7", "down", "enter", "escape", "slash", "a")
        seen += await seen_after(pilot, "escape", "f8", "o", *str(log), "enter", "j", "j", "down")
        seen += await seen_after(pilot, "ctrl+p", *"red", "escape", "o", "escape")
    assert NOT_SHOWN.findall(seen) == []


async def test_the_name_of_a_file_is_shown_and_not_obeyed_where_it_is_typed(report: Path) -> None:
    async with running(report) as pilot:
        seen = await seen_after(pilot, "2", "e")
        assert NOT_SHOWN.findall(seen) == []
        assert "evil [red]" in seen
        assert "\x1b" in pilot.app.screen.query_one(Input).value
