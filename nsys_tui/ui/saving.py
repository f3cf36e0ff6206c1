"""Saving: asks for a file name and writes what is shown, or a page about it, in a worker.

Another file is never written over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, TypeAlias

from nsys_tui.errors import UsageError
from nsys_tui.extras import adding
from nsys_tui.model.progress import Progress
from nsys_tui.ui.dialogs.picker import Prompt
from nsys_tui.ui.scoping import report_scope
from nsys_tui.units import format_bytes
from nsys_tui.writing import whole_file

if TYPE_CHECKING:
    from nsys_tui.model.table import Table
    from nsys_tui.ui.host import Host

Writer: TypeAlias = Callable[[BinaryIO, Progress], None]
"""Writes the bytes of a file; calls the progress often, so that it can be cancelled."""

TEXTS: Final = {".csv": "csv", ".tsv": "tsv", ".json": "json", ".md": "markdown"}
"""Suffix of a table's file to its format in ``text.formats``."""
PIECES: Final = 2_048
"""Pieces of text between two calls of the progress."""


@dataclass(frozen=True)
class Saving:
    """What can be written, and how."""

    title: str
    """Heading of the question."""
    name: str
    """The file name that is proposed."""
    writers: Mapping[str, Writer]
    """By suffix, such as ``.csv``; the suffix that the user types chooses."""

    def checked(self, name: str) -> Path:
        """The path for a name that was typed.

        Raises:
            UsageError: no name, no folder of that name, a file that is there, an unknown suffix,
                or one that needs a package that is not installed.
        """
        path = fresh_path(name)
        suffix = path.suffix.lower()
        if suffix not in self.writers:
            raise UsageError(f"{suffix or 'no suffix'}: one of {' '.join(self.writers)}")
        if suffix == ".parquet" and find_spec("pyarrow") is None:
            raise UsageError(".parquet needs pyarrow", hint=adding("parquet"))
        return path


def fresh_path(name: str) -> Path:
    """The path of a file that is to be written.

    Raises:
        UsageError: there is no name, no such folder, or a file of that name is there.
    """
    if not name.strip():
        raise UsageError("no file name given")
    path = Path(name.strip()).expanduser().absolute()
    if path.exists():
        raise UsageError(f"{path} exists already", hint="choose another name")
    if not path.parent.is_dir():
        raise UsageError(f"there is no folder {path.parent}")
    return path


def save(app: Host, saving: Saving) -> None:
    """Asks for the name and writes the file; a toast says where it is and how large."""
    hint = f"a file that does not exist yet: {' '.join(saving.writers)}"
    prompt = Prompt(saving.title, hint, saving.name, check=saving.checked)

    def named(name: str) -> None:
        if (screen := app.front) is None:
            return
        path = saving.checked(name)
        write = saving.writers[path.suffix.lower()]

        def done(size: int) -> None:
            app.say(f"written: {path} ({format_bytes(size)})")

        screen.compute_telling("export", lambda progress: written(path, write, progress), done)

    app.ask(prompt, named)


def written(path: Path, write: Writer, progress: Progress) -> int:
    """Writes a new file; one that is not finished does not stay.

    Returns:
        its size in bytes.

    Raises:
        UsageError: the file is there by now, or cannot be written.
    """
    with whole_file(path, "xb", taken="choose another name") as file:
        write(file, progress)
    return path.stat().st_size


def text_writer(
    pieces: Callable[[], Iterable[str]], rows: int, what: str = "writing rows"
) -> Writer:
    """A writer of text that comes piece by piece, about one a row."""

    def write(file: BinaryIO, progress: Progress) -> None:
        for number, piece in enumerate(pieces()):
            if number % PIECES == 0:
                progress(what, min(number, rows) if rows else number, rows)
            file.write(piece.encode("utf-8", "backslashreplace"))

    return write


def table_writers(table: Callable[[], Table], rows: int) -> dict[str, Writer]:
    """Writers of a table in every format.

    Args:
        table: makes it; called in the worker.
        rows: how many it has, for the progress.
    """

    def as_text(kind: str) -> Writer:
        def pieces() -> Iterable[str]:
            from nsys_tui.text.tables import chunks

            return chunks(table(), kind)

        return text_writer(pieces, rows)

    def parquet(file: BinaryIO, progress: Progress) -> None:
        from nsys_tui.export.tables import store_parquet

        progress("writing rows", 0, rows)
        store_parquet(table(), file, lambda done: progress("writing rows", done, rows))

    return {suffix: as_text(kind) for suffix, kind in TEXTS.items()} | {".parquet": parquet}


def save_page(app: Host) -> None:
    """Asks for a file name and writes the page about the window; a toast says where it is."""
    session, report = app.session, app.session.report
    if report is None or not session.finished:
        app.say("the report is still being read")
        return
    scope = report_scope(report, app.state)

    def write(file: BinaryIO, progress: Progress) -> None:
        from nsys_tui.sharing.answer import shared
        from nsys_tui.sharing.page import page

        parts = shared(report, scope, progress)
        progress("writing the page", 0, 0)
        file.write(page([parts]).encode("utf-8", "backslashreplace"))

    what = "the window" if scope.window is not None else "the report"
    name = f"{Path(session.name).stem}.html"
    save(app, Saving(f"Write a page about {what}", name, {".html": write}))
