"""The editor of a query, with colours where tree-sitter's SQL is installed, and earlier queries."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar, Final

from textual import events
from textual.message import Message
from textual.reactive import reactive
from textual.widgets import TextArea

from nsys_tui.paths import state_folder
from nsys_tui.sql.completion import completions
from nsys_tui.ui.widgets.frame import Framed
from nsys_tui.writing import write_whole

KEPT: Final = 100


def asked_before() -> list[str]:
    """Queries, newest first; none where the file cannot be read."""
    with suppress(OSError, ValueError):
        queries = json.loads(_file().read_text(encoding="utf-8"))
        return [query for query in queries if isinstance(query, str)]
    return []


def remember(query: str) -> None:
    """Puts a query first; does nothing where the state folder cannot be written."""
    kept = [query, *(other for other in asked_before() if other != query)][:KEPT]
    with suppress(OSError):
        write_whole(_file(), json.dumps(kept))


def _file() -> Path:
    return state_folder() / "queries.json"


COLOURED = all(map(find_spec, ("tree_sitter", "tree_sitter_sql")))
"""Whether what colours SQL is installed."""


class Editor(TextArea, Framed):
    """Tab completes a word that is being typed; where none is, it goes to the next pane."""

    DEFAULT_CSS: ClassVar[str] = """
    Editor, Editor:focus { padding: 0; background: $background; }
    Editor .text-area--cursor-line { background: $background; }
    Editor:light .text-area--cursor { color: $background; background: $foreground; }
    """
    cursor_blink = reactive(False, init=False)

    @dataclass
    class Offered(Message):
        """Words that may stand where one is being typed; none where it is complete."""

        words: list[str]

    def __init__(self, id: str) -> None:  # noqa: A002
        language = "sql" if COLOURED else None
        super().__init__(id=id, language=language, show_line_numbers=False, compact=False)
        self.tables: Mapping[str, tuple[str, ...]] = {}
        self._offer: tuple[str, list[str], int] = ("", [], 0)
        """Text before the cursor after a completion, all words, and which of them stands there."""

    @property
    def before(self) -> str:
        """The text up to the cursor."""
        return self.get_text_range((0, 0), self.cursor_location)

    def put(self, text: str) -> None:
        """Replaces the whole text; the cursor goes to its end."""
        self.load_text(text)
        self.move_cursor(self.document.end)

    def go_to(self, offset: int) -> None:
        """Puts the cursor on a character."""
        head = self.text[:offset]
        self.move_cursor((head.count("\n"), len(head) - (head.rfind("\n") + 1)))

    async def _on_key(self, event: events.Key) -> None:
        if event.key == "tab" and self._complete():
            event.stop()
            event.prevent_default()
            return
        await super()._on_key(event)

    def _complete(self) -> bool:
        """Puts the next word that fits; False where none is being typed."""
        before, (then, words, place) = self.before, self._offer
        if words and before == then:
            word, place = words[place], (place + 1) % len(words)
        else:
            word, words = completions(before, self.text, self.tables)
            if not word and not before.endswith((".",)):
                return False
            place = 0
        if not words:
            self.post_message(self.Offered(["nothing begins so"]))
            return True
        end = self.cursor_location
        self.replace(words[place], (end[0], end[1] - len(word)), end)
        self._offer = (self.before, words, place)
        self.post_message(self.Offered(words))
        return True
