"""NsysTuiApp: the host of the screens, with what the keys of every screen do."""

from __future__ import annotations

from nsys_tui.ui.closing import take_out
from nsys_tui.ui.commands import COMMANDS
from nsys_tui.ui.host import Host
from nsys_tui.ui.messages import Failed


class NsysTuiApp(Host):
    """nsys-tui in a terminal."""

    GLOBAL_COMMANDS = COMMANDS

    def on_failed(self, message: Failed) -> None:
        """A file that is no report has no tab beside one that is; then the host tells the error."""
        unread = message.unread
        several = len(self.sessions) > 1
        if several and unread in self.sessions and not unread.report_id:
            self.call_later(take_out, self, unread)
