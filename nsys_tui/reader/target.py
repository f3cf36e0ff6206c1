"""Who and what was profiled: metadata, GPUs, threads, processes, streams, from the small tables."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Final

from nsys_tui.model.notes import Note
from nsys_tui.model.target import (
    PROCESS_MASK,
    Device,
    Diagnostic,
    GpuInfo,
    Member,
    Metadata,
    pid_of,
)
from nsys_tui.reader.encode import Strings
from nsys_tui.reader.sqlite import Database, quoted
from nsys_tui.reader.unrecorded import unrecorded_work

_SEVERITY: Final = {0: "unknown", 1: "info", 2: "warning", 3: "error", 4: "verbose"}
_DRIVER_DIGITS: Final = 5
"""Fewest digits of a driver version that was written without points."""
_DIAGNOSTIC_SOURCE: Final = {0: "unknown", 1: "injection", 2: "daemon", 3: "analysis"}
_THREAD_NAMED: Final = 39
"""eventType of NVTX rows that name a thread."""
_MPI_THREAD: Final = re.compile(r"MPI Rank (\d+)")
_GPU_NUMBERS: Final = {
    "max_warps_per_sm": "maxWarpsPerSm",
    "max_blocks_per_sm": "maxBlocksPerSm",
    "max_registers_per_sm": "maxRegistersPerSm",
    "max_shared_per_sm": "maxShmemPerSm",
    "threads_per_warp": "threadsPerWarp",
    "sm_count": "smCount",
    "clock_hz": "clockRate",
    "l2_bytes": "l2CacheSize",
    "discrete": "isDiscrete",
}
_GPU_COLUMNS: Final = ("id", "name", "busLocation", "computeMajor", "computeMinor", "cuDevice")


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) else None


def _text(value: Any) -> str:
    return value.rstrip("\0") if isinstance(value, str) else "" if value is None else str(value)


def read_metadata(db: Database) -> Metadata:
    """Reads everything known about the capture; the environment is never read."""
    export = _pairs(db, "META_DATA_EXPORT") or _pairs(db, "EXPORT_META_DATA")
    capture = tuple(
        pair for pair in _pairs(db, "META_DATA_CAPTURE") if "ENVIRONMENT" not in pair[0].upper()
    )
    system = _first(
        pair
        for pair in _pairs(db, "TARGET_INFO_SYSTEM_ENV")
        if "ENVIRONMENT" not in pair[0].upper()
    )
    settings = _first(export)
    utc = db.select("TARGET_INFO_SESSION_START_TIME", ("utcEpochNs",))
    notes = [] if export else ["exported by an nsys of 2021 or earlier, or trimmed: no version"]
    db.notes.add(*unrecorded_work(db))
    for view in db.views:
        db.notes.add(Note(f"{view} is a view, not a table: it is not read", view))
    sessions = db.select("ANALYSIS_DETAILS", ("duration",))
    if len(sessions) > 1:
        text = f"{len(sessions)} sessions in ANALYSIS_DETAILS: the first is used"
        db.notes.add(Note(text, "ANALYSIS_DETAILS"))
    return Metadata(
        product_version=settings.get("EXPORT_PRODUCT_VERSION", ""),
        schema_version=settings.get("EXPORT_SCHEMA_VERSION", ""),
        session_start_utc_ns=_number(utc[0][0]) if utc else None,
        session_duration_ns=_number(sessions[0][0]) if sessions else None,
        host=system.get("Hostname", ""),
        os=system.get("OsDescription", ""),
        cpu=system.get("CpuDescription", ""),
        driver=_driver(system.get("NvDriverVersion", "")),
        command=_command(capture),
        gpus=tuple(info for info, _ in read_gpus(db)),
        contexts=_contexts(db),
        diagnostics=_diagnostics(db),
        capture_settings=capture,
        notes=tuple(notes),
    )


def _pairs(db: Database, table: str) -> tuple[tuple[str, str], ...]:
    return tuple((_text(name), _text(value)) for name, value in db.select(table, ("name", "value")))


def _driver(version: str) -> str:
    """``525.105.17``, which nsys of 2022 and older wrote as ``52510517``; 42600 is 426.00.

    Without a GPU nsys writes 0, which is no driver.
    """
    if version == "0":
        return ""
    if not (version.isdigit() and len(version) >= _DRIVER_DIGITS):
        return version
    parts = (version[:3], version[3:-2], version[-2:])
    return ".".join(part for part in parts if part)


def _first(pairs: Any) -> dict[str, str]:
    """First value of each name: settings repeat, and later processes come later."""
    values: dict[str, str] = {}
    for name, value in pairs:
        values.setdefault(name, value)
    return values


def _command(capture: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    settings = _first(capture)
    program = settings.get("PROCESS_0:COMMAND", "")
    if not program:
        return ()
    prefix = "PROCESS_0:ARGUMENT_"
    numbered = {
        int(name[len(prefix) :]): value
        for name, value in settings.items()
        if name.startswith(prefix) and name[len(prefix) :].isdigit()
    }
    return (program, *(numbered[number] for number in sorted(numbered)))


def _diagnostics(db: Database) -> tuple[Diagnostic, ...]:
    rows = db.select("DIAGNOSTIC_EVENT", ("timestamp", "severity", "source", "text", "globalPid"))
    messages = [
        Diagnostic(
            _number(time) or 0,
            _SEVERITY.get(severity, f"severity {severity}"),
            _DIAGNOSTIC_SOURCE.get(source, f"source {source}"),
            _text(text),
            -1 if (number := _number(process)) is None else number,
        )
        for time, severity, source, text, process in rows
    ]
    return tuple(sorted(messages, key=lambda diagnostic: diagnostic.time))


def read_gpus(db: Database) -> list[tuple[GpuInfo, int | None]]:
    """GPUs of the host with the CUDA ordinal that TARGET_INFO_GPU gives them, if any."""
    gpus: dict[int, tuple[GpuInfo, int | None]] = {}
    rows = db.select("TARGET_INFO_GPU", (*_GPU_COLUMNS, *_GPU_NUMBERS.values()))
    for number, name, bus, major, minor, ordinal, *figures in rows:
        if _number(number) is None or number in gpus:
            continue
        info = GpuInfo(
            number,
            _text(name),
            _text(bus),
            None if _number(major) is None or _number(minor) is None else (major, minor),
            **dict(zip(_GPU_NUMBERS, map(_number, figures), strict=True)),
        )
        gpus[number] = (info, _number(ordinal))
    return list(gpus.values())


def _contexts(db: Database) -> tuple[Member, ...]:
    """Process and GPU of every CUDA context, the GPU by its id or else its CUDA ordinal."""
    tables = ("TARGET_INFO_CUDA_CONTEXT_INFO", "TARGET_INFO_CUDA_NULL_STREAM")
    rows = [row for table in tables for row in db.select(table, ("processId", "deviceId"))]
    known = {Member(*row) for row in rows if None not in map(_number, row)}
    devices = Devices(db)
    return tuple(Member(one.pid, devices.number(one)) for one in sorted(known))


class Devices:
    """Maps a process's CUDA ordinal to a physical GPU.

    TARGET_INFO_CUDA_DEVICE decides; without a row there, TARGET_INFO_GPU.cuDevice (on machines with
    several display adapters those with a bus location come first); else the ordinal stands for
    itself and processes are grouped by it. A process may see a part of a GPU (MIG): how many SMs
    it has, TARGET_INFO_CUDA_DEVICE tells.
    """

    def __init__(self, db: Database) -> None:
        gpus = read_gpus(db)
        self._notes = db.notes
        self._info = {info.id: info for info, _ in gpus}
        self._by_ordinal: dict[int, int] = {}
        for info, ordinal in sorted(gpus, key=lambda gpu: not gpu[0].bus):
            if ordinal is not None:
                self._by_ordinal.setdefault(ordinal, info.id)
        columns = ("pid", "cudaId", "gpuId", "numMultiprocessors")
        rows = [
            (Member(*row[:2]), *row[2:]) for row in db.select("TARGET_INFO_CUDA_DEVICE", columns)
        ]
        self._by_member = {one: gpu for one, gpu, _ in rows if _number(gpu) is not None}
        self._sms = {one: sms for one, _, sms in rows if _number(sms)}

    def assign(self, pairs: list[tuple[int, int]]) -> tuple[tuple[Device, ...], list[int]]:
        """Groups (globalPid, deviceId) pairs into physical GPUs.

        Returns:
            the devices in order of GPU id, and the index of each pair's device.
        """
        members = [Member(pid_of(process), ordinal) for process, ordinal in pairs]
        keys = [self._key(member) for member in members]
        grouped: dict[tuple[int, int], set[Member]] = {key: set() for key in sorted(set(keys))}
        for key, member in zip(keys, members, strict=True):
            grouped[key].add(member)
        alike = {
            key: {one.pid for one in own if one not in self._by_member}
            for key, own in grouped.items()
            if len(self._info) != 1
        }
        several = {key: len(pids) for key, pids in alike.items() if len(pids) > 1}
        for (_, number), count in several.items():
            same = f"{count} processes worked on a GPU that each calls {number}"
            text = f"{same}: taken for one GPU, which TARGET_INFO_CUDA_DEVICE does not tell"
            self._notes.add(Note(text, "TARGET_INFO_CUDA_DEVICE"))
        devices = tuple(
            self._device(None if key[0] else key[1], tuple(sorted(own)), key in several)
            for key, own in grouped.items()
        )
        place = {key: number for number, key in enumerate(grouped)}
        return devices, [place[key] for key in keys]

    def number(self, member: Member) -> int:
        """Physical GPU of a process's CUDA ordinal, the ordinal itself where none is known."""
        return self._key(member)[1]

    def numbers(self) -> list[tuple[int, int, int]]:
        """(pid, CUDA ordinal, GPU id) as far as the file tells; pid -1 stands for all others."""
        of_all = ((-1, ordinal, gpu) for ordinal, gpu in self._by_ordinal.items())
        return [*((*member, gpu) for member, gpu in self._by_member.items()), *of_all]

    def _key(self, member: Member) -> tuple[int, int]:
        gpu = self._by_member.get(member)
        if gpu is None:
            gpu = self._by_ordinal.get(member.ordinal)
        return (True, member.ordinal) if gpu is None else (False, gpu)

    def _device(self, gpu_id: int | None, members: tuple[Member, ...], several: bool) -> Device:
        info = self._info.get(gpu_id) if gpu_id is not None else None
        if info and (sms := [self._sms[one] for one in members if one in self._sms]):
            info = replace(info, sm_count=max(sms))
        number = gpu_id if gpu_id is not None else members[0].ordinal
        name = info.name if info and info.name else f"GPU {number}"
        return Device(gpu_id, members, name, info, several)


