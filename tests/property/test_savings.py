"""What findings say could be saved, against the same program run without the cause.

A machine plays random loops of launches, waits, copies, reads and allocations. Played again
without what a finding is about, a loop tells by how much the run gets shorter.
"""

from __future__ import annotations

import random
from collections import defaultdict
from statistics import median
from typing import TYPE_CHECKING, Final, NamedTuple

from machine import FULL, US, Machine

from nsys_tui.analysis.rules.case import Case
from nsys_tui.analysis.rules.finding import Severity
from nsys_tui.analysis.rules.ranking import find_in
from nsys_tui.reader import open_report

if TYPE_CHECKING:
    from collections.abc import Container, Sequence
    from pathlib import Path

CAUSES: Final = {
    "exposed_copies": "copy",
    "frequent_allocation": "allocation",
    "gpu_idle": "read",
    "memsets": "memset",
    "migrations_in_kernels": "pages",
    "small_copies": "small copy",
    "small_grids": "small grid",
}
"""What each rule would have gone."""
WHOLLY: Final = ("frequent_allocation", "gpu_idle", "memsets", "small_grids")
"""Rules whose cause goes wholly: copies still take what the bus needs."""
RATE: Final = 8
"""GB/s."""
PROGRAMS: Final = 90
LEAST: Final = 4
"""Findings of each rule that the programs have to lead to."""


class Action(NamedTuple):
    """What each step of a loop does some times: for so long, or with so many bytes or blocks."""

    cause: str
    ns: int = 0
    size: int = 0
    times: int = 1
    memory: str = "pinned"
    frees: bool = False


class Player(Machine):
    """A machine on which some causes take no time."""

    def __init__(self, path: Path, without: Container[str] = ()) -> None:
        super().__init__(path)
        self.without = without
        self.free[0, 7] = 0

    def loop(self, actions: Sequence[Action], steps: int) -> int:
        """Plays some steps; how long they take to the end of the GPU's last work."""
        for _ in range(steps):
            for place, action in enumerate(actions):
                for number in range(action.times):
                    self.play(action, f"{action.cause} {place} {number}")
        return max(self.free.values())

    def play(self, action: Action, name: str) -> None:
        """Does what an action says once."""
        left_out = action.cause in self.without
        if action.cause == "small grid" and left_out:
            self.launch(name, action.ns * action.size // 108)
        elif action.cause == "pages":
            self.faults(name, action.size, 0 if left_out else action.ns)
        elif left_out:
            return
        elif action.cause == "small grid":
            self.launch(name, action.ns, grid=(action.size, 1, 1))
        elif action.cause == "kernel":
            self.launch(name, action.ns, grid=FULL)
        elif action.cause == "memset":
            self.clear(action.ns)
        elif action.cause == "wait":
            self.wait()
        elif action.cause == "read":
            self.off("read", action.ns)
        elif action.frees:
            work = max(self.free.values()) - self.now
            self.call("cudaFree_v3020", max(work, 0) + action.ns)
        elif action.cause == "allocation":
            self.call("cudaMalloc_v3020", action.ns)
        elif action.memory == "queued":
            self.upload(action.size // RATE)
        else:
            kind = "DtoH" if action.cause == "small copy" else "HtoD"
            self.copy(action.size, RATE, kind, action.memory)


def program(draw: random.Random) -> list[Action]:
    """A loop of a few actions, of which at least one is work."""

    def action(cause: str) -> Action:
        if cause == "kernel":
            ns = draw.choice([3, 8, 30, 100, 300, 1000])
            return Action(cause, ns * US, times=draw.randint(1, 4))
        if cause == "small grid":
            return Action(cause, draw.choice([50, 200, 800]) * US, draw.choice([1, 8, 30]))
        if cause == "read":
            return Action(cause, draw.choice([30, 100, 400, 1500]) * US)
        if cause == "allocation":
            return Action(cause, draw.choice([20, 80, 200]) * US, times=draw.randint(1, 3))
        if cause == "small copy":
            return Action(cause, size=draw.choice([4, 4096]), times=draw.randint(1, 3))
        if cause in ("memset", "pages"):
            return Action(cause, draw.choice([50, 200, 800]) * US, draw.choice([50, 200]) * US)
        size = draw.choice([200_000, 2_000_000])
        memory = draw.choice(["pinned", "pageable", "queued"])
        return Action(cause, size=size, memory=memory)

    causes = draw.choices(["kernel", "kernel", "wait", *CAUSES.values()], k=draw.randint(1, 5))
    actions = [action("kernel"), *map(action, causes)]
    draw.shuffle(actions)
    frees = [one._replace(frees=True) for one in actions if one.cause == "allocation"]
    return [*actions, *frees]


def test_no_more_is_told_than_the_run_is_shorter_without_the_cause(tmp_path: Path) -> None:
    """At most what goes, and mostly nearly all of it where the cause goes wholly.

    Waits of a host right after a copy go with it: alone it would only move there.
    """
    told = defaultdict[str, list[float]](list)
    for seed in range(PROGRAMS):
        draw = random.Random(seed)
        actions, steps = program(draw), draw.randint(20, 60)
        player = Player(tmp_path / f"{seed}.sqlite")
        whole = player.loop(actions, steps)
        for finding in find_in(Case(open_report(player.report.write(), use_cache=False))):
            cause = CAUSES.get(finding.rule, "")
            is_of = finding.rule != "gpu_idle" or cause in finding.subject
            if not cause or not is_of or not finding.saved_ns or finding.same_as:
                continue
            gone = {cause, "wait"} if cause.endswith("copy") else {cause}
            saved = whole - Player(tmp_path / "unwritten", gone).loop(actions, steps)
            assert finding.saved_ns <= 1.15 * saved + whole / 100, (seed, finding.title, saved)
            if finding.severity is not Severity.LOW:
                told[finding.rule].append(finding.saved_ns / saved)
    assert {rule for rule, parts in told.items() if len(parts) >= LEAST} == {*CAUSES}
    for rule in WHOLLY:
        assert median(told[rule]) > 0.9, (rule, sorted(told[rule]))
