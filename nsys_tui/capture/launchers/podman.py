"""A running container, entered with ``podman exec``, whose options are docker's."""

from __future__ import annotations

from nsys_tui.capture.launchers import register
from nsys_tui.capture.launchers.docker import ContainerExec

register(ContainerExec("podman"))
