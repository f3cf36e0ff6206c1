"""Containers and pods by way of stand-ins for docker, podman and kubectl that run right here."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
from capture_support import Place, make_place

from nsys_tui.capture.failures import LostError
from nsys_tui.capture.record import State

STAND_IN = """#!/bin/sh
# takes the words of exec up to "sh -s" and runs that here
printf '%s\\n' "$0 $*" >> "{log}"
if [ -e "{gone}" ]; then echo "Error: No such container: trainer" >&2; exit 1; fi
while [ "$1" != sh ]; do shift; done
exec "$@"
"""


def place_with(
    folder: Path, program: str, monkeypatch: pytest.MonkeyPatch, **settings: Any
) -> Place:
    place = make_place(folder, launcher=program, **settings)
    tool = folder / "bin" / program
    tool.write_text(STAND_IN.format(log=folder / "calls", gone=folder / "gone"))
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}/bin:{os.environ['PATH']}")
    return place


@pytest.mark.parametrize(
    ("program", "settings", "words"),
    [
        ("docker", {"tables": {"container": {"name": "trainer"}}}, "exec -i trainer sh -s"),
        (
            "podman",
            {"tables": {"container": {"name": "trainer", "user": "1000"}}},
            "exec -i -u 1000 trainer sh -s",
        ),
        (
            "kubectl",
            {
                "tables": {
                    "kubernetes": {
                        "context": "prod",
                        "namespace": "ml",
                        "pod": "t-0",
                        "container": "main",
                    }
                }
            },
            "--context prod exec -i -n ml t-0 -c main -- sh -s",
        ),
    ],
)
async def test_a_report_comes_out_of_a_container(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    program: str,
    settings: dict[str, Any],
    words: str,
) -> None:
    place = place_with(tmp_path, program, monkeypatch, **settings)
    record = await place.capture("sh", "-c", "exit 4", "it's", "$(x)").run()
    assert record.state is State.DONE
    assert record.program_exit == 4
    [report] = record.reports
    assert Path(report.local).parent == place.store.path(record.id)
    assert Path(report.local).read_bytes() == Path(report.path).read_bytes()
    assert place.seen()[0][: len(record.argv) - 1] == list(record.argv[1:])
    calls = (tmp_path / "calls").read_text().splitlines()
    assert {call.partition(" ")[2] for call in calls} == {words}


async def test_a_container_that_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = place_with(tmp_path, "docker", monkeypatch, tables={"container": {"name": "trainer"}})
    (tmp_path / "gone").touch()
    capture = place.capture("true")
    with pytest.raises(LostError, match="is gone") as caught:
        await capture.run()
    assert "No such container: trainer" in caught.value.message
    assert not place.dump.exists()


async def test_a_container_that_goes_away_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = place_with(tmp_path, "docker", monkeypatch, tables={"container": {"name": "trainer"}})
    capture = place.capture("sleep", "0.8")
    running = asyncio.create_task(capture.run())
    async with asyncio.timeout(15):
        while capture.record.state is not State.RUNNING:
            await asyncio.sleep(0.02)
    (tmp_path / "gone").touch()
    with pytest.raises(LostError, match="docker trainer is gone"):
        await asyncio.wait_for(running, 30)
    assert place.store.load(capture.record.id).state is State.LOST
