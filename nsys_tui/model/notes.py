"""What in a report was not believed or not understood, one sentence each, as it is found."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Note:
    """One thing that is left out of the figures, or read in another way than usual."""

    text: str
    """A sentence for people; names in it come from the file and are not escaped yet."""
    table: str = ""
    """The table of the file that it is about, if it is about one."""
    column: str = ""
    """The column of that table, likewise."""

    def __str__(self) -> str:
        return self.text


class Notes:
    """The notes of one open report: each once, in the order in which they were found.

    Threads that read different parts of the report add to it at the same time.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._notes: dict[Note, None] = {}
        self._listeners: list[Callable[[Note], None]] = []

    def add(self, *notes: Note) -> None:
        """Adds those that are not there yet, and tells the listeners."""
        with self._lock:
            new = [note for note in dict.fromkeys(notes) if note not in self._notes]
            self._notes.update(dict.fromkeys(new))
            listeners = tuple(self._listeners)
        _tell(listeners, new)

    def listen(self, listener: Callable[[Note], None]) -> None:
        """Tells a listener every note, those that are there at once.

        Args:
            listener: called from whatever thread finds a note.
        """
        with self._lock:
            self._listeners.append(listener)
            known = tuple(self._notes)
        _tell((listener,), known)

    @property
    def texts(self) -> tuple[str, ...]:
        """The sentences, as tables and JSON show them."""
        return tuple(note.text for note in self)

    def __iter__(self) -> Iterator[Note]:
        with self._lock:
            return iter(tuple(self._notes))

    def __len__(self) -> int:
        return len(self._notes)


def _tell(listeners: Iterable[Callable[[Note], None]], notes: Iterable[Note]) -> None:
    for note in notes:
        for listener in listeners:
            listener(note)
