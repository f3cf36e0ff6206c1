"""NsysTuiApp: the host of the screens, with what the keys of every screen do."""

from __future__ import annotations

from nsys_tui.ui.commands import COMMANDS
from nsys_tui.ui.host import Host


class NsysTuiApp(Host):
    """nsys-tui in a terminal."""

    GLOBAL_COMMANDS = COMMANDS
