"""Which connector a target needs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from nsys_tui.capture.launchers import way_to
from nsys_tui.capture.reconnecting import LocalConnector
from nsys_tui.errors import UsageError

if TYPE_CHECKING:
    from nsys_tui.capture.askpass import PromptHandler
    from nsys_tui.capture.channel import Connector
    from nsys_tui.capture.targets import Target
    from nsys_tui.config import CaptureConfig


def connector_for(
    target: Target, settings: CaptureConfig, on_prompt: PromptHandler | None
) -> Connector:
    """The connector for a target; nothing is connected yet.

    Args:
        target: where to.
        settings: the ssh command.
        on_prompt: answers ssh's questions; ``None`` = a question is an error.
    """
    if os.name != "posix":
        raise UsageError(
            "captures need Linux or macOS on this side", "there is no POSIX shell to drive them",
            "run nsys-tui on the machine itself, or in WSL",
        )  # fmt: skip
    way = way_to(target)
    return LocalConnector(target) if way is None else way.connector(target, settings, on_prompt)
