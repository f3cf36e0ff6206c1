"""The overview's panes as lines of text: from one analysis result to runs of (text, style code)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from nsys_tui.analysis.thread_states import Witness
from nsys_tui.model.capabilities import Capability
from nsys_tui.model.categories import Category
from nsys_tui.names import cell_len, cut, pad, told_apart, visible
from nsys_tui.render.cells import BOLD, MUTED, Ink, category_ink, style
from nsys_tui.render.glyphs import FILLS
from nsys_tui.ui.pane_text import wrapped
from nsys_tui.units import format_count, format_duration, format_share

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nsys_tui.analysis.breakdown import DeviceSplit
    from nsys_tui.analysis.host_time import HostTime
    from nsys_tui.analysis.overview import Headline, Overview, TopName
    from nsys_tui.analysis.rules.bound import NotLookedAt
    from nsys_tui.analysis.rules.finding import Finding
    from nsys_tui.model.target import Metadata
    from nsys_tui.render.cells import Line
    from nsys_tui.render.glyphs import Glyphs


ADVISED: Final = 100
"""Cells from which a finding tells what to do about it in its second line."""
NAME_BAR: Final = 8
ROOMY: Final = 66
"""Cells of a line from which names have means beside them."""
OF: Final = {"kernel": "of GPU work", "call": "of all calls", "range": "of all ranges"}
"""What the shares of a list of names are of."""


class Chosen(NamedTuple):
    """What a line of the overview stands for."""

    kind: str
    """``kernel`` or ``range``."""
    name: str


def bar(share: float, width: int, category: Category | None, glyphs: Glyphs) -> Line:
    """A share as a bar: filled with the category's sign, the rest with the sign of idle."""
    filled = min(width, round(share * width))
    filled = max(filled, 1) if share > 0 else 0
    ink = style(category_ink(category)) if category is not None else 0
    glyph = FILLS[category] if category is not None and not glyphs.solid else glyphs.bar
    return [(glyph * filled, ink), (glyphs.idle * (width - filled), style(Ink.IDLE))]


def time_split(found: Overview, width: int, glyphs: Glyphs, *, sampled: bool = False) -> list[Line]:
    """Busy time by category over all GPUs, then each GPU for itself.

    Args:
        found: the figures.
        width: cells per line.
        glyphs: the characters of this terminal.
        sampled: the shares are estimates of kernel time; the rest is not known yet.
    """
    head = found.headline
    if not head.device_count:
        said = "no GPU work in this report" if found.gpu_known else "GPU work is not known"
        return [[(said, MUTED)], *_why_nothing(found, width), *_threads(found.host, width, glyphs)]
    whole, mark = head.device_count * head.base_ns, "≈" if sampled else ""
    room = max(6, width - 19)

    def row(label: str, ns: int, category: Category | None) -> Line:
        share = ns / whole if whole else 0.0
        figure = mark + format_share(ns, whole)
        return [(f"{label:<9}{figure:>7}  ", 0), *bar(share, room, category, glyphs)]

    lines = [row("GPU busy", head.busy_ns, Category.COMPUTE)]
    lines.append(row("compute", head.compute_ns, Category.COMPUTE))
    if head.comm_ns:
        lines.append(row("comm", head.comm_ns, Category.COMM))
        if not sampled:
            lines.append(_exposed(head, whole))
    if sampled:
        return [*lines, [("kernels only, from a sample …", MUTED)]]
    lines.append(row("memory", head.memory_ns, Category.MEMORY))
    if head.graph_ns:
        lines.append(row("graphs", head.graph_ns, Category.GRAPH))
    idle = format_share(head.idle_ns, whole)
    lines.append([(f"{'idle':<9}{idle:>7}  max gap {format_duration(head.max_gap_ns)}", 0)])
    share = head.session_share(head.busy_ns)
    if share is not None:
        figure, session = format_share(share, 1), format_duration(head.session_ns or 0)
        text = f"{'session':<9}{figure:>7}  busy of {session}"
        lines.append([(text, MUTED)])
    return [*lines, *per_gpu(found.devices)]


def _exposed(head: Headline, whole: int) -> Line:
    hidden = 1 - head.exposed_comm_ns / head.comm_ns
    exposed = format_share(head.exposed_comm_ns, whole)
    return [(f"  exposed{exposed:>7}  {100 * hidden:.0f}% is hidden", 0)]


def _why_nothing(found: Overview, width: int) -> list[Line]:
    reasons = [entry.reason for entry in found.missing if entry.kind == "kernels"]
    whys = [reason.partition(": ")[2] or reason for reason in reasons]
    return [[(part, MUTED)] for why in whys for part in wrapped(why, width)]


def _threads(host: HostTime | None, width: int, glyphs: Glyphs) -> list[Line]:
    """Threads by CPU time; those that only samples tell of are estimates."""
    if host is None or not host.threads:
        return []
    room = max(6, width - 34)
    lines: list[Line] = [[(f"{'thread':<15}     CPU      %", MUTED)]]
    for thread in host.threads:
        mark = "≈" if thread.witness is Witness.SAMPLED else ""
        figures = f"{mark + format_duration(thread.cpu_ns):>9} {format_share(thread.share, 1):>6}  "
        name = pad(cut(visible(thread.name), 15), 15)
        lines.append([(name + figures, 0), *bar(thread.share, room, None, glyphs)])
    return lines


