"""The overview's panes as lines of text: from one analysis result to runs of (text, style code)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

from textual.geometry import Size

from nsys_tui.analysis.breakdown import DeviceSplit
from nsys_tui.analysis.host_time import HostTime
from nsys_tui.analysis.overview import NO_WORK, Overview, TopName
from nsys_tui.analysis.overview_columns import SHARE_OF
from nsys_tui.analysis.rules.finding import Finding, command_of
from nsys_tui.analysis.rules.not_looked_at import NotLookedAt
from nsys_tui.analysis.thread_states import Witness
from nsys_tui.model.categories import Category
from nsys_tui.model.target import Metadata
from nsys_tui.names import cut, pad, told_apart, visible
from nsys_tui.render.cells import BOLD, MUTED, Ink, Line, category_ink, style
from nsys_tui.render.glyphs import Glyphs
from nsys_tui.timeline.opening import FewSteps, opening
from nsys_tui.ui.pane_text import side_by_side, wrapped
from nsys_tui.ui.session import Session
from nsys_tui.ui.widgets.trace import HINT, AnyRow, TracePane, TraceRow
from nsys_tui.units import format_count, format_duration, format_percentage, format_share, plural

TALL = 40
"""Rows of a screen from which ranges and a legend are shown."""
FIXED, PART = 16, 4
"""Rows that other panes need at least, and the part of the rest that GPUs may take."""
LEVEL = 5
"""Rows of a tall screen for which there is one level of ranges more."""


class WholeTrace(TracePane):
    """Holds the rows that are known, and shows as many as there is room for."""

    gpu_rows: Sequence[AnyRow] = ()
    host_rows: Sequence[TraceRow] = ()
    few: FewSteps | None = None
    """Steps that stand for all of them."""
    telling: Sequence[int] = ()
    """GPUs that findings are about, the one that others wait for first."""

    def forget(self) -> None:
        """Another report: nothing is known yet."""
        self.gpu_rows, self.host_rows, self.few, self.telling = (), (), None, ()

    def fit_in(self, session: Session, size: Size) -> None:
        """GPUs always; ranges where the screen is tall.

        Args:
            session: of the report.
            size: of the screen.
        """
        most = max(2, (size.height - FIXED) // PART)
        levels = 1 + (size.height - TALL) // LEVEL if self.gpu_rows else most
        there = range(len(self.gpu_rows))
        telling = dict.fromkeys((*(place for place in self.telling if place in there), *there))
        gpus = [self.gpu_rows[place] for place in sorted([*telling][:most])]
        rows = [*gpus, *self.host_rows[: max(levels, 0)]]
        hidden = len(self.gpu_rows) - most
        rest = f" ({plural(hidden, 'more GPU')}: timeline)" if hidden > 0 else ""
        estimated = session.report is not None and not session.exact
        mark = "≈ from a sample, " if estimated and self.gpu_rows else ""
        extent, report = session.extent, session.report
        span = report.span if report is not None and session.exact else None
        work = opening(span, self.few, extent, size.width)
        whole = format_duration(extent[1] - extent[0])
        busy = "" if span is None else format_duration(span[1] - span[0])
        part = "" if work is None else f"GPU work, {busy} of {whole}"
        part = part if self.few is None else f"{self.few} ({whole})".capitalize()
        self.heading(f"{part or 'Whole trace'}{rest}", f"{mark}{HINT}")
        legend = size.height >= TALL and bool(self.gpu_rows)
        self.show(rows, work or extent, legend=legend)
        self.styles.height = len(rows) + legend + 3
        self.set_class(not rows and session.finished, "-empty")


ADVISED: Final = 100
"""Cells from which every finding tells what to do about it."""
INDENT: Final = " " * 10
"""Before what a finding goes on with: its sign and what it could give back stand above."""
IDLE: Final = style(Ink.IDLE)
NARROW: Final = 60
"""Cells of a pane under which the split has a line for each part, and so room for more."""
NAME_BAR: Final = 8
ROOMY: Final = 66
"""Cells of a line from which names have means beside them."""


class Chosen(NamedTuple):
    """What a line of the overview stands for."""

    kind: str
    """``kernel``, ``range`` or ``call``."""
    name: str


def time_split(
    overview: Overview, width: int, glyphs: Glyphs, *, sampled: bool = False
) -> list[Line]:
    """One bar of the time of all GPUs, what its parts are, then each GPU for itself.

    Args:
        overview: the figures.
        width: cells per line.
        glyphs: the characters of this terminal.
        sampled: the shares are estimates of kernel time; the rest is not known yet.
    """
    head = overview.headline
    whole, mark = head.device_count * head.base_ns, "≈" if sampled else ""
    if not head.device_count:
        doubt: list[Line] = [[("GPU work is not known", MUTED)]] * (not overview.gpu_known)
        return _threads(overview.host, width, glyphs) or doubt
    told = head.compute_ns + head.exposed_comm_ns + head.exposed_memory_ns
    parts = [
        (Category.COMPUTE, "compute", head.compute_ns, head.compute_ns),
        (Category.COMM, "comm", head.comm_ns, head.comm_ns if sampled else head.exposed_comm_ns),
        (Category.MEMORY, "memory", head.memory_ns, head.exposed_memory_ns),
        (Category.GRAPH, "graphs", head.graph_ns, max(0, head.busy_ns - told)),
    ]
    line: list[tuple[str, int]] = []
    legend: list[Line] = []
    end = 0
    for category, label, ns, alone in parts:
        sign = glyphs.fill(category), style(category_ink(category))
        before, end = end, end + alone
        cells = round(width * end / whole) - round(width * before / whole) if whole else 0
        line.append((sign[0] * cells, sign[1]))
        exposed = f" ({format_share(alone, whole)} exposed)" * (category is Category.COMM)
        text = f" {label} {mark}{format_share(ns, whole)}{'' if sampled else exposed}"
        legend += [[sign, (text, 0)]] * bool(ns)
    line.append((glyphs.idle * (width - sum(len(text) for text, _ in line)), IDLE))
    if sampled:
        return [line, *side_by_side([*legend, [("from a sample …", MUTED)]], width)]
    idle = f" idle {format_share(head.idle_ns, whole)}"
    gap = f" (longest {format_duration(head.max_gap_ns)})" * (width < NARROW)
    legend.insert(3, [(glyphs.idle, IDLE), (idle + gap, 0)])
    return [line, *side_by_side(legend, width), *per_gpu(overview.devices)]


def _threads(host: HostTime | None, width: int, glyphs: Glyphs) -> list[Line]:
    """Threads by CPU time; those that only samples tell of are estimates."""
    if host is None or not host.threads:
        return []
    room = max(6, width - 34)
    lines: list[Line] = [[(f"{'thread':<15}     CPU      %", MUTED)]]
    for thread in host.threads:
        mark = "≈" if thread.witness is Witness.SAMPLED else ""
        figures = f"{mark + format_duration(thread.cpu_ns):>9} {format_share(thread.share):>6}  "
        name = pad(cut(visible(thread.name), 15), 15)
        filled = glyphs.bar * min(room, round(thread.share * room))
        lines.append([(name + figures + filled, 0), (glyphs.idle * (room - len(filled)), IDLE)])
    return lines


def per_gpu(devices: Sequence[DeviceSplit]) -> list[Line]:
    """One line per GPU under a heading; shares of the same base as the headline.

    ``wait`` is communication that waits for other ranks, where that is known.
    """
    if len(devices) < 2:
        return []
    waits = any(split.comm_waiting_ns is not None for split in devices)
    heading = "per GPU  % busy  comp  comm   mem" + "  wait" * waits
    lines: list[Line] = [[(heading, BOLD)]]
    for split in devices:
        parts = [split.busy_ns, split.compute_ns, split.comm_ns, split.memory_ns]
        figures = "".join(f"{_percent(ns, split.base_ns):>6}" for ns in parts)
        if split.comm_waiting_ns is not None:
            figures += f"{_percent(split.comm_waiting_ns, split.base_ns):>6}"
        lines.append([(f"{split.device.label:<9}{figures}", 0)])
    return lines


def _percent(part: int, whole: int) -> str:
    return format_percentage(100 * part / whole) if whole else "-"


def top_list(
    overview: Overview, kind: str, glyphs: Glyphs, width: int
) -> tuple[list[Line], list[Chosen | None]]:
    """Kernels or ranges with their shares, and what each line stands for.

    Without GPU work MPI or OS runtime calls stand in the place of kernels.
    """
    if kind == "kernel" and (calls := overview.mpi or overview.calls):
        return top_names(calls, "call", f"{overview.called} call", glyphs, width)
    names, what = {
        "kernel": (overview.kernels, "kernel"),
        "other": (overview.other_work, "operation"),
        "range": (overview.ranges, "range (host time)"),
    }[kind]
    return top_names(names, kind, what, glyphs, width)


def listed(overview: Overview) -> dict[str, int]:
    """How many names there are of each kind that there are any of, as ``top_list`` takes them.

    MPI or OS runtime calls count as kernels, in whose place they stand.
    """
    names = {
        "kernel": overview.kernels or overview.mpi or overview.calls,
        "other": overview.other_work,
        "range": overview.ranges,
    }
    return {kind: len(some) for kind, some in names.items() if some}


def top_names(
    names: Sequence[TopName],
    kind: str,
    what: str,
    glyphs: Glyphs,
    width: int,
    *,
    sampled: bool = False,
) -> tuple[list[Line], list[Chosen | None]]:
    """A heading and one line per name with a bar, and what each line stands for.

    Args:
        names: largest first.
        kind: what a line stands for.
        what: head of the column of names.
        glyphs: the characters of this terminal.
        width: cells per line; narrow ones have no means.
        sampled: shares and means are estimates, totals and counts unknown.
    """
    average = width >= ROOMY
    head = f" {f'of {SHARE_OF[kind]}':>15}    total      n{'      avg' * average}  {what}"
    lines: list[Line] = [[(head, MUTED)]]
    room = max(8, width - len(head) + len(what))
    texts = told_apart([visible(entry.name) for entry in names], room)
    choices: list[Chosen | None] = [None]
    top = names[0].share if names else 1.0
    for entry, text in zip(names, texts, strict=True):
        mean = "-" if entry.mean_ns is None else format_duration(entry.mean_ns)
        scaled = round(NAME_BAR * entry.share / top) if top else 0
        share, total = format_share(entry.share), format_duration(entry.total_ns)
        figures = f" {share:>6} {total:>8} {format_count(entry.count):>6}"
        if sampled:
            figures, mean = f" {'≈' + share:>6} {'-':>8} {'-':>6}", f"≈{mean}"
        lines.append(
            [
                (f" {glyphs.bar * scaled:<{NAME_BAR}}", style(Ink.COUNTER)),
                (f"{figures} {mean:>8}  " if average else f"{figures}  ", 0),
                (text, 0),
            ]
        )
        choices.append(Chosen(kind, entry.name))
    return lines, choices


def finding_lines(
    findings: Sequence[Finding],
    full: Sequence[object],
    width: int,
    place: Callable[[Finding], str],
    gain: Callable[[Finding], str],
    doubted: Sequence[object] = (),
    name: str = "",
) -> tuple[list[Line], list[Finding | None]]:
    """Of each finding what is wrong; with room, where it shows and what to do about it.

    Args:
        findings: gravest first.
        full: those that are told in full.
        width: cells per line.
        place: says where a finding shows best.
        gain: says how much it could give back, empty where that is not known.
        doubted: those of which it is told how firmly they are known, and what would settle it.
        name: of the report, for commands.
    """
    lines: list[Line] = []
    choices: list[Finding | None] = []
    for entry in findings:
        sign = "!" if entry.severity.letter == "H" else " "
        weight = BOLD if sign == "!" else 0
        could = f"{gain(entry):>6} "
        part_of = visible(f" (part of: {entry.same_as})") if entry.same_as else ""
        advised = entry in full or width >= ADVISED
        title = visible(entry.title) + part_of * (not advised)
        first, *rest = wrapped(title, width - 3 - len(could))
        where = f"{place(entry)} [{entry.screen}] "
        told: list[Line] = [
            [(f"{sign}{entry.severity.letter} ", weight), (could, 0), (first, weight)]
        ]
        told += [[(INDENT, 0), (part, weight)] for part in rest]
        if advised:
            advice, *more = wrapped(where + visible(entry.advice) + part_of, width - len(INDENT))
            told.append([(INDENT, 0), (advice[: len(where)], MUTED), (advice[len(where) :], 0)])
            told += [[(INDENT, 0), (part, 0)] for part in more]
        if entry in doubted:
            known = _known(entry, name)
            told += [[(INDENT + part, MUTED)] for part in wrapped(known, width - len(INDENT))]
        lines += told
        choices += [entry, *[None] * (len(told) - 1)]
    return lines, choices


def _known(entry: Finding, name: str) -> str:
    settle = f"; settled by {command_of(entry.settle, name)}" if entry.settle else ""
    return visible(f"{entry.confidence}{f', but {entry.doubt}' if entry.doubt else ''}{settle}")


def unseen_lines(unseen: Sequence[NotLookedAt], width: int, *, chosen: bool) -> list[Line]:
    """What no rule could look at; if chosen, why and what would record it, too."""
    if not unseen:
        return []
    what = "not looked at: " + "; ".join(one.what for one in unseen)
    first, *rest = wrapped(what, width - 3)
    lines: list[Line] = [[("?  ", BOLD), (first, MUTED)], *([(f"   {p}", MUTED)] for p in rest)]
    texts = [f"{one.what}: {one.reason}" for one in unseen] if chosen else []
    return lines + [[(f"   {part}", 0)] for text in texts for part in wrapped(text, width - 3)]


def report_facts(overview: Overview, width: int, gpus: str) -> list[Line]:
    """What was captured, where and with what; what nsys warns of; what is missing and why."""
    meta = overview.metadata
    lines: list[Line] = []
    for label, text in _facts(meta, overview, gpus):
        first, *rest = wrapped(text, width - 10) or [""]
        lines.append([(f"{label:<10}", MUTED), (first, 0)])
        lines += [[(" " * 10 + part, 0)] for part in rest]
    for message in overview.messages:
        if message.serious:
            lines += _listed(f"! {message.first.severity}: ", message.text, width)
    for entry in overview.missing:
        lines += _listed("- ", entry.reason, width)
    for note in overview.notes:
        if not (overview.missing and note.startswith(NO_WORK)):
            lines += _listed("* ", note, width)
    return lines


def _facts(meta: Metadata, overview: Overview, gpus: str) -> list[tuple[str, str]]:
    lo, hi = overview.base
    session = format_duration(meta.session_duration_ns) if meta.session_duration_ns else "unknown"
    work = f", GPU work {format_duration(hi - lo)}" if hi > lo else ""
    versions = [f"nsys {meta.product_version}" if meta.product_version else "nsys unknown"]
    versions += [f"driver {meta.driver}"] if meta.driver else []
    recorded = ", ".join(overview.host.recorded) if overview.host is not None else ""
    facts = [
        ("command", " ".join(meta.command)),
        ("host", meta.machine),
        ("GPUs", gpus),
        ("captured", _utc(meta.session_start_utc_ns)),
        ("duration", session + work),
        *([("recorded", recorded)] if recorded else []),
        ("with", ", ".join(versions)),
    ]
    return [(label, text or "not recorded") for label, text in facts]


def _utc(ns: int | None) -> str:
    if ns is None:
        return ""
    try:
        return datetime.fromtimestamp(ns // 10**9, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, OSError, ValueError):
        return f"{ns} ns after 1970 (out of range)"


def _listed(bullet: str, text: str, width: int) -> list[Line]:
    return [
        [("  " * bool(number) + part, 0)]
        for number, part in enumerate(wrapped(bullet + text, width - 2))
    ]
