from __future__ import annotations

import threading

from nsys_tui.model.notes import Note, Notes


def test_a_note_is_kept_and_told_once() -> None:
    notes = Notes()
    told: list[Note] = []
    early, late = Note("early"), Note("late", "KERNEL", "start")
    notes.add(early)
    notes.listen(told.append)
    notes.add(late, early)
    assert notes.texts == ("early", "late")
    assert told == [early, late]
    assert list(notes) == told


def test_threads_add_at_the_same_time() -> None:
    notes = Notes()
    told: list[Note] = []
    notes.listen(told.append)
    both = threading.Barrier(4)

    def add() -> None:
        both.wait()
        for number in range(200):
            notes.add(Note(f"note {number}"))

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(notes) == len(told) == 200
