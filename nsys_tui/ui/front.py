"""FrontScreen: what app, dialogs and widgets know of the screens behind the number keys."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from nsys_tui.ui.runtime.batched_screen import BatchedScreen

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import BinaryIO

    from textual.geometry import Offset

    from nsys_tui.model.progress import Progress
    from nsys_tui.ui.keymap import Action
    from nsys_tui.ui.session import Session

T = TypeVar("T")


class FrontScreen(BatchedScreen[None], inherit_bindings=False):
    """A screen that may be in front; ``ReportScreen`` is what all of them are built on."""

    SCREEN: ClassVar[str] = ""
    """Name in ``keymap.SCREENS``."""
    ACTIONS: ClassVar[tuple[Action, ...]] = ()
    """The screen's own actions; also set ``BINDINGS = bindings(ACTIONS)``."""
    OF_ONE_REPORT: ClassVar[bool] = True
    """Whether nothing on it outlives the report that it shows."""

    @property
    @abstractmethod
    def session(self) -> Session:
        """The report in front, with its view state."""

    @property
    @abstractmethod
    def long_name(self) -> str:
        """What the tab says."""

    @abstractmethod
    def tab_offset(self, name: str) -> Offset | None:
        """Where a screen's tab is, or None where it has none."""

    @abstractmethod
    def sync(self) -> None:
        """Catches up with the report in front and the shared view state."""

    @abstractmethod
    def refresh_status(self) -> None:
        """Brings the progress or error line up to date."""

    @abstractmethod
    def compute_telling(
        self,
        kind: str,
        work: Callable[[Progress], T],
        done: Callable[[T], None],
        stopped: Callable[[], None] | None = None,
        failed: Callable[[Exception], None] | None = None,
    ) -> None:
        """Works in the background, tells how far it is, and can be cancelled."""

    @property
    @abstractmethod
    def exported(self) -> Any:
        """What is written where the pane in focus cannot be."""

    def writers(self) -> Mapping[str, Callable[[BinaryIO, Progress], None]]:
        """What a file of some suffix holds instead of the table in focus."""
        return {}

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
