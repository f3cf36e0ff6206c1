"""A running container, entered with ``docker exec`` or ``podman exec``, which takes the same."""

from __future__ import annotations

from collections.abc import Sequence

from nsys_tui.capture.launchers import SHELL, Launcher, Target, name_field, register


class ContainerExec(Launcher):
    """A container of an engine whose ``exec`` has docker's options."""

    about = "inside a running container"
    fields = (
        name_field("container.name", "container", "name of a running container", required=True),
        name_field("container.user", "user", "user in it; empty = its own"),
    )

    def __init__(self, name: str) -> None:
        self.name = name

    def inside(self, target: Target) -> str:
        """Name of the container."""
        return str(target.own["container.name"])

    def shell_argv(self, target: Target) -> list[str]:
        """``docker exec -i CONTAINER sh -s``."""
        return [*self._exec(target), self.inside(target), *SHELL]

    def _exec(self, target: Target) -> list[str]:
        user = target.own["container.user"]
        return [self.name, "exec", "-i", *(["-u", user] if user else [])]

    def typed(self, target: Target, argv: Sequence[str], env: Sequence[str], cwd: str) -> list[str]:
        """``docker exec`` with working directory and environment as its own options."""
        folder = ["-w", cwd] if cwd else []
        variables = [word for pair in env for word in ("-e", pair)]
        return [*self._exec(target), *folder, *variables, self.inside(target), *argv]


register(ContainerExec("docker"))


register(ContainerExec("podman"))
