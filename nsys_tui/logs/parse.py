"""read_logs: files in, one ``LogResult`` out.

Each file is scanned on its own (``scan``); then what only the whole can tell is worked out: which
hosts are one, which communicator and rank a pointer means, which step a call belongs to.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from nsys_tui.errors import NsysTuiError, UsageError
from nsys_tui.logs.line_prefixes import Processes
from nsys_tui.logs.nccl.api import join_api
from nsys_tui.logs.nccl.calls import NO_STEP, OF_KINDS, CallLog, Rows, narrow
from nsys_tui.logs.nccl.coll_bodies import CallTexts
from nsys_tui.logs.nccl.communicators import CommunicatorTable
from nsys_tui.logs.nccl.grammar import algorithm_name, protocol_name
from nsys_tui.logs.nccl.messages import CommEvent, GraphLine, KernelSpans, Timing
from nsys_tui.logs.nccl.participants import Communicator, Group, LogProcess
from nsys_tui.logs.nccl.topology import build_topology
from nsys_tui.logs.others.mpi import joined_mpi
from nsys_tui.logs.result import KernelRow, LogFile, LogResult, TuningRow, Window
from nsys_tui.logs.scan import KIND, Scan, Scanner
from nsys_tui.logs.steps import LEGACY_STEPS, Clock, carry_steps, make_window
from nsys_tui.logs.trainers.step_lines import StepLine, main_format
from nsys_tui.logs.trainers.trainer_table import Trainer
from nsys_tui.model.arrays import Bool, Int32


def read_logs(
    paths: Sequence[Path | str],
    *,
    steps: tuple[int, int] | None = None,
    legacy_window: bool = False,
    trainer: str | None = None,
    flops_per_token: int | None = None,
    epoch: int | None = None,
    warmup: int | None = None,
    pattern: Trainer | None = None,
    ranks: int | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> LogResult:
    """Reads NCCL, RCCL, trainer and MPI logs as one run.

    Args:
        paths: files, or one per rank; ``-`` is standard input.
        steps: first and last step whose calls are kept; all calls without it.
        legacy_window: takes the window as the AWK kit does (default steps 45 to 50).
        trainer: format whose step lines count, if several are mixed.
        flops_per_token: FLOPs that one token costs, for trainers that print tokens/s only.
        epoch: the epoch whose steps count, where a trainer numbers them anew in each.
        warmup: step lines to leave out of averages; found in the log without it.
        pattern: a trainer of the user's own, looked for first.
        ranks: size of the communicators whose size no line tells.
        progress: called with path, number of files done and number of files.

    Returns:
        Everything found; of files that cannot be read beside others that can, the reason.

    Raises:
        UnreadableReportError: no file could be read; the first one's reason.
        UsageError: no file, or a window without step lines.
    """
    processes, texts = Processes(), CallTexts()
    scanner = Scanner(processes, texts, flops_per_token, pattern)
    scans: list[Scan] = []
    failed: list[tuple[str, NsysTuiError]] = []
    for done, path in enumerate(paths):
        if progress:
            progress(str(path), done, len(paths))
        kinds = len(texts.kinds)
        try:
            scans.append(scanner.scan(Path(path), len(scans)))
        except NsysTuiError as error:
            texts.kinds.cut(kinds)
            failed.append((str(path), error))
    if not scans:
        raise failed[0][1] if failed else UsageError("no log named", hint="name one or more files")
    skipped = tuple((path, error.one_line) for path, error in failed)
    wanted = (steps or LEGACY_STEPS) if legacy_window else steps
    options = _Options(wanted, legacy_window, trainer, epoch, warmup, ranks)
    return _assemble(scans, processes, texts, options, skipped)


@dataclass(frozen=True)
class _Options:
    """What of the logs counts."""

    steps: tuple[int, int] | None
    legacy: bool
    trainer: str | None
    epoch: int | None
    warmup: int | None
    ranks: int | None


def _assemble(
    scans: list[Scan],
    processes: Processes,
    texts: CallTexts,
    options: _Options,
    skipped: tuple[tuple[str, str], ...],
) -> LogResult:
    steps, legacy = options.steps, options.legacy
    real = _unify(scans, processes)
    log = _call_log(scans, texts, real)
    told = _global_ranks(log)
    events = [event for scan in scans for event in scan.messages.comm_events]
    table = CommunicatorTable()
    table.add_events(events)
    log = table.assign(log, tuple(texts.pointers))
    timings = [timing for scan in scans for timing in scan.messages.timings]
    table.take_ranks(timings, told)
    communicators, groups, gpus = table.finish(processes.seen)

    step_lines = tuple(step for scan in scans for step in scan.other.steps)
    if options.epoch is not None:
        step_lines = tuple(step for step in step_lines if step.epoch in (options.epoch, -1))
    chosen, clocks = _clocks(scans, step_lines, options)
    log = _with_participants(log, communicators, options.ranks)
    calls = every_call = _with_steps(log, clocks, groups, communicators)
    window: Window | None = None
    if steps:
        totals = [scan.lines for scan in scans]
        window = make_window(clocks, totals, *steps, legacy=legacy)
        calls = calls.where(lambda rows: _inside(log, rows, clocks, *steps, legacy=legacy))
    return LogResult(
        files=tuple(_file(scan) for scan in scans),
        processes=_processes(processes, told, communicators),
        calls=calls,
        every_call=every_call,
        communicators=communicators,
        groups=groups,
        gpus=gpus,
        topology=build_topology(
            [line for scan in scans for line in scan.messages.graph],
            events,
            table,
            communicators,
            [group.nranks for group in groups],
            _sum(scans, "network"),
        ),
        tuning=_tuning(scans),
        api=join_api([scan.api for scan in scans], real),
        kernels=_kernels(scans),
        timings=tuple(timings),
        environment=tuple((*key, n) for key, n in sorted(_sum(scans, "environment").items())),
        warnings=tuple(_sum(scans, "warnings").most_common()),
        step_lines=step_lines,
        run_totals=tuple(total for scan in scans for total in scan.other.totals),
        servers=tuple(line for scan in scans for line in scan.other.servers.lines),
        warmup=options.warmup,
        benchmarks=tuple(one for scan in scans for one in scan.other.benchmarks.series),
        mpip=tuple(one for scan in scans for one in scan.other.mpip.reports),
        measured=tuple(one for scan in scans for one in scan.other.plugins.measured),
        timeouts=tuple(one for scan in scans for one in scan.other.watchdogs.found.values()),
        dumps=tuple(one for scan in scans for one in scan.other.dumps),
        trainer=chosen,
        window=window,
        mpi=joined_mpi([scan.mpi for scan in scans]),
        mentions_debug_time=any(scan.mentions_debug_time for scan in scans),
        skipped=skipped,
        half_calls=frozenset(real[p] for scan in scans if (p := scan.half_call[1]) >= 0),
    )


def _clocks(
    scans: list[Scan],
    step_lines: tuple[StepLine, ...],
    options: _Options,
) -> tuple[str, list[Clock]]:
    """The trainer whose step lines count, empty for none, and their order in each file.

    Raises:
        UsageError: a window of steps was asked for, and there are no step lines.
    """
    # The AWK kit knows one trainer.
    kits = options.legacy and any(step.format == "nemo" for step in step_lines)
    chosen = main_format(step_lines, options.trainer or ("nemo" if kits else None))
    owning = [step for scan in scans for step in scan.other.steps if step.format == chosen]
    if options.steps is not None and not any(step.format == chosen for step in step_lines):
        raise UsageError(
            f"no step lines of {options.trainer or 'any known trainer'}, so no step window",
            hint="leave --steps out, or add the trainer's log that belongs to these files",
        )
    clocks = [Clock.of(owning, scan.file, options.epoch) for scan in scans]
    return (chosen if owning else ""), clocks


def _unify(scans: list[Scan], processes: Processes) -> list[int]:
    """Replaces processes that only torn hosts made by the real ones, and says which each is."""
    real = processes.unify()
    if real == list(range(len(real))):
        return real
    lookup = np.array([*real, -1], dtype=np.int32)
    for scan in scans:
        messages = scan.messages
        messages.comm_events = [_moved(item, lookup) for item in messages.comm_events]
        messages.graph = [_moved(item, lookup) for item in messages.graph]
        messages.timings = [_moved(item, lookup) for item in messages.timings]
    return real


_Placed = TypeVar("_Placed", CommEvent, GraphLine, Timing)


def _moved(item: _Placed, lookup: Int32) -> _Placed:
    return item._replace(place=item.place._replace(process=int(lookup[item.place.process])))


def _call_log(scans: list[Scan], texts: CallTexts, real: Sequence[int]) -> CallLog:
    kinds = texts.kinds.columns(KIND)
    kinds["process"] = np.array([*real, -1], np.int64)[kinds["process"]]
    blocks = tuple(block for scan in scans for block in scan.blocks)
    return CallLog(kinds, blocks, tuple(texts.ops), tuple(texts.streams))


def _global_ranks(log: CallLog) -> dict[int, int]:
    pairs = zip(log.kinds["process"].tolist(), log.kinds["global_rank"].tolist(), strict=True)
    return {process: rank for process, rank in pairs if rank >= 0}


def _processes(
    processes: Processes, told: dict[int, int], communicators: Sequence[Communicator]
) -> tuple[LogProcess, ...]:
    """Processes with their rank in the job."""
    ranks: dict[int, set[tuple[int, int]]] = defaultdict(set)
    for one in communicators:
        ranks[one.process].add((one.nranks, one.rank))
    result = []
    for index, process in enumerate(processes.seen):
        largest = max((nranks for nranks, _ in ranks[index]), default=-1)
        in_largest = {rank for nranks, rank in ranks[index] if nranks == largest}
        rank = process.label_rank if process.label_rank >= 0 else told.get(index, -1)
        if rank < 0 and len(in_largest) == 1:
            (rank,) = in_largest
        result.append(LogProcess(process.host, process.pid, rank))
    return tuple(result)


def _with_participants(
    log: CallLog, communicators: Sequence[Communicator], ranks: int | None
) -> CallLog:
    """The calls with the rank, the GPU and the size of their communicator."""
    kinds = dict(log.kinds)
    table = np.array([(c.rank, c.gpu, c.nranks) for c in communicators] or [(-1, -1, -1)])
    kinds["rank"], kinds["gpu"], size = table[kinds["communicator"]].T
    told = np.where(kinds["nranks"] > 0, kinds["nranks"], size)
    kinds["nranks"] = np.where(told > 0, told, ranks or told)
    for name in ("in_place", "torn"):
        kinds[name] = kinds[name] != 0
    return replace(log, kinds={name: narrow(kinds[name]) for name in OF_KINDS})


def _with_steps(
    log: CallLog,
    clocks: Sequence[Clock],
    groups: Sequence[Group],
    communicators: Sequence[Communicator],
) -> CallLog:
    silent = np.array([not len(clock.steps) for clock in clocks])
    if silent.all():
        return log
    file = log.kinds["file"]
    log = log.mapped(
        lambda rows: {**rows, "step": clocks[file[rows["kind"][0]]].owner(rows["line"])}
    )
    if not silent.any() or not len(log):
        return log
    calls = log.select()
    group = np.array([c.group if groups[c.group].nranks > 1 else -1 for c in communicators])
    carried = carry_steps(calls.step.astype(np.int64), group[calls.communicator], calls.op_count)
    step = iter(np.split(carried, np.cumsum([block.size for block in log.blocks])))

    def told(rows: Rows) -> Rows:
        steps = next(step)
        return {**rows, "step": steps if silent[file[rows["kind"][0]]] else rows["step"]}

    return log.mapped(told)


def _inside(
    log: CallLog, rows: Rows, clocks: Sequence[Clock], first: int, last: int, *, legacy: bool
) -> Bool:
    step = rows["step"]
    if legacy:
        calls = log.calls(rows)
        step = clocks[calls.file[0]].state(rows["line"])
        # The kit skips what has no size.
        step[(calls.count == 0) | (calls.bytes < 0)] = NO_STEP
    return (step >= first) & (step <= last)


def _file(scan: Scan) -> LogFile:
    return LogFile(
        path=scan.path,
        lines=scan.lines,
        header_lines=scan.header_lines,
        header_not_at_column_0=scan.inner_headers,
        collective_lines=scan.bodies,
        torn_lines=scan.torn_lines,
        cut_lines=scan.cut_lines,
        tuning_lines=scan.messages.tuned.total(),
        call_lines=sum(block.size for block in scan.api.blocks),
        versions=tuple(version for version, _ in scan.messages.versions.most_common()),
        timed=scan.timed,
        cut_short=scan.cut_short,
    )


def _sum(scans: list[Scan], name: str) -> Counter[Any]:
    total: Counter[Any] = Counter()
    for scan in scans:
        total.update(getattr(scan.messages, name))
    return total


def _tuning(scans: list[Scan]) -> tuple[TuningRow, ...]:
    rows: Counter[tuple[str, str, str, int, str]] = Counter()
    for scan in scans:
        version = _major_minor(scan.messages.versions)
        for choice, count in scan.messages.tuning().items():
            algorithm = algorithm_name(choice.algorithm, version)
            protocol = protocol_name(choice.protocol)
            rows[choice.op, algorithm, protocol, choice.bytes, choice.channels] += count
    return tuple(TuningRow(*key, n) for key, n in sorted(rows.items()))


def _major_minor(versions: Counter[str]) -> tuple[int, int] | None:
    for version in versions:
        words = version.split(".")
        if len(words) >= 2 and words[0].isdigit() and words[1].isdigit():
            return int(words[0]), int(words[1])
    return None


def _kernels(scans: list[Scan]) -> tuple[KernelRow, ...]:
    whole = KernelSpans()
    begun: Counter[str] = Counter()
    for scan in scans:
        begun.update(name for name, _ in scan.messages.kernels.begun.values())
        for name, ends in scan.messages.kernels.ended.items():
            whole.join(name, ends)
    return tuple(
        KernelRow(name, count, least, Fraction(total, max(1, count)), most, begun[name])
        for name in sorted(whole.ended.keys() | begun.keys())
        for count, least, total, most in [whole.ended.get(name, (0, 0, 0, 0))]
    )
