"""How a report was made, as the beginning of a new plan: the way back for profile again.

The rows come from a file that somebody may have sent, so what they give is shown and never run by
itself, and the values of the environment, which may hold tokens, are read only for the names that a
user ticks.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from nsys_tui.capture.launchers import Target, launchers
from nsys_tui.capture.plan import Plan, make_plan, plan_from_json
from nsys_tui.capture.record import Record, Store
from nsys_tui.capture.targets import LOCAL, find_target, usable_targets
from nsys_tui.config import Config
from nsys_tui.config_values import OptionValue
from nsys_tui.errors import NoDataError, UsageError
from nsys_tui.redaction import looks_secret

Pairs = Sequence[tuple[str, str]]
"""Rows (name, value) of META_DATA_CAPTURE; names repeat."""

_ENVIRONMENT: Final = re.compile(r"PROCESS_\d+:ENVIRONMENT_VARIABLE")
_ARGUMENT: Final = re.compile(r"PROCESS_0:ARGUMENT_(\d+)")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NEVER: Final = re.compile(
    r"LD_PRELOAD|BASH_FUNC_.*|SSH_.*|SLURM.*|PMI.*|PWD|OLDPWD|_|SHLVL|DISPLAY|XDG_.*|NSYS_TUI_.*"
)
_TRACES: Final = {"Cuda": "cuda", "NvtxEvents": "nvtx", "OSRuntime": "osrt", "Graphics": "opengl"}
_SWITCHES: Final = {
    "COLLECT_GPU_MEMORY_USAGE": "cuda-memory-usage",
    "COLLECT_UVM_CPU_PAGE_FAULTS": "cuda-um-cpu-page-faults",
    "COLLECT_UVM_GPU_PAGE_FAULTS": "cuda-um-gpu-page-faults",
    "CUDA_FLUSH_ON_CUDA_PROFILER_STOP": "flush-on-cudaprofilerstop",
    "TRACE_AFTER_FORK_BEFORE_EXEC": "trace-fork-before-exec",
}
_THRESHOLDS: Final = {
    "OS_RUNTIME_OPTIONS:DURATION_THRESHOLD_NS": ("osrt-threshold", ("0", "1000")),
    "OS_RUNTIME_OPTIONS:BACKTRACES_THRESHOLD_NS": ("osrt-backtrace-threshold", ("80000",)),
}
"""With what nsys writes where nobody asked: 2023.4 writes 0 and works with 1000."""
_NODES_ALONE: Final = 515
"""Before this driver (CUDA 11.7) nsys traces graphs node by node, whatever it was asked."""


@dataclass(frozen=True)
class RecordedVariable:
    """A variable of the profiled program's environment, without its value.

    Attributes:
        name: its name.
        length: characters of its value.
        refused: why it cannot be replayed; empty = the user may tick it.
    """

    name: str
    length: int
    refused: str = ""


@dataclass(frozen=True)
class Again:
    """How a report was made, as far as it says.

    Attributes:
        host: name of the machine at the time; may be a container or a compute node.
        remarks: what was left out and why.
    """

    program: tuple[str, ...] = ()
    cwd: str = ""
    options: Mapping[str, OptionValue] = field(default_factory=dict)
    host: str = ""
    variables: tuple[RecordedVariable, ...] = ()
    remarks: tuple[str, ...] = ()


def read_metadata(pairs: Pairs, driver: str = "") -> Again:
    """Reads the rows of META_DATA_CAPTURE; rows that are absent leave their part empty.

    The rows say what nsys did. What it chose itself, for want of a driver or of a processor's
    branch records, is left out: it chooses again, and the next machine may have them.

    Args:
        pairs: the rows.
        driver: version of the NVIDIA driver that the report names; empty = none.
    """
    values = dict(pairs)
    variables = tuple(_variables(pairs))
    names = {variable.name for variable in variables}
    origins = [kind.name for kind in launchers() if kind.variable in names]
    options, remarks = _options(pairs, values, driver)
    if origins:
        remarks.append(f"the environment suggests that it was started by {' or '.join(origins)}")
    return Again(
        program=_program(pairs, values),
        cwd=values.get("PROCESS_0:WORKING_DIR", ""),
        options=options,
        host=values.get("DEVICE_DISPLAY_NAME", ""),
        variables=variables,
        remarks=tuple(remarks),
    )


def _program(pairs: Pairs, values: Mapping[str, str]) -> tuple[str, ...]:
    command = values.get("PROCESS_0:COMMAND", "")
    numbered = [
        (int(match[1]), value) for name, value in pairs if (match := _ARGUMENT.fullmatch(name))
    ]
    return (command, *(value for _, value in sorted(numbered))) if command else ()


def _either(values: Mapping[str, str], name: str) -> str:
    """A value at the top level or under the process: the place differs between versions."""
    given = [values[key] for key in (name, f"PROCESS_0:{name}") if key in values]
    return next((value for value in given if value == "true"), given[0] if given else "")


def _options(
    pairs: Pairs, values: Mapping[str, str], driver: str
) -> tuple[dict[str, OptionValue], list[str]]:
    if not pairs:
        return {}, []
    types = list(dict.fromkeys(value for name, value in pairs if name == "CAPTURE_EVENT_TYPE"))
    remarks = [
        f"recorded too, and no --trace word is known for it: {t}" for t in types if t not in _TRACES
    ]
    options: dict[str, OptionValue] = {}
    traces = tuple(word for kind, word in _TRACES.items() if kind in types)
    if traces:
        options["trace"] = traces
    if mode := _either(values, "CUDA_GRAPH_TRACE_OPTIONS:MODE"):
        options |= _graph_trace(mode.lower(), driver, remarks)
    options |= {
        option: "true" for name, option in _SWITCHES.items() if _either(values, name) == "true"
    }
    options |= _sampling(values, remarks)
    if "osrt" in traces:
        for name, (option, default) in _THRESHOLDS.items():
            if values.get(name, default[0]) not in default:
                options[option] = values[name]
    delay = values.get("START_DELAY_MS", "0")
    if delay.isdigit() and int(delay) > 0:
        options["delay"] = f"{int(delay) / 1000:g}"
    return options, remarks


def _graph_trace(mode: str, driver: str, remarks: list[str]) -> dict[str, OptionValue]:
    if mode == "node" and int(driver.partition(".")[0] or 0) < _NODES_ALONE:
        remarks.append(
            "CUDA graphs were traced by node, as nsys does without a driver or with one before "
            f"{_NODES_ALONE}; if it was asked for: --cuda-graph-trace=node"
        )
        return {}
    return {"cuda-graph-trace": mode}


def _sampling(values: Mapping[str, str], remarks: list[str]) -> dict[str, OptionValue]:
    scope = {"SystemWide": "system-wide"}.get(
        values.get("LINUX_PERF_OPTIONS:COLLECTION_MODE", ""), "process-tree"
    )

    def switched(name: str) -> str:
        return scope if values.get(f"LINUX_PERF_OPTIONS:{name}") == "true" else "none"

    options: dict[str, OptionValue] = {
        "sample": switched("COLLECT_IP_BACKTRACE_SAMPLES"),
        "cpuctxsw": switched("COLLECT_CPU_CTXSW_TRACE"),
    }
    if options["sample"] == "none":
        return options
    if values.get("USE_DWARF") == "true":
        remarks.append(
            "CPU stacks were unwound by DWARF, as nsys does where it cannot read branch records; "
            "if it was asked for: --backtrace=dwarf"
        )
    elif values.get("USE_FRAME_POINTERS") == "true":
        options["backtrace"] = "fp"
    elif values.get("SHOW_BACKTRACE") == "false":
        options["backtrace"] = "none"
    return options


def _split(row: str) -> tuple[str, str]:
    """``NAME="value"`` as name and value; the value may hold anything, line breaks too."""
    name, _, value = row.partition("=")
    quoted = len(value) >= 2 and value.startswith('"') and value.endswith('"')
    return name, value[1:-1] if quoted else value


def _variables(pairs: Pairs) -> Iterable[RecordedVariable]:
    for key, row in pairs:
        if _ENVIRONMENT.fullmatch(key):
            name, value = _split(row)
            yield RecordedVariable(name[:200], len(value), _refusal(name))


def _refusal(name: str) -> str:
    if not _NAME.fullmatch(name):
        return "no name that a shell can set"
    if _NEVER.fullmatch(name):
        return "belongs to that session"
    if looks_secret(name):
        return "looks like a secret: set it here and name it in env_from"
    return ""


def replayed_values(pairs: Pairs, names: Iterable[str]) -> dict[str, str]:
    """The values of ticked variables, to be handed over at the start and kept nowhere.

    Raises:
        UsageError: a name that the report does not have, or that is never replayed.
    """
    recorded = dict(_split(row) for key, row in pairs if _ENVIRONMENT.fullmatch(key))
    values = {}
    for name in names:
        if name not in recorded:
            raise UsageError(f"{name} is not in the report's environment")
        if why := _refusal(name):
            raise UsageError(f"{name} is not replayed", why)
        values[name] = recorded[name]
    return values


def suggested_target(config: Config, host: str) -> Target | None:
    """The target that most likely is the machine a report came from."""
    label = host.partition(".")[0]
    for target in usable_targets(config)[0]:
        known = (target.name, target.settings.host, target.settings.host.rpartition("@")[2])
        if host and (host in known or label in known):
            return target
    here = socket.gethostname().partition(".")[0]
    return find_target(config, LOCAL) if label and label == here else None


def plan_from_metadata(
    pairs: Pairs, config: Config, target: str = "", driver: str = ""
) -> tuple[Plan, Again]:
    """A plan that repeats a report, and what it is made from.

    Args:
        pairs: rows (name, value) of the report's META_DATA_CAPTURE.
        config: where targets are.
        target: name of the target; empty = the one that the report's host suggests, else the
            default one.
        driver: see :func:`read_metadata`.

    Raises:
        NoDataError: the report does not say which program it profiled.
        UsageError: an unknown target.
    """
    again = read_metadata(pairs, driver)
    if not again.program:
        raise NoDataError(
            "this report does not say how it was made",
            "its nsys wrote no META_DATA_CAPTURE rows",
            "type the command yourself; captures started here are always remembered",
        )
    suggestion = suggested_target(config, again.host)
    chosen = find_target(config, target) if target or suggestion is None else suggestion
    if not target and suggestion is None and again.host:
        note = f"captured on {again.host}, which is no target here: {chosen.name} is taken"
        again = replace(again, remarks=(*again.remarks, note))
    plan = make_plan(chosen, again.program, options=again.options, config=config, cwd=again.cwd)
    return plan, again


def plan_from_record(record: Record, config: Config, target: str = "") -> Plan:
    """The plan of an earlier capture, with the target as the config has it now.

    Raises:
        UsageError: another target was asked for that does not exist.
    """
    plan = plan_from_json(record.plan)
    name = target or plan.target.name
    if name in config.targets or name == LOCAL or target:
        plan = replace(plan, target=find_target(config, name))
    missing = {**plan.target.settings.env, **plan.env}
    return replace(plan, env=missing, replayed=())


def plan_again(
    pairs: Pairs,
    report_id: str,
    config: Config,
    store: Store | None = None,
    target: str = "",
    driver: str = "",
) -> tuple[Plan, Again | None]:
    """A plan for "profile again": from our own record of the report, else from its metadata.

    Returns:
        The plan, and what the report itself says (``None`` when our record was used).

    Raises:
        NoDataError: neither knows how the report was made.
    """
    record = (store or Store()).find_report(report_id)
    if record is not None:
        return plan_from_record(record, config, target), None
    return plan_from_metadata(pairs, config, target, driver)
