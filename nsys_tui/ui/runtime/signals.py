"""SIGTERM and SIGHUP end the app as its own key does, and the terminal is left as it was found.

Textual 8.2.8 leaves both to Python: the process dies with the alternate screen, mouse reports and a
hidden cursor switched on.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from typing import Final

ENDING: Final = (signal.SIGTERM, signal.SIGHUP)
SIGNALLED: Final = 128
"""Added to the number of the signal, as shells do: 143 for SIGTERM, 129 for SIGHUP."""


def on_ending(leave: Callable[[int], None]) -> None:
    """Has ``leave`` called with an exit code in the running loop; what ``nohup`` ignores stays so.

    Args:
        leave: ends the app.
    """
    loop = asyncio.get_running_loop()
    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            loop.add_signal_handler(number, leave, SIGNALLED + number)
