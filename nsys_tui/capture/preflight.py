"""What the far side said about itself before a capture, and what follows from it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from nsys_tui.capture.launchers import Target
from nsys_tui.capture.options.draft import ERROR, WARNING, Check
from nsys_tui.capture.options.target_facts import Facts, parse_version, read_help, refused_scopes
from nsys_tui.capture.output import ROOM
from nsys_tui.capture.plan import Plan
from nsys_tui.capture.quoting import printable
from nsys_tui.capture.supervisor import Answer
from nsys_tui.errors import NSYS_MISSING
from nsys_tui.units import format_bytes

OK = "ok"
LITTLE_DISK = 2 * 10**9
LITTLE_TEMPORARY = 10**8
TEMPORARY = "temporary folder"
"""Name of what is said of it."""
_LOOKED = "PATH after the preamble, /usr/local/cuda*/bin, /opt/nvidia/nsight-systems*"


@dataclass(frozen=True)
class Preflight:
    """The answers of the verb ``probe``.

    Attributes:
        values: last answer per key.
        status: lines of ``nsys status --environment``.
        help: lines of ``nsys profile --help``.
        clock_offset_s: their clock minus ours.
    """

    values: Mapping[str, str]
    status: tuple[str, ...] = ()
    clock_offset_s: int = 0
    help: tuple[str, ...] = ()

    def get(self, key: str) -> str:
        """The value of one answer; empty when there was none."""
        return self.values.get(key, "")

    @property
    def tools(self) -> frozenset[str]:
        """The programs found there, those of launchers after the preamble."""
        return frozenset(f"{self.get('tools')} {self.get('launching')}".split())

    @property
    def nsys(self) -> str:
        """Path of the nsys found there; empty = none."""
        return self.get("nsys")

    @property
    def facts(self) -> Facts:
        """What the rules of advice need."""
        paranoid = self.get("paranoid")
        return Facts(
            nsys_version=parse_version(self.get("version")),
            options=read_help(self.help),
            paranoid=int(paranoid) if paranoid.lstrip("-").isdigit() else None,
            root=self.get("uid") == "0",
            gpu_admin_only={"0": False, "1": True}.get(self.get("gpu_admin_only")),
            refused_scopes=refused_scopes(self.status),
        )


def read_probe(answers: Iterable[Answer], began: float | None = None) -> Preflight:
    """Turns the answers of ``probe`` into a :class:`Preflight`.

    Args:
        answers: whole.
        began: when they were asked for; their clock was read at some time since then.
    """
    answers = list(answers)
    values = {answer.key: printable(answer.value, 60_000) for answer in answers}
    status, helped = (
        tuple(printable(answer.value) for answer in answers if answer.key == key)
        for key in ("status", "help")
    )
    clock = values.get("clock", "")
    now = time.time()
    read = int(clock) if clock.isdigit() else now
    offset = round(read - min(max(read, now if began is None else began), now))
    return Preflight(values, status, offset, helped)


def checks(probed: Preflight, target: Target, plan: Plan | None = None) -> list[Check]:
    """All findings, in the order in which a reader wants them.

    Args:
        probed: the answers.
        target: where they come from.
        plan: the capture that is to start, whose options are checked against that nsys.
    """
    lines = [_reached(probed), _jobs(probed), _cwd(probed, target)]
    if "jobs_bad" not in probed.values:  # the look for nsys needs a file in that folder
        lines += [_shell(probed), _nsys(probed, target)]
    lines += [*_temporary(probed), *_environment(probed), *_tools(probed, target)]
    lines += [*_clock(probed), *_held(probed)]
    if plan is not None:
        told = plan.advice(probed.facts)
        lines += [advice for advice in told if advice.severity in (ERROR, WARNING)]
    return lines


def option_lines(probed: Preflight) -> list[Check]:
    """The options of the nsys there with defaults and legal values, as its own help has them."""
    lines = []
    for name, option in probed.facts.options.items():
        takes = f"; takes {', '.join(option.values)}" if option.values else ""
        lines.append(Check(OK, f"--{name}", f"default {option.default or 'not told'}{takes}"))
    return lines


def exit_code(lines: Iterable[Check]) -> int:
    """The exit status that fits the first error: 69 when nsys is missing, else 74."""
    first = next(line for line in lines if line.severity == ERROR)
    return NSYS_MISSING if first.name == "nsys" else 74


def _reached(probed: Preflight) -> Check:
    return Check(
        OK, "host", f"{probed.get('host')} as {probed.get('user')}, {probed.get('system')}"
    )


def _shell(probed: Preflight) -> Check:
    status = probed.get("preamble")
    if status in ("", "0"):
        return Check(OK, "shell", "answers")
    return Check(
        ERROR, "preamble", f"the preamble ended with status {status}", probed.get("stderr")
    )


def _cwd(probed: Preflight, target: Target) -> Check:
    if "cwd_missing" in probed.values:
        return Check(
            ERROR, "cwd", f"no such folder there: {probed.get('cwd_missing')}",
            f"correct cwd, or targets.{target.name}.cwd in the config",
        )  # fmt: skip
    if "cwd_readonly" in probed.values:
        return Check(
            WARNING, "cwd", f"{probed.get('cwd')} cannot be written", "name no output there"
        )
    commit = probed.get("git")[:9]
    dirty = " with changes" if probed.get("git_dirty") else ""
    return Check(OK, "cwd", probed.get("cwd") + (f", git {commit}{dirty}" if commit else ""))


def _nsys(probed: Preflight, target: Target) -> Check:
    if "hangs" in probed.values:
        return Check(
            ERROR, "nsys --version", f"{probed.nsys} hangs: no version within 10 s, tried twice",
            "try again; end processes of nsys that were left there",
        )  # fmt: skip
    elsewhere = bool(target.launcher.scheduler)
    severity = WARNING if elsewhere else ERROR
    where = "on the login node" if elsewhere else "there"
    if broken := probed.get("broken"):
        return Check(severity, "nsys", f"nsys does not start {where}: {broken}",
                     "install there what it lacks, such as libelf1 in a small image")  # fmt: skip
    if probed.nsys:
        version = probed.facts.nsys_version
        shown = (
            ".".join(map(str, version)) if version else probed.get("version") or "version unknown"
        )
        return Check(OK, "nsys", f"{shown} at {probed.nsys}")
    if probed.get("preamble") == "":
        return Check(
            ERROR, "preamble", "the preamble did not come to its end", probed.get("stderr")
        )
    looked = _LOOKED if target.settings.nsys == "auto" else target.settings.nsys
    return Check(
        severity, "nsys", f"no nsys {where}; looked in {looked}",
        f"give --nsys PATH, set targets.{target.name}.nsys, or load its module in the preamble",
    )  # fmt: skip


def _temporary(probed: Preflight) -> list[Check]:
    """Where nsys collects: with 300 kB it let the program crash, and hung."""
    kilobytes, _, folder = probed.get("tmp_free").partition(" ")
    free = int(kilobytes) * 1024 if kilobytes.isdigit() else LITTLE_TEMPORARY
    if free >= LITTLE_TEMPORARY:
        return []
    return [
        Check(
            WARNING, TEMPORARY, f"{folder}, {format_bytes(free)} free: nsys may hang",
            f"make room there, or {ROOM}",
        )
    ]  # fmt: skip


def _environment(probed: Preflight) -> list[Check]:
    facts = probed.facts
    lines = []
    if mute := probed.get("mute"):
        lines.append(Check(WARNING, mute, "no answer within 10 s", "look again"))
    if facts.paranoid is not None:
        fine = facts.root or facts.paranoid <= 2
        text = f"perf_event_paranoid is {facts.paranoid}" + (" (root)" if facts.root else "")
        lines.append(
            Check(OK if fine else WARNING, "CPU sampling", text, "" if fine else "2 allows it")
        )
    lines += [
        Check(WARNING, "nsys status", line.strip())
        for line in probed.status
        if "fail" in line.lower()
    ]
    if facts.gpu_admin_only is not None:
        fine = facts.root or not facts.gpu_admin_only
        text = "open to all" if not facts.gpu_admin_only else "for administrators only"
        lines.append(Check(OK if fine else WARNING, "GPU metrics", text))
    return lines


def _jobs(probed: Preflight) -> Check:
    free = int(probed.get("free") or 0)
    if "jobs_bad" in probed.values:
        room = f", {format_bytes(free)} free" if "free" in probed.values else ""
        return Check(
            ERROR, "jobs folder", f"{probed.get('jobs_bad')} cannot be made or written{room}",
            "set jobs_dir to a folder that you can write, on clusters one that all nodes see",
        )  # fmt: skip
    text = f"{probed.get('jobs')}, {format_bytes(free)} free"
    if free < LITTLE_DISK:
        return Check(WARNING, "disk", text, "reports of a few minutes take gigabytes")
    return Check(OK, "disk", text)


def _tools(probed: Preflight, target: Target) -> list[Check]:
    lines = []
    if not probed.tools & {"setsid", "perl", "python3"}:
        lines.append(
            Check(ERROR, "setsid", "neither setsid nor perl nor python3 is there", "install one")
        )
    if not probed.tools & {"sha256sum", "shasum", "openssl"}:
        lines.append(Check(WARNING, "sha256sum", "only cksum is there to compare files"))
    if not probed.get("head"):
        lines.append(Check(WARNING, "head -c", "missing: the log is followed byte by byte"))
    missing = [tool for tool in target.launcher.tools if tool not in probed.tools]
    if missing:
        lines.append(Check(ERROR, target.launcher.name, f"not found there: {', '.join(missing)}"))
    return lines


def _clock(probed: Preflight) -> list[Check]:
    if abs(probed.clock_offset_s) <= 5:
        return []
    return [Check(WARNING, "clock", f"differs from ours by {probed.clock_offset_s} s")]


def _held(probed: Preflight) -> list[Check]:
    if "locked" not in probed.values:
        return []
    return [
        Check(
            WARNING, "lock", f"a capture runs there: {probed.get('locked')}",
            "wait for it, or start anyway",
        )
    ]  # fmt: skip