def read_thread_names(db: Database, strings: Strings) -> dict[int, str]:
    """globalTid -> name, the one of highest priority; may list the whole machine."""
    best: dict[int, tuple[int, str]] = {}
    for name_id, priority, thread in db.select("ThreadNames", ("nameId", "priority", "globalTid")):
        if not isinstance(thread, int) or not isinstance(name_id, int):
            continue
        name = strings.get(name_id)
        rank = priority if isinstance(priority, int) else 0
        if name and rank >= best.get(thread, (-1, ""))[0]:
            best[thread] = (rank, name)
    return {thread: name for thread, (_, name) in best.items()}


def read_ranks(db: Database) -> dict[int, int]:
    """globalPid -> MPI rank, as MPI tells it, or from threads that it named ``MPI Rank 3``."""
    told = db.select("MPI_RANKS", ("globalTid", "rank"))
    if told:
        return {t & PROCESS_MASK: rank for t, rank in told if None not in (t, rank)}
    names = db.schema.names("NVTX_EVENTS", ("eventType", "text", "globalTid"))
    if len(names) < 3:
        return {}
    kind, text, thread = (quoted(names[name]) for name in ("eventType", "text", "globalTid"))
    named = db.query(
        f"SELECT {thread}, {text} FROM NVTX_EVENTS NOT INDEXED WHERE {kind} = {_THREAD_NAMED}"
    )
    return {
        tid & PROCESS_MASK: int(match[1])
        for tid, name in named
        if isinstance(tid, int) and (match := _MPI_THREAD.fullmatch(_text(name)))
    }


def read_process_names(db: Database) -> dict[int, str]:
    """globalPid -> name of the executable."""
    rows = db.select("PROCESSES", ("globalPid", "name"))
    return {process: _text(name) for process, name in rows if isinstance(process, int) and name}


def read_stream_facts(db: Database) -> dict[tuple[int, int, int], tuple[str, int, int | None]]:
    """(pid, context, stream) -> (name given through NVTX, how it was created, priority)."""
    facts: dict[tuple[int, int, int], tuple[str, int, int | None]] = {}
    columns = ("processId", "contextId", "streamId", "priority", "flag")
    for pid, context, stream, priority, flag in db.select("TARGET_INFO_CUDA_STREAM", columns):
        facts[pid, context, stream] = ("", _number(flag) or 0, _number(priority))
    names = db.select(
        "TARGET_INFO_NVTX_CUDA_STREAM", ("processId", "contextId", "streamId", "name")
    )
    for pid, context, stream, name in names:
        for key in [key for key in facts if key[0] == pid and key[2] == stream] or [
            (pid, context, stream)
        ]:
            _, flag, level = facts.get(key, ("", 0, None))
            facts[key] = (_text(name), flag, level)
    return facts
