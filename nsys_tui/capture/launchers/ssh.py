"""Another machine by the user's own OpenSSH; whatever launcher the target has starts there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_tui.capture.launchers import HOST_NAME, PlaceField, Way, register

if TYPE_CHECKING:
    from nsys_tui.capture.askpass import PromptHandler
    from nsys_tui.capture.channel import Connector
    from nsys_tui.capture.launchers import Target
    from nsys_tui.config import CaptureConfig


class Ssh(Way):
    """``ssh HOST``, with one connection that is shared."""

    name = "ssh"
    about = "another machine by your own OpenSSH; the launcher starts there"
    fields = (
        PlaceField(
            "host",
            "host",
            "whatever `ssh HOST` understands; empty = this machine",
            pattern=HOST_NAME,
        ),
    )

    def takes(self, place: Target) -> bool:
        """Whether the target names a host."""
        return bool(place.settings.host)

    def machine(self, place: Target) -> str:
        """The host."""
        return place.settings.host

    def typed(self, place: Target, line: str) -> list[str]:
        """``ssh HOST LINE``."""
        return ["ssh", place.settings.host, line]

    def connector(
        self, place: Target, settings: CaptureConfig, on_prompt: PromptHandler | None
    ) -> Connector:
        """See :class:`Way`."""
        from nsys_tui.capture.ssh import SshConnector

        return SshConnector(place, settings.ssh, on_prompt)


register(Ssh())
