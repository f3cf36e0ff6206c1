"""Lines of MLPerf's logging library: how long epochs, blocks and evaluations took, and its rates.

A line is ``:::MLLOG`` and a JSON object. Intervals are told by a key for their start and one for
their end; steps are not. What ``throughput`` counts differs from benchmark to benchmark, and no
line says it: samples per second are told by the samples between the ends of an interval alone.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final

from nsys_tui.logs.figures import exact, spread_of
from nsys_tui.logs.trainers.step_lines import RunTotal

WORDS: Final = (b":::MLLOG ",)


@dataclass
class MlperfLines:
    """Gathers a file's lines."""

    file: int
    _first: int = 0
    _begun: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The last start of each kind of interval."""
    _figures: dict[str, list[Fraction]] = field(default_factory=dict)
    """What was told, by its name."""

    def add(self, text: bytes, line: int) -> bool:
        """Takes a line in if it is one of them; returns whether it is."""
        _, word, rest = text.partition(WORDS[0])
        try:
            told = json.loads(rest) if word else None
        except (ValueError, RecursionError):
            return False
        if not isinstance(told, dict) or not isinstance(key := told.get("key"), str):
            return False
        self._first = self._first or line
        if key.endswith("_start"):
            self._begun[key.removesuffix("_start")] = told
        elif key.endswith(("_stop", "_end")):
            name = key.rpartition("_")[0]
            if (begun := self._begun.pop(name, None)) is not None:
                self._interval(name, begun, told)
        elif key == "tracked_stats" and isinstance(stats := told.get("value"), dict):
            for name, value in stats.items():
                self._put(f"{name} (no unit told)", exact(value))
        return True

    def _interval(self, name: str, begun: dict[str, Any], ended: dict[str, Any]) -> None:
        start, stop = exact(begun.get("time_ms")), exact(ended.get("time_ms"))
        if start is None or stop is None or stop < start:
            return
        took = (stop - start) / 1000
        self._put(f"{name} s", took)
        before, after = (_samples(one) for one in (begun, ended))
        if before is not None and after is not None and after > before and took:
            self._put(f"{name} samples/s", (after - before) / took)

    def _put(self, name: str, value: Fraction | None) -> None:
        if value is not None:
            self._figures.setdefault(name, []).append(value)

    def totals(self) -> list[RunTotal]:
        """All that was told of the run: single figures, of several the median and their number."""
        values = []
        for name, figures in self._figures.items():
            spread = spread_of(figures)
            if spread is not None:
                many = f"median of {spread.count:,}: " if spread.count > 1 else ""
                values.append((name, f"{many}{float(spread.median):.6g}"))
        return [RunTotal("mlperf", self.file, self._first, tuple(values))] * bool(values)


def _samples(told: dict[str, Any]) -> Fraction | None:
    metadata = told.get("metadata")
    return exact(metadata.get("samples_count")) if isinstance(metadata, dict) else None
