"""The shell programs that are written for one job: data in them is quoted, the preamble is not."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence

from nsys_tui.capture import quoting
from nsys_tui.capture.launchers import launchers
from nsys_tui.capture.plan import Plan
from nsys_tui.capture.supervisor import shell_text

_PREAMBLE_FAILED = "nsys-tui: the preamble ended with status"


def environment(env: Mapping[str, str], preamble: str) -> str:
    """Exports and the user's own preamble; leaves the preamble's status in ``nt_rc``."""
    text = quoting.assignments(env, export=True)
    return f"{text}:\n{preamble}\nnt_rc=$?\n" if preamble else f"{text}nt_rc=0\n"


def find_script(plan: Plan, *, thorough: bool) -> str:
    """The part of the preflight that runs where and as the program will.

    Args:
        plan: working directory, environment and preamble.
        thorough: also run ``nsys status -e``, which takes a real nsys a second or more.
    """
    told = {
        "NSYS": plan.target.settings.nsys,
        "TOOLS": " ".join(sorted({tool for kind in launchers() for tool in kind.tools})),
        "THOROUGH": "yes" if thorough else "no",
    }
    return (
        f"cd -- {cwd_word(plan.cwd)} 2> /dev/null\n"
        + in_preamble(plan)
        + "printf '@@p preamble %s\\n' \"$nt_rc\"\n"
        + quoting.assignments(told)
        + shell_text("find_nsys.sh")
    )


def in_preamble(plan: Plan, extra: Mapping[str, str] | None = None) -> str:
    """The beginning of every script over there; the preamble runs in the working directory."""
    preamble = plan.target.settings.preamble
    start = f"cd -- {cwd_word(plan.cwd)} 2> /dev/null\n" if preamble else ""
    return start + environment({**plan.env, **(extra or {})}, preamble)


def cwd_word(cwd: str) -> str:
    """A working directory as a shell word; ``~`` at its start is the home folder."""
    if cwd in ("", "~"):
        return '"$HOME"'
    if cwd.startswith("~/"):
        return '"$HOME"/' + quoting.word(cwd[2:])
    return quoting.word(cwd)


def run_script(plan: Plan, capture: str, job_dir: str, cwd: str, argv: Sequence[str]) -> str:
    """``run.sh``: secrets, environment, preamble, working directory, then the command itself.

    Args:
        plan: what to run.
        capture: id of the capture; processes carry it as ``NSYS_TUI_JOB``.
        job_dir: absolute folder of the job over there.
        cwd: absolute working directory.
        argv: the command of nsys.
    """
    env_file = quoting.word(f"{job_dir}/env")
    command = plan.target.launcher.command(plan.target, capture, argv)
    return (
        "#!/bin/sh\n"
        f"if [ -f {env_file} ]; then . {env_file}; rm -f {env_file}; fi\n"
        + in_preamble(plan, {"NSYS_TUI_JOB": capture})
        + f"[ $nt_rc = 0 ] || {{ echo '{_PREAMBLE_FAILED}' $nt_rc >&2; exit 71; }}\n"
        + f"cd -- {cwd_word(cwd)} || exit 72\n"
        + _reading(plan, f"exec {quoting.words(command)}")
    )


def _reading(plan: Plan, line: str) -> str:
    """The last line, with the program's stdin."""
    if not plan.stdin:
        return f"{line}\n"
    file = cwd_word(plan.stdin)
    return f"[ -r {file} ] || exit 73\n{line} < {file}\n"


def export_script(plan: Plan, name: str, nsys: str, report: str, output: str) -> str:
    """``run.sh`` of an export job of that name: SQLite with what NCCL payloads need, to a new file.

    An nsys that refuses one of these options is asked again with the two that all releases have.
    """
    payloads = ["--include-json=true", "--include-blobs=true"]
    full = [nsys, "export", "--type=sqlite", *payloads, f"--output={output}", report]
    plain = [nsys, "export", "-t", "sqlite", "-o", output, report]
    made = quoting.word(output)
    return (
        "#!/bin/sh\n"
        + in_preamble(plan, {"NSYS_TUI_JOB": name})
        + f"{quoting.words(full)} && [ -s {made} ] && exit 0\n"
        + f"rm -f {made}\n"
        + f"exec {quoting.words(plain)}\n"
    )


def import_script(plan: Plan, name: str, importer: str, raw: str, output: str) -> str:
    """``run.sh`` of an import job of that name, for what nsys collected and did not import."""
    line = quoting.words([importer, "-i", raw, "-o", output])
    return f"#!/bin/sh\n{in_preamble(plan, {'NSYS_TUI_JOB': name})}exec {line}\n"


def batch_script(plan: Plan, job_dir: str, lock: str, log_limit: int) -> tuple[str, list[str]]:
    """The script to submit and the arguments beside it; empty where the job starts directly."""
    shell = "bash -l" if plan.target.settings.preamble else "sh"
    words = quoting.words([f"{job_dir}/wrap.sh", job_dir, lock, str(log_limit), "batch"])
    return _batch(plan, f"exec sh {words} {shell}\n")


def _batch(plan: Plan, body: str) -> tuple[str, list[str]]:
    once = bool(plan.env_from or plan.replayed)  # the file of secrets is read once
    return plan.target.launcher.batch_script(plan.target, body, once=once) or ("", [])


def secrets_script(values: Mapping[str, str]) -> str:
    """The file that ``run.sh`` reads and removes first."""
    return quoting.assignments(values, export=True)


def readable_batch_script(plan: Plan) -> tuple[str, list[str]]:
    """The script to submit as a user would write it, and the arguments beside it; may be empty.

    For another machine it stands below the line that hands it to the scheduler there.
    """
    body = run_script(plan, "ID", ".", plan.cwd or "~", plan.argv(_nsys(plan), "."))
    script, args = _batch(plan, body.partition("\n")[2])
    target = plan.target
    if not script or not target.settings.host:
        return script, args
    line = quoting.words([target.launcher.name, *args])
    steps = filter(None, [target.settings.preamble, line])
    mark = "END"
    while mark in script:
        mark += "_"
    typed = shlex.join(["ssh", target.settings.host, " && ".join(steps)])
    return f"{typed} << '{mark}'\n{script}{mark}\n", []


def typed_command(plan: Plan) -> str:
    """The command as one would type it by hand, with what the target puts in front of it.

    It collects the same as a capture does, without being watched, stopped or fetched.
    """
    target = plan.target
    argv = plan.argv(_nsys(plan), ".")
    inside = bool(target.launcher.shell_argv(target))
    if plan.stdin and inside:  # a file in the container, which a redirection here would not reach
        argv = ["sh", "-c", f'exec "$@" < {cwd_word(plan.stdin)}', "sh", *argv]
    env = [f"{name}={value}" for name, value in plan.env.items()]
    line = shlex.join(target.launcher.typed(target, argv, env, plan.cwd))
    if plan.stdin and not inside:
        line += f" < {cwd_word(plan.stdin)}"
    host = target.settings.host
    elsewhere = plan.cwd and not inside and (host or plan.cwd != os.getcwd())
    steps = [f"cd {cwd_word(plan.cwd)}" if elsewhere else "", target.settings.preamble, line]
    typed = " && ".join(filter(None, steps))
    return shlex.join(["ssh", host, typed]) if host else typed


def _nsys(plan: Plan) -> str:
    """The nsys that was named, else whichever is found there."""
    named = plan.target.settings.nsys
    return "nsys" if named == "auto" else named
