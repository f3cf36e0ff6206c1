"""The views: stable names and columns over nsys's tables of any generation, as data.

``{name}`` in an expression is a column of the table as the newest nsys calls it; where the file has
none it is NULL. Columns that need a name by number, a thread or a domain take it from small
temporary tables, which are filled when a query first asks for such a column.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from nsys_tui.model.capabilities import Capability
from nsys_tui.model.categories import MEMORY_KINDS, is_communication
from nsys_tui.model.report import Report
from nsys_tui.model.target import PROCESS_MASK
from nsys_tui.names import api_name
from nsys_tui.reader.encode import Strings
from nsys_tui.reader.schema import COPY_KINDS, STRINGS
from nsys_tui.reader.short_names import early_names, late_names
from nsys_tui.reader.sqlite import Database, quoted
from nsys_tui.reader.target import Devices, read_process_names, read_ranks, read_thread_names


@dataclass(frozen=True)
class ViewColumn:
    """One column of a view."""

    name: str
    text: str
    """What it is, for the documentation."""
    expression: str = ""
    needs: str = ""
    """Temporary table that is filled before the column is read."""


@dataclass(frozen=True)
class View:
    """A view over one table of nsys, or (without a table) a temporary table of our figures."""

    name: str
    text: str
    gives: Capability | None
    """Without which it is empty; None where what fills it tells why it is."""
    columns: tuple[ViewColumn, ...] = ()
    table: str = ""
    where: str = "1"
    """Which rows of the table belong to it."""


TEMPORARY: Final = {
    "_strings": "id INTEGER PRIMARY KEY, value",
    "_communication": "id INTEGER PRIMARY KEY",
    "_calls": "id INTEGER PRIMARY KEY, name",
    "_kernels": "id INTEGER PRIMARY KEY, name",
    "_threads": "id INTEGER PRIMARY KEY, name",
    "_processes": "id INTEGER PRIMARY KEY, name, rank",
    "_domains": "process INTEGER, id INTEGER, name, PRIMARY KEY (process, id)",
    "_devices": "process INTEGER, ordinal INTEGER, number INTEGER, PRIMARY KEY (process, ordinal)",
}
"""Small temporary tables behind the views."""


def _string(number: str, otherwise: str = "NULL") -> str:
    value = f"(SELECT value FROM {{{{strings}}}} WHERE id = {{{number}}})"
    return f"coalesce({value}, {otherwise}, '[string ' || {{{number}}} || ']', '[unnamed]')"


def _words(column: str, words: tuple[str, ...]) -> str:
    cases = " ".join(f"WHEN {number} THEN '{word}'" for number, word in enumerate(words))
    return f"CASE {{{column}}} {cases} ELSE 'kind ' || {{{column}}} END"


def _column(
    name: str, text: str, expression: str = "", needs: str = "", *, at: str = ""
) -> ViewColumn:
    return ViewColumn(name, text, expression or f"{{{at or name}}}", needs)


EARLY: Final = "_early"
"""Function that is told the table and rowid of an event that ends before its start; gives 0."""
_ID: Final = _column("id", "rowid in nsys's table", "t.rowid")
_TIMES: Final = (
    _column("start_ns", "start, ns since the session began", at="start"),
    _column("end_ns", "end; half-open", at="end"),
    _column(
        "duration_ns",
        "end − start, at least 0",
        f"CASE WHEN {{end}} < {{start}} THEN {EARLY}({{{{table}}}}, t.rowid)"
        " ELSE {end} - {start} END",
    ),
    _column("utc_ns", "start, ns since 1970 in UTC; NULL where not recorded", "{start} + {{utc}}"),
)
_PROCESS: Final = (
    _column("pid", "process id", "({globalPid} >> 24) & 16777215"),
    _column("process", "name of the executable",
            "(SELECT name FROM _processes WHERE id = {globalPid})", "_processes"),
    _column("rank", "MPI rank, where MPI tells it",
            "(SELECT rank FROM _processes WHERE id = {globalPid})", "_processes"),
    _column("global_pid", "nsys's globalPid: ids are unique only together with it", at="globalPid"),
)  # fmt: skip
_WORK: Final = (
    _ID,
    *_TIMES,
    _column("device", "GPU, by its number in the overview", "{{device}}"),
    _column("context", "CUDA context, unique in its process", at="contextId"),
    _column("stream", "CUDA stream, unique in its context", at="streamId"),
    *_PROCESS,
)
_CORRELATION: Final = _column(
    "correlation", "joins with api.correlation of the same global_pid", at="correlationId"
)
_GRAPH_NODE: Final = _column("graph_node", "node of a CUDA graph; NULL or 0 for none",
                             at="graphNodeId")  # fmt: skip
_THREAD: Final = (
    _column("pid", "process id", "({globalTid} >> 24) & 16777215"),
    _column("tid", "thread id", "{globalTid} & 16777215"),
    _column("thread", "name of the thread, or tid and its number",
            "coalesce((SELECT name FROM _threads WHERE id = {globalTid}),"
            " 'tid ' || ({globalTid} & 16777215))", "_threads"),
    _column("global_tid", "nsys's globalTid", at="globalTid"),
    _column("global_pid", "nsys's globalPid", "{globalTid} & ~16777215"),
)  # fmt: skip
_FULL: Final = "coalesce({demangledName}, {shortName})"
LATE_NAME: Final = "_late_name"
"""Function that names a kernel by its full name where ``_kernels`` was filled early."""
_SHAPE: Final = tuple(
    _column(f"{part}_{axis.lower()}", f"{what} in {axis.lower()}", at=f"{part}{axis}")
    for part, what in (("grid", "blocks of the grid"), ("block", "threads of a block"))
    for axis in "XYZ"
)

VIEWS: Final = (
    View(
        "kernels",
        "GPU kernels",
        Capability.KERNELS,
        (
            *_WORK[:5],
            _column("name", "nsys's short name, which kernels of other types share",
                    _string("shortName")),
            _column("short_name", "as screens list it: no other kernel of the report has it",
                    f"coalesce((SELECT name FROM _kernels WHERE id = {_FULL}), {LATE_NAME}("
                    f"(SELECT value FROM {{{{strings}}}} WHERE id = {_FULL})),"
                    f" {_string('shortName')})",
                    "_kernels"),
            *_WORK[5:],
            _CORRELATION,
            _column("full_name", "demangled name with its arguments", _string("demangledName")),
            _column("category", "compute or comm",
                    "CASE WHEN EXISTS (SELECT 1 FROM _communication"
                    " WHERE id IN ({shortName}, {demangledName})) THEN 'comm' ELSE 'compute' END",
                    "_communication"),
            *_SHAPE,
            _column("registers", "registers of a thread", at="registersPerThread"),
            _column("static_shared_bytes", "static shared memory of a block",
                    at="staticSharedMemory"),
            _column("dynamic_shared_bytes", "dynamic shared memory of a block",
                    at="dynamicSharedMemory"),
            _column("local_bytes", "local memory of a thread", at="localMemoryPerThread"),
            _GRAPH_NODE,
        ),
        "CUPTI_ACTIVITY_KIND_KERNEL",
    ),
    View(
        "copies",
        "memory copies, migrations of unified memory among them",
        Capability.COPIES,
        (
            *_WORK[:5],
            _column("kind", "direction, as Host-to-Device", _words("copyKind", COPY_KINDS)),
            _column("bytes", "bytes moved", at="bytes"),
            _column("bytes_per_s", "bytes a second; NULL for no time",
                    "1e9 * {bytes} / nullif(max({end} - {start}, 0), 0)"),
            *_WORK[5:],
            _column("correlation", "joins with api.correlation; NULL for migrations",
                    "CASE WHEN {copyKind} IN (11, 12, 13) THEN NULL ELSE {correlationId} END"),
            _column("source", "memory it comes from, as Pageable", _words("srcKind", MEMORY_KINDS)),
            _column("target", "memory it goes to", _words("dstKind", MEMORY_KINDS)),
            _GRAPH_NODE,
        ),
        "CUPTI_ACTIVITY_KIND_MEMCPY",
    ),
    View(
        "memsets",
        "memory sets",
        Capability.MEMSETS,
        (
            *_WORK[:5],
            _column("bytes", "bytes set"),
            _column("value", "what they are set to"),
            *_WORK[5:],
            _CORRELATION,
            _column("memory", "memory that is set", _words("memKind", MEMORY_KINDS)),
            _GRAPH_NODE,
        ),
        "CUPTI_ACTIVITY_KIND_MEMSET",
    ),
    View(
        "api",
        "CUDA runtime and driver calls, without the doubles of class 67",
        Capability.API,
        (
            _ID,
            *_TIMES,
            _column("name", "call without its version, as cudaLaunchKernel",
                    "coalesce((SELECT name FROM _calls WHERE id = {nameId}),"
                    f" {_string('nameId')})", "_calls"),
            *_THREAD,
            _CORRELATION,
            _column("return_value", "0 where it went well", at="returnValue"),
            _column("class", "0 runtime, 1 driver", at="eventClass"),
            _column("full_name", "call as recorded, as cudaLaunchKernel_v7000", _string("nameId")),
        ),
        "CUPTI_ACTIVITY_KIND_RUNTIME",
        "{eventClass} IS NOT 67",
    ),
    View(
        "ranges",
        "NVTX ranges; of open ones end_ns and duration_ns are NULL",
        Capability.NVTX,
        (
            _ID,
            *_TIMES,
            _column("name", "text of the range", _string("textId", "{text}")),
            _column("domain", "NVTX domain; empty for the default one",
                    "CASE WHEN coalesce({domainId}, 0) <= 0 THEN '' ELSE"
                    " coalesce((SELECT name FROM _domains WHERE id = {domainId}"
                    " AND process = {globalTid} & ~16777215), 'domain ' || {domainId}) END",
                    "_domains"),
            *_THREAD,
            _column("style", "push/pop or start/end",
                    "CASE WHEN {eventType} IN (59, 70) THEN 'push/pop' ELSE 'start/end' END"),
            _column("nvtx_category", "NVTX category number", at="category"),
        ),
        "NVTX_EVENTS",
        "{eventType} IN (59, 60, 70, 71)",
    ),
    View("stalls", "idle gaps of 10 µs and longer with their cause", Capability.KERNELS),
    View("steps", "iterations, as nsys-tui iterations finds them", None),
    View("collectives", "NCCL collectives, as nsys-tui collectives joins them",
         Capability.KERNELS),
    View(
        "launches",
        "GPU work with the call that launched it",
        Capability.LAUNCH_CALLS,
        (
            _column("kind", "kernel, memcpy, memset or graph"),
            _column("id", "id in kernels, copies or memsets"),
            _column("api_id", "id in api; NULL where no call is known"),
            _column("latency_ns", "start of the work − start of its call"),
            _column("queue_ns", "start of the work − end of its call, at least 0"),
        ),
    ),
)  # fmt: skip
"""All views, in the order of the documentation."""


PROCESS: Final = "globalPid"
"""Column for which, where a file lacks it, the only process stands."""


_FEW: Final = 64
"""Numbers of GPUs that stand in the view itself, which is twice as fast as a look at a table."""


def device_sql(numbers: Sequence[tuple[Any, Any, Any]]) -> str:
    """The number of a GPU: that of CUDA, or where GPUs are numbered otherwise, the physical one.

    Args:
        numbers: (pid, CUDA ordinal, number), pid -1 for all others; these stand last.
    """
    if all(ordinal == number for _, ordinal, number in numbers):
        return "{deviceId}"
    pid = "({globalPid} >> 24) & 16777215"
    if len(numbers) <= _FEW and all(isinstance(one, int) for row in numbers for one in row):
        cases = " ".join(
            f"WHEN {{deviceId}} = {ordinal}{of_one} THEN {number}"
            for index, ordinal, number in numbers
            for of_one in (f" AND {pid} = {index}" if index >= 0 else "",)
        )
        return f"CASE {cases} ELSE {{deviceId}} END"
    number = "(SELECT number FROM _devices WHERE ordinal = {deviceId} AND process = "
    return f"coalesce({number}{pid}), {number}-1), {{deviceId}})"


def view_sql(
    view: View, names: Mapping[str, str], settings: Mapping[str, str], database: str = "main"
) -> str:
    """The SELECT behind a view over a table.

    Args:
        view: over a table of the file.
        names: columns of the table as the newest nsys calls them -> as the file does.
        settings: what stands for ``{{word}}``.
        database: where the table stands, as SQLite calls it.
    """

    def actual(match: re.Match[str]) -> str:
        if match[1]:
            return settings[match[1]]
        name = match[2]
        known = f"t.{quoted(names[name])}" if name in names else "NULL"
        return settings.get(name, known) if known == "NULL" else known

    def written(expression: str) -> str:
        expanded = expression
        while "{" in expanded:
            expanded = re.sub(r"\{\{(\w+)\}\}|\{(\w+)\}", actual, expanded)
        return expanded

    terms = ", ".join(f"{written(c.expression)} AS {quoted(c.name)}" for c in view.columns)
    return f"SELECT {terms} FROM {database}.{quoted(view.table)} AS t WHERE {written(view.where)}"


_DOMAIN_CREATED: Final = 75
"""eventType of NVTX rows that make a domain."""


def name_rows(
    table: str, db: Database, report: Report, patterns: tuple[str, ...] = ()
) -> Iterable[Sequence[Any]]:
    """Rows of one of ``views.TEMPORARY``.

    Args:
        table: which.
        db: the file.
        report: the report made of it.
        patterns: the user's own regular expressions for communication kernels.
    """
    if table in ("_strings", "_communication", "_calls", "_kernels"):
        strings = [row for row in db.select(STRINGS, ("id", "value")) if None not in row]
        if table == "_strings":
            return strings
        if table == "_kernels":
            return _kernels(strings, early_names(db, strings) or late_names(report))
        if table == "_calls":
            calls = ((number, text, api_name(text)) for number, text in strings)
            return [(number, name) for number, text, name in calls if name != text]
        return [(number,) for number, text in strings if is_communication((text,), patterns)]
    if table == "_threads":
        return read_thread_names(db, Strings(db)).items()
    if table == "_processes":
        names, ranks = read_process_names(db), read_ranks(db)
        return [(key, names.get(key), ranks.get(key)) for key in {*names, *ranks}]
    if table == "_devices":
        return Devices(db).numbers()
    return _domains(db)


def _kernels(
    strings: Iterable[tuple[int, str]], names: Mapping[str, str]
) -> Iterable[Sequence[Any]]:
    """(number of the full name, short name) of the kernels."""
    return [(number, names[text]) for number, text in strings if text in names]


def _domains(db: Database) -> Iterable[Sequence[Any]]:
    """(globalPid, number, name) of NVTX domains, from the rows that made them; the last counts."""
    names = db.schema.names("NVTX_EVENTS", ("eventType", "globalTid", "domainId", "text", "textId"))
    if not {"eventType", "globalTid", "domainId"} <= names.keys():
        return []
    terms = ", ".join(
        quoted(names[name]) if name in names else "NULL"
        for name in ("globalTid", "domainId", "text", "textId")
    )
    made = db.query(
        f"SELECT {terms} FROM NVTX_EVENTS WHERE {quoted(names['eventType'])} = ?",
        (_DOMAIN_CREATED,),
    )
    strings = Strings(db)
    return {
        (thread & PROCESS_MASK, number): (
            thread & PROCESS_MASK, number, strings.get(key) if text is None else text,
        )
        for thread, number, text, key in made
        if isinstance(thread, int) and isinstance(number, int)
    }.values()  # fmt: skip
