"""The program is started as it is: on this machine, or on the one that was reached."""

from __future__ import annotations

from nsys_tui.capture.launchers import Launcher, register


class Direct(Launcher):
    """nsys itself, kept by the supervisor."""

    name = "none"
    about = "the program is started as it is"


register(Direct())
