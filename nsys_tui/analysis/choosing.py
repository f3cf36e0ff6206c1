"""From the numbers that people know GPUs, processes and streams by to the part of a report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from nsys_tui.analysis.window import Scope
from nsys_tui.model.target import pid_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from nsys_tui.model.report import Report

_LISTED: Final = 20


class Lacking(NamedTuple):
    """Numbers of one kind that a report does not have."""

    text: str
    """Names the first of them."""
    hint: str
    """Lists what the report has."""
    all: bool
    """Whether the report has none of those that were asked for."""


@dataclass(frozen=True)
class Choice:
    """Numbers of processes, GPUs and streams; None for all of a kind."""

    processes: tuple[int, ...] | None = None
    """Process ids."""
    devices: tuple[int, ...] | None = None
    """GPU numbers as the overview shows them; else CUDA ordinals, the ``id`` of its JSON."""
    streams: tuple[int, ...] | None = None
    """CUDA stream ids."""

    def scope(self, report: Report, window: tuple[int, int] | None = None) -> Scope:
        """The part of a report that the numbers and a window [start, end) in ns name."""
        places = (place for n in self.devices or () for place in _places_of(report, n))
        return Scope(
            window=window,
            devices=None if self.devices is None else frozenset(places),
            processes=None if self.processes is None else frozenset(self.processes),
            streams=None if self.streams is None else frozenset(self.streams),
        )

    def lacking(self, report: Report) -> Iterator[Lacking]:
        """The kinds of which a report does not have all numbers."""
        numbers = {n for device in report.devices for n in (device.number, device.id)}
        yield from _lacking("GPU", self.devices, {n for n in numbers if n is not None})
        if self.processes:
            yield from _lacking("process", self.processes, _processes(report, self.processes))
        yield from _lacking("stream", self.streams, {stream.id for stream in report.streams})


def _places_of(report: Report, number: int) -> list[int]:
    """Places of the GPUs of a number; where none has it, of those whose CUDA ordinal it is."""
    devices = [*enumerate(report.devices)]
    by_number = [place for place, device in devices if device.number == number]
    return by_number or [place for place, device in devices if device.id == number]


def _lacking(kind: str, asked: Collection[int] | None, there: set[int]) -> Iterator[Lacking]:
    missing = [value for value in asked or () if value not in there]
    if missing:
        listed = ", ".join(map(str, sorted(there)[:_LISTED])) or "none"
        text = f"no {kind} {missing[0]} in this report"
        yield Lacking(text, f"it has {listed}", there.isdisjoint(asked or ()))


def _processes(report: Report, asked: Collection[int]) -> set[int]:
    """Process ids of the GPU work and its calls, and of other host events if those do not do."""
    found = {pid_of(pid) for pid in report.operations.processes.tolist()}
    for events in ("api", "ranges", "osrt"):
        if found.issuperset(asked):
            break
        found.update(pid_of(pid) for pid in getattr(report, events).thread_process.tolist())
    return found
