"""A running pod, entered with ``kubectl exec``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from nsys_tui.capture.launchers import SHELL, Launcher, Target, name_field, register

_IN_FOLDER: Final = ("sh", "-c", 'cd "$1" && shift && exec "$@"', "sh")
"""``kubectl exec`` has no option for a working directory."""


class Kubectl(Launcher):
    """A container of a pod."""

    name = "kubectl"
    about = "inside a running pod"
    variable = "KUBERNETES_SERVICE_HOST"
    fields = (
        name_field("kubernetes.pod", "pod", "name of a running pod", required=True),
        name_field("kubernetes.namespace", "namespace", "empty = the context's"),
        name_field("kubernetes.context", "context", "empty = the present one"),
        name_field("kubernetes.container", "container", "empty = the pod's first"),
    )

    def inside(self, target: Target) -> str:
        """Name of the pod."""
        return str(target.own["kubernetes.pod"])

    def shell_argv(self, target: Target) -> list[str]:
        """``kubectl exec -i POD -- sh -s``."""
        return [*self._exec(target), *SHELL]

    def _exec(self, target: Target) -> list[str]:
        def option(word: str, key: str) -> list[str]:
            value = target.own[f"kubernetes.{key}"]
            return [word, value] if value else []

        return [
            *("kubectl", *option("--context", "context"), "exec", "-i"),
            *(*option("-n", "namespace"), self.inside(target), *option("-c", "container"), "--"),
        ]

    def typed(self, target: Target, argv: Sequence[str], env: Sequence[str], cwd: str) -> list[str]:
        """``kubectl exec`` with a shell that goes to the working directory."""
        folder = [*_IN_FOLDER, cwd] if cwd else []
        return [*self._exec(target), *folder, *super().typed(target, argv, env, cwd)]


register(Kubectl())
