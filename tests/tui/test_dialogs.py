from __future__ import annotations

from typing import TYPE_CHECKING

from textual.events import Key
from textual.widgets import Input
from tui.frames import rows, running, text

from nsys_tui.capture.transport.askpass import Prompt as Asked
from nsys_tui.capture.transport.askpass import PromptKind
from nsys_tui.ui.dialogs.picker import Confirm, Prompt
from nsys_tui.ui.dialogs.secret import ask

if TYPE_CHECKING:
    from pathlib import Path

KEY = "SHA256:NNcHbjhm70CqgIbXVCE0vv/9vz7pzL8nod4TuB1wUlU"


async def test_two_answers_at_once_are_one(small: Path) -> None:
    async with running(small) as pilot:
        answers: list[str | None] = []
        dialog = Confirm("Really?", {"y": "yes", "n": "no"})
        pilot.app.push_screen(dialog, answers.append)
        await pilot.pause()
        dialog.dismiss("y")
        dialog.dismiss("n")
        await pilot.pause()
        assert answers == ["y"]
        assert "compute " in text(pilot)


async def test_a_text_wider_than_its_box_shows_the_end_that_is_typed(small: Path) -> None:
    async with running(small) as pilot:
        pilot.app.push_screen(Prompt("program", value="head " + "x" * 70 + " tail"))
        await pilot.pause()
        [row] = [row for row in rows(pilot) if "xxxx" in row]
        assert "xxx tail" in row
        await pilot.press("home")
        await pilot.pause()
        assert "head xxx" in text(pilot)


async def test_a_host_key_question_shows_who_asks_and_the_whole_fingerprint(small: Path) -> None:
    said = f"The host is unknown.\nED25519 key fingerprint is {KEY}.\nContinue (yes/no)? "
    async with running(small) as pilot:
        question = Asked(PromptKind.HOST_KEY, said, "gpu-box")
        task = pilot.app.run_worker(ask(pilot.app, question))  # type: ignore[arg-type]
        await pilot.pause()
        shown = text(pilot)
        assert "gpu-box asks" in shown
        assert KEY in shown
        assert "␊" not in shown
        await pilot.press("y")
        assert await task.wait() == "yes"


async def test_keys_of_one_packet_act_in_the_order_of_typing(small: Path) -> None:
    async with running(small) as pilot:
        pilot.app.push_screen(Prompt("program", value="before"))
        await pilot.pause()
        keys: list[tuple[str, str | None]] = [("ctrl+u", "\x15"), *((key, key) for key in "abc")]
        keys += [("backspace", "\x7f"), ("home", None), ("x", "x")]
        for key, character in keys:
            pilot.app.post_message(Key(key, character))
        await pilot.pause()
        await pilot.pause()
        assert pilot.app.screen.query_one(Input).value == "xab"
