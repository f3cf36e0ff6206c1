"""Planted hangs and sound logs through the verb: its exit status, and what it names.

Every fault in logs of one file a rank, in one file that all ranks write, where opCount stays 0, and
beside torn lines.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pytest
from loglines import body, info, init

from nsys_tui import cli

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

RANKS: Final = 4
OPS: Final = ("AllGather", "AllReduce", "ReduceScatter", "Broadcast")
Call: TypeAlias = dict[str, Any]
Edit: TypeAlias = "Callable[[int, int, Call], list[Call]]"
"""What a rank makes of its call of a number, from 0 to 23."""


def at(place: int, rank: int, **said: Any) -> Edit:
    """One call says something else."""
    return lambda n, r, call: [call | said if (n, r) == (place, rank) else call]


def without(rank: int, first: int, last: int = 99) -> Edit:
    """Calls that a rank never makes."""
    return lambda n, r, call: [] if r == rank and first <= n <= last else [call]


def swapped(n: int, rank: int, call: Call) -> list[Call]:
    """Calls 8 and 9 of rank 2 change places."""
    return [{"op": OPS[1 - (n - 8)]} if rank == 2 and n in (8, 9) else call]


FAULTS: Final[dict[str, tuple[Edit, str]]] = {
    "stops": (without(2, 17), "behind"),
    "lacks the last call": (without(1, 23), "behind"),
    "never calls": (without(3, 0), "behind"),
    "lacks a call": (without(1, 10, 10), "op"),
    "calls once more": (lambda n, r, call: [call] * (1 + ((n, r) == (10, 1))), "op"),
    "order": (swapped, "op"),
    "operation": (at(4, 1, op="AllReduce"), "op"),
    "size": (at(13, 2, count=7), "size"),
    "size of the last call": (at(23, 0, count=7), "size"),
    "type": (at(5, 3, datatype=6), "type"),
    "reduction": (at(5, 3, reduction=2), "reduction"),
    "root": (at(7, 0, root=1), "root"),
}
SOUND: Final[dict[str, Edit]] = {
    "sound": lambda n, r, call: [call],
    "all end early": lambda n, r, call: [call] if n < 20 else [],
}


def lines_of(edit: Edit, *, counted: bool) -> list[list[str]]:
    """The lines of each rank."""
    made = []
    for rank in range(RANKS):
        calls = [one for n in range(24) for one in edit(n, rank, {"op": OPS[n % 4]})]
        texts = [
            body(op_count=n * counted, comm=f"0x{rank}0", nranks=RANKS, **call)
            for n, call in enumerate(calls)
        ]
        made.append([info(text, pid=rank) for text in (init(f"0x{rank}0", rank, RANKS), *texts)])
    return made


def merged(ranks: list[list[str]], seed: int = 3) -> list[str]:
    """Lines of all ranks, each rank's in their order."""
    random_, left, made = random.Random(seed), [list(lines) for lines in ranks], []
    while any(left):
        made.append(random_.choice([lines for lines in left if lines]).pop(0))
    return made


def torn(lines: list[str], seed: int = 9) -> list[str]:
    """Now and then a rank's line runs into the next one."""
    random_, made = random.Random(seed), list[str]()
    for line in lines:
        if made and len(made[-1]) <= 60 and "opCount" not in made[-1]:
            made[-1] += line
        elif "opCount" in line and random_.random() < 0.04:
            made.append(line[: random_.randint(10, 30)])
        else:
            made.append(line)
    return made


WRITTEN: Final[dict[str, Callable[[Edit], list[list[str]]]]] = {
    "files": lambda edit: lines_of(edit, counted=True),
    "one file": lambda edit: [merged(lines_of(edit, counted=True))],
    "no counter": lambda edit: lines_of(edit, counted=False),
    "torn": lambda edit: [torn(merged(lines_of(edit, counted=True)))],
}


def status(folder: Path, logs: list[list[str]], end: str = "\n") -> int:
    paths = [folder / f"{number}.log" for number in range(len(logs))]
    for path, lines in zip(paths, logs, strict=True):
        path.write_text("\n".join(lines) + end)
    fail_on = ("--fail-on", "mismatch", "--fail-on", "behind")
    return cli.main(["logs", *map(str, paths), "--section", "hangs", *fail_on])


@pytest.mark.parametrize("written", [*WRITTEN][:3])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_fails_and_is_named(
    tmp_path: Path, fault: str, written: str, capsys: pytest.CaptureFixture[str]
) -> None:
    edit, word = FAULTS[fault]
    assert status(tmp_path, WRITTEN[written](edit)) == 1
    assert word in capsys.readouterr().out


@pytest.mark.parametrize("written", WRITTEN)
@pytest.mark.parametrize("name", SOUND)
def test_sound_logs_pass(tmp_path: Path, name: str, written: str) -> None:
    assert status(tmp_path, WRITTEN[written](SOUND[name])) == 0


@pytest.mark.parametrize("fault", ["stops", "size"])
def test_faults_beside_torn_lines_are_found(tmp_path: Path, fault: str) -> None:
    assert status(tmp_path, WRITTEN["torn"](FAULTS[fault][0])) == 1


def test_half_a_last_line_is_a_call_that_was_made(tmp_path: Path) -> None:
    logs = lines_of(SOUND["sound"], counted=True)
    logs[2][-1] = logs[2][-1][:-40]
    assert status(tmp_path, logs, end="") == 0
    logs[2][-2:] = [logs[2][-2][:-40]]
    assert status(tmp_path, logs, end="") == 1, "one more is lacking"
    logs[2][-1] = logs[1][-1]
    assert status(tmp_path, logs, end="") == 1
