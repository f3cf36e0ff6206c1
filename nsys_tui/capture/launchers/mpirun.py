"""Ranks that ``mpirun`` starts: an nsys in each, whose report carries the rank's number."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from nsys_tui.capture.launchers import Launcher, Target, register, words_field

_RANK: Final = "NSYS_TUI_RANK"
_NUMBERED: Final = (
    f"export {_RANK}=${{OMPI_COMM_WORLD_RANK:-${{PMI_RANK:-${{PMIX_RANK:-p$$}}}}}}"
    '; exec "$@"'
)  # fmt: skip
"""Each MPI has a variable of its own; nsys gives up on a name with one that is not set."""
_COUNT: Final = ("-n", "-np", "--n", "--np", "-c")


class Mpirun(Launcher):
    """nsys inside the ranks; ``mpirun`` inside nsys needs no launcher, and makes one report."""

    name = "mpirun"
    about = "nsys in each rank that mpirun starts"
    title = "mpirun"
    fields = (words_field("mpi.args", "mpirun", "-n 4 --hostfile hosts"),)
    tools = ("mpirun",)
    variable = _RANK
    rank_mark = f"%q{{{_RANK}}}"

    def processes(self, target: Target) -> int:
        """Ranks that the arguments ask for."""
        args = target.own["mpi.args"]
        counts = [after for word, after in pairwise(args) if word in _COUNT]
        return int(counts[-1]) if counts and counts[-1].isdigit() else 1

    def command(self, target: Target, capture: str, argv: Sequence[str]) -> list[str]:
        """Each rank learns its number under one name, and becomes nsys."""
        return ["mpirun", *target.own["mpi.args"], "sh", "-c", _NUMBERED, "sh", *argv]

    def typed(self, target: Target, argv: Sequence[str], env: Sequence[str], cwd: str) -> list[str]:
        """As it is started."""
        return super().typed(target, self.command(target, "", argv), env, cwd)


register(Mpirun())