def per_gpu(devices: Sequence[DeviceSplit]) -> list[Line]:
    """One line per GPU under a heading; shares of the same base as the headline.

    ``wait`` is communication that waits for other ranks, where that is known.
    """
    if len(devices) < 2:
        return []
    waits = any(split.comm_waiting_ns is not None for split in devices)
    heading = "per GPU  % busy  comp  comm   mem" + "  wait" * waits
    lines: list[Line] = [[("", 0)], [(heading, BOLD)]]
    for split in devices:
        parts = [split.busy_ns, split.compute_ns, split.comm_ns, split.memory_ns]
        figures = "".join(f"{_percent(ns, split.base_ns):>6}" for ns in parts)
        if split.comm_waiting_ns is not None:
            figures += f"{_percent(split.comm_waiting_ns, split.base_ns):>6}"
        lines.append([(f"{split.device.label:<9}{figures}", 0)])
    return lines


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}" if whole else "-"


def top_list(
    found: Overview, kind: str, glyphs: Glyphs, width: int
) -> tuple[list[Line], list[Chosen | None]]:
    """Kernels or ranges with their shares, or why there are none; and what each line stands for.

    Without GPU work OS runtime calls stand in the place of kernels.
    """
    if kind == "kernel" and found.calls:
        lines, _ = top_names(found.calls, "call", "OS runtime call", glyphs, width)
        return lines, [None] * len(lines)
    names = found.kernels if kind == "kernel" else found.ranges
    if names:
        what = "kernel" if kind == "kernel" else "range (host time)"
        return top_names(names, kind, what, glyphs, width)
    lacking = {"kernel": Capability.KERNELS, "range": Capability.NVTX}[kind]
    reasons = [entry.reason for entry in found.missing if entry.kind == lacking]
    text = reasons[0] if reasons else f"no {lacking} in this report"
    return [[(f" {text}", MUTED)]], [None]


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
    head = f" {OF[kind]:>15}    total      n{'      avg' * average}  {what}"
    lines: list[Line] = [[(head, MUTED)]]
    room = max(8, width - len(head) + len(what))
    texts = told_apart([visible(entry.name) for entry in names], room)
    choices: list[Chosen | None] = [None]
    top = names[0].share if names else 1.0
    for entry, text in zip(names, texts, strict=True):
        mean = "-" if entry.mean_ns is None else format_duration(entry.mean_ns)
        scaled = round(NAME_BAR * entry.share / top) if top else 0
        share, total = format_share(entry.share, 1), format_duration(entry.total_ns)
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
    findings: Sequence[Finding], width: int, place: Callable[[Finding], str]
) -> list[Line]:
    """Two lines per finding: what is wrong; with room, where it shows and what to do about it.

    Args:
        findings: gravest first.
        width: cells per line.
        place: says where a finding shows best.
    """
    lines: list[Line] = []
    for entry in findings:
        sign = "!" if entry.severity.letter == "H" else " "
        first, *rest = wrapped(visible(entry.title), width - 3)
        weight = BOLD if sign == "!" else 0
        lines.append([(f"{sign}{entry.severity.letter} ", weight), (first, weight)])
        if rest or width < ADVISED:
            lines.append([("   ", 0), (cut(" ".join(rest), width - 3), weight)])
        else:
            where = f"   {place(entry)} [{entry.screen}]  "
            advice = cut(visible(entry.advice), width - cell_len(where))
            lines.append([(where, MUTED), (advice, 0)])
    return lines


def unseen_line(unseen: Sequence[NotLookedAt], width: int) -> list[Line]:
    """One line of what no rule could look at; nothing where all was."""
    if not unseen:
        return []
    what = "; ".join(one.what for one in unseen)
    return [[("?  ", BOLD), (cut(f"not looked at: {what}", width - 3), MUTED)]]


def unseen_detail(unseen: Sequence[NotLookedAt], width: int) -> list[Line]:
    """What no rule could look at, and what would record it."""
    texts = (f"{one.what}: {one.reason}" for one in unseen)
    return [[(part, 0)] for text in texts for part in wrapped(text, width)]


def finding_detail(entry: Finding, width: int) -> list[Line]:
    """A finding in full: what is wrong, and what to do."""
    return [[(part, 0)] for text in (entry.title, entry.advice) for part in wrapped(text, width)]


def report_facts(found: Overview, width: int, gpus: str) -> list[Line]:
    """What was captured, where and with what; what nsys said; what is missing and why."""
    meta = found.metadata
    lines: list[Line] = []
    for label, text in _facts(meta, found, gpus):
        first, *rest = wrapped(text, width - 10) or [""]
        lines.append([(f"{label:<10}", MUTED), (first, 0)])
        lines += [[(" " * 10 + part, 0)] for part in rest]
    for message in found.messages:
        sign = "!" if message.serious else " "
        lines += _listed(f"{sign} {message.first.severity}: ", message.text, width)
    for entry in found.missing:
        lines += _listed("- ", entry.reason, width)
    for note in found.notes:
        lines += _listed("* ", note, width)
    return lines


def _facts(meta: Metadata, found: Overview, gpus: str) -> list[tuple[str, str]]:
    lo, hi = found.base
    session = format_duration(meta.session_duration_ns) if meta.session_duration_ns else "unknown"
    work = f", GPU work {format_duration(hi - lo)}" if hi > lo else ""
    versions = [f"nsys {meta.product_version}" if meta.product_version else "nsys unknown"]
    versions += [f"driver {meta.driver}"] if meta.driver else []
    facts = [
        ("command", " ".join(meta.command)),
        ("host", meta.machine),
        ("GPUs", gpus),
        ("captured", _utc(meta.session_start_utc_ns)),
        ("duration", session + work),
        *([("recorded", ", ".join(found.host.recorded))] if found.host is not None else []),
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
