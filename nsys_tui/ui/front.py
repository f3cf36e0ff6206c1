"""FrontScreen: what app, dialogs and widgets know of the screens behind the number keys."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

from nsys_tui.ui.keymap import SCREENS, Action, bindings
from nsys_tui.ui.loader import telling
from nsys_tui.ui.messages import WorkEnded
from nsys_tui.ui.runtime.batched_screen import BatchedScreen
from nsys_tui.ui.runtime.task import Task

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import BinaryIO

    from textual.geometry import Offset

    from nsys_tui.model.progress import Progress
    from nsys_tui.ui.session import Session

T = TypeVar("T")


class Evidence(NamedTuple):
    """What a link from a screen leads to."""

    window: tuple[int, int] | None = None
    """[start, end) in ns; None for the whole trace."""
    device: int | None = None
    """Of a device in ``Report.devices``."""
    screen: str = "2"
    """Number key of the screen that shows it."""


class FrontScreen(BatchedScreen[None], inherit_bindings=False):
    """A screen that may be in front; ``ReportScreen`` is what all of them are built on."""

    SCREEN: ClassVar[str] = ""
    """Name in ``keymap.SCREENS``."""
    ACTIONS: ClassVar[tuple[Action, ...]] = ()
    """The screen's own actions, which its keys are bound to."""
    OF_ONE_REPORT: ClassVar[bool] = True
    """Whether nothing on it outlives the report that it shows."""

    def __init_subclass__(cls, **options: Any) -> None:
        if "ACTIONS" in vars(cls):
            cls.BINDINGS = [*bindings(cls.ACTIONS)]
        super().__init_subclass__(**options)

    def __init__(self) -> None:
        super().__init__()
        self._tasks: dict[str, Task] = {}

    @property
    @abstractmethod
    def session(self) -> Session:
        """The report in front, with its view state."""

    @property
    def long_name(self) -> str:
        """What the tab says."""
        return next((spec.long for spec in SCREENS if spec.name == self.SCREEN), self.SCREEN)

    @abstractmethod
    def tab_offset(self, name: str) -> Offset | None:
        """Where a screen's tab is, or None where it has none."""

    @abstractmethod
    def sync(self) -> None:
        """Catches up with the report in front and the shared view state."""

    @abstractmethod
    def refresh_status(self) -> None:
        """Brings the progress or error line up to date."""

    @property
    @abstractmethod
    def exported(self) -> Any:
        """What is written where the pane in focus cannot be."""

    def writers(self) -> Mapping[str, Callable[[BinaryIO, Progress], None]]:
        """What a file of some suffix holds instead of the table in focus."""
        return {}

    @property
    def words_here(self) -> Sequence[str]:
        """Words for the thing under the cursor that is no row of a table, most telling first."""
        return ()

    @property
    def to_record(self) -> str:
        """Options of ``nsys profile`` that would tell what this screen cannot, as typed."""
        return ""

    @property
    def evidence(self) -> Evidence:
        """What a link leads to: the row under the cursor, else the window on this screen."""
        number = next((spec.number for spec in SCREENS if spec.name == self.SCREEN), 0)
        window = self.session.state.window
        return Evidence(window, self.device, str(number) if number else "")

    @property
    def device(self) -> int | None:
        """Place of the device whose lanes the cursor is in."""
        lane = self.session.state.cursor.lane.partition("/")[0]
        number = lane.removeprefix("gpu:")
        return int(number) if lane != number and number.isdigit() else None

    def theme_changed(self) -> None:
        """The app has other colours."""

    @abstractmethod
    def report_closed(self, session: Session) -> None:
        """A report is no longer open: what is kept of it is given up."""

    def view(self) -> Any:
        """Scroll position and sort order for the history; anything ``restore`` understands."""
        return None

    def restore(self, view: Any) -> None:
        """Takes up what ``view`` gave, after going back."""

    def task_of(self, kind: str) -> Task:
        """The work of one kind."""
        return self._tasks.setdefault(kind, Task(self, kind))

    def drop_tasks(self) -> None:
        """Another report came to the front: what is computed for the one before is void."""
        for task in self._tasks.values():
            task.drop()

    def compute(
        self,
        kind: str,
        work: Callable[[], T],
        done: Callable[[T], None],
        stopped: Callable[[], None] | None = None,
        failed: Callable[[Exception], None] | None = None,
    ) -> None:
        """Runs ``work`` in a thread and ``done`` with its result on the screen's own thread.

        A later call of the same kind, or another report, makes an earlier result void (``Task``).
        Errors go to the error bar; then ``failed`` follows, and ``stopped`` a cancelled ``work``.
        """
        self.task_of(kind).run(work, done, stopped, failed)

    def compute_telling(
        self,
        kind: str,
        work: Callable[[Progress], T],
        done: Callable[[T], None],
        stopped: Callable[[], None] | None = None,
        failed: Callable[[Exception], None] | None = None,
    ) -> None:
        """``compute`` for work that lasts: it gets a progress callback, and Esc cancels it."""
        app, session = self.app, self.session
        if session.finished:
            session.cancel.clear()
        tell = telling(session, app.post_message)

        def told(check: Callable[[], None]) -> T:
            def progress(what: str, done: int, total: int) -> None:
                check()
                tell(what, done, total)

            try:
                return work(progress)
            finally:
                app.post_message(WorkEnded())

        self.task_of(kind).run_checked(told, done, stopped, failed)
