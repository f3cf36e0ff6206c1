"""Gates: limits on rows of a comparison, such as ``kernel:gemm.*:5%`` or ``exposed:+10ms``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from nsys_tui.analysis.compare.comparison import Comparison
from nsys_tui.analysis.compare.judgement import Gate, Outcome, percent
from nsys_tui.analysis.compare.rows import Row, RowJudge
from nsys_tui.analysis.compare.side import METRICS, SHARES, WHOLE
from nsys_tui.analysis.compare.stats import Rules, Verdict
from nsys_tui.analysis.compare.tails import TAILS
from nsys_tui.errors import UsageError
from nsys_tui.names import normalise_kernel
from nsys_tui.patterns import matching
from nsys_tui.redaction import redacted
from nsys_tui.units import parse_duration, parse_percent

_GROUPS: Final = {
    "kernel": "kernels",
    "copy": "copies",
    "range": "ranges",
    "phase": "ranges",
    "api": "api",
    "mpi": "mpi_calls",
    "os": "os_calls",
    "rank": "ranks",
    "stall": "stalls",
}
_FIGURES: Final = {key: key for key in METRICS} | {
    "step": "wall",
    "exposed": "exposed_comm",
}
KINDS: Final = (*_FIGURES, *_GROUPS)
_ORDER: Final = (Verdict.WORSE, Verdict.INCONCLUSIVE, Verdict.SAME, Verdict.BETTER, Verdict.UNKNOWN)
"""The verdict of several rows is the first of these that one of them has: what occurs too rarely to
be judged decides only where it is all there is."""


def parse_gate(text: str) -> Gate:
    """Reads ``3%``, ``step:3%``, ``kernel:REGEX:5%``, ``exposed:+10ms``.

    Raises:
        UsageError: it is none of these.
    """
    rest, _, limit = text.rpartition(":")
    kind, _, pattern = rest.partition(":")
    if not rest:
        return Gate(text, "", threshold=parse_percent(limit))
    if kind not in KINDS:
        raise UsageError(f"no such gate: {text!r}", hint=f"gates are {', '.join(KINDS)}")
    if bool(pattern) != (kind in _GROUPS):
        form = f"{kind}:REGEX:5%" if kind in _GROUPS else f"{kind}:5%"
        raise UsageError(f"not a gate: {text!r}", hint=f"write it as {form}")
    if pattern:
        matching(pattern, ())
    share = _FIGURES.get(kind) in SHARES
    if limit.strip().endswith("%"):
        part = parse_percent(limit.strip().removeprefix("+"))
        return Gate(text, kind, pattern, part, part * WHOLE if share else None)
    if share:
        raise UsageError(f"not a gate: {text!r}", hint=f"{kind} is a share: write it as {kind}:5%")
    duration = parse_duration(limit)
    if duration < 0:
        raise UsageError(f"not a gate: {text!r}", hint=f"write it as {kind}:+10ms")
    return Gate(text, kind, pattern, 0.0, float(duration))


def outcomes(comparison: Comparison, gates: Sequence[Gate]) -> tuple[Outcome, ...]:
    """What becomes of gates."""
    return tuple(_outcome(comparison, gate) for gate in gates)


def _outcome(comparison: Comparison, gate: Gate) -> Outcome:
    if not gate.kind or comparison.verdict is Verdict.UNKNOWN:
        return Outcome(gate, comparison.verdict, comparison.judgement.reason)
    rules = Rules(gate.threshold, comparison.noise, absolute=gate.absolute)
    judge, matched = RowJudge(comparison.a, comparison.b, rules), ""
    if gate.kind in _FIGURES:
        rows = [row for row in judge.summary() if row.key == _FIGURES[gate.kind]]
    else:
        rows, matched = _matched(comparison, gate, judge.group(_GROUPS[gate.kind]))
    if not rows:
        key = _FIGURES.get(gate.kind) or _GROUPS[gate.kind]
        why = "it matches nothing" if comparison.groups.get(key) else comparison.why_empty(key)
        few = f"too few steady steps: {TAILS[key]} needed" if key in TAILS else ""
        return Outcome(gate, Verdict.UNKNOWN, few or why)
    verdicts = [_row_verdict(row, rows, gate) for row in rows]
    verdict = next(each for each in _ORDER if each in verdicts)
    shown = tuple(row for row, each in zip(rows, verdicts, strict=True) if each is verdict)
    reason, rare = _reason(shown, len(rows)) + matched, verdicts.count(Verdict.UNKNOWN)
    if rare and verdict is not Verdict.UNKNOWN:
        reason = f"{reason}, {rare} of them too rare to be judged"
    return Outcome(gate, verdict, reason, shown)


def _matched(comparison: Comparison, gate: Gate, rows: Sequence[Row]) -> tuple[list[Row], str]:
    """The rows in whose names a gate's pattern occurs, and in which, where not in those shown.

    Full names hold the types of arguments too: they are searched where no other name fits. All
    are searched without their secrets, which answers to pattern after pattern would spell out.
    """
    full = [_full_names(comparison, row) if gate.kind == "kernel" else set() for row in rows]
    kinds = {
        "": [{row.name, row.key} for row in rows],
        "normalised": [set(map(normalise_kernel, names)) for names in full],
        "full": full,
    }
    found: dict[str, set[int]] = {}
    for kind, names in kinds.items():
        if kind != "full" or not any(found.values()):
            shown = [{*map(redacted, each)} for each in names]
            wanted = {*matching(gate.pattern, sorted({n for each in shown for n in each}))}
            found[kind] = {place for place, each in enumerate(shown) if each & wanted}
    places = sorted(set().union(*found.values()))
    others = [kind for kind in found if kind and found[kind] - found[""]]
    return [rows[place] for place in places], f", by {others[0]} names" if others else ""


def _full_names(comparison: Comparison, row: Row) -> set[str]:
    """Full names of the kernels of a row, as far as they are known."""
    return {
        full
        for side, chosen in zip((comparison.a, comparison.b), row.variants, strict=True)
        for key, variant in side.variants.get(row.key, {}).items()
        if chosen in (None, key)
        for full in variant.full
    }


def _row_verdict(row: Row, rows: Sequence[Row], gate: Gate) -> Verdict:
    """Of a name that is new or gone, what it does to the sum of the names.

    Where all are gone nothing is left to judge: their work may be done under other names.
    """
    if row.kind not in ("new", "gone"):
        return row.verdict
    if all(each.kind == "gone" for each in rows):
        return Verdict.UNKNOWN
    before, after = (sum(getattr(row, side) for row in rows) for side in ("a_total", "b_total"))
    room = gate.threshold * before if gate.absolute is None else gate.absolute
    return Verdict.WORSE if row.kind == "new" and after > before + room else Verdict.SAME


def _reason(shown: Sequence[Row], count: int) -> str:
    row = shown[0]
    text = {"new": "new", "gone": "gone in B"}.get(row.kind) or (
        f"{row.statistic} {percent(row.change)}"
    )
    more = f"; {len(shown)} of {count} rows" if count > 1 else ""
    return f"{row.name}: {text}{more}"
