"""How to get a POSIX shell at a target: an argv that ends in one reading a script from stdin.

ssh and a container combine: ssh to the host, and there the script goes on into the container.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nsys_tui.capture.plan import Plan
    from nsys_tui.capture.targets import Target
from nsys_tui.capture.scripts import cwd_word

SHELL = ("sh", "-s")


def container_argv(target: Target) -> list[str]:
    """The command that opens a shell inside the target's container or pod; empty = none.

    Slurm is no such command: its jobs are started by the supervisor on the login node.
    """
    settings = target.settings
    if settings.launcher in ("docker", "podman"):
        user = ["-u", settings.container.user] if settings.container.user else []
        return [settings.launcher, "exec", "-i", *user, settings.container.name, *SHELL]
    if settings.launcher == "kubectl":
        pod = settings.kubernetes
        context = ["--context", pod.context] if pod.context else []
        namespace = ["-n", pod.namespace] if pod.namespace else []
        container = ["-c", pod.container] if pod.container else []
        return ["kubectl", *context, "exec", "-i", *namespace, pod.pod, *container, "--", *SHELL]
    return []


def typed_command(plan: Plan) -> str:
    """The command as one would type it by hand, with ssh, container or Slurm in front.

    It collects the same as a capture does, without being watched, stopped or fetched.
    """
    settings = plan.target.settings
    argv = plan.argv(job_dir=".") if not plan.output else plan.argv()
    env = [f"{name}={value}" for name, value in plan.env.items()]
    if settings.launcher in ("docker", "podman"):
        argv = [*_docker_exec(plan, env), *argv]
    else:
        argv = [*(["env", *env] if env else []), *argv]
    if settings.launcher == "kubectl":
        inside = ["sh", "-c", 'cd "$1" && shift && exec "$@"', "sh", plan.cwd] if plan.cwd else []
        argv = [*container_argv(plan.target)[: -len(SHELL)], *inside, *argv]
    elif settings.launcher == "srun":
        argv = ["srun", *settings.slurm.args, *argv]
    line = shlex.join(argv)
    if not settings.host:
        return line
    cwd = plan.cwd if settings.launcher in ("none", "srun") else ""
    steps = [f"cd {cwd_word(cwd)}" if cwd else "", settings.preamble, line]
    return shlex.join(["ssh", settings.host, " && ".join(filter(None, steps))])


def _docker_exec(plan: Plan, env: list[str]) -> list[str]:
    """``docker exec`` with working directory and environment as its own options."""
    *words, name = container_argv(plan.target)[: -len(SHELL)]
    where = ["-w", plan.cwd] if plan.cwd else []
    return [*words, *where, *(word for pair in env for word in ("-e", pair)), name]
