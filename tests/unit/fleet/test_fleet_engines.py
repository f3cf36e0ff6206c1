"""The same reports through every engine, from the cache, after an interruption: one result."""

from __future__ import annotations

import builtins
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from unit.fleet.fleet_reports import US, Run

from nsys_tui.errors import CancelledError, UsageError
from nsys_tui.fleet import cluster, engine, loading, summary_parts
from nsys_tui.fleet.loading import run_fleet
from nsys_tui.fleet.mapping import Opening, Task, map_report
from nsys_tui.fleet.summary import Failure, Options, ReportSummary
from nsys_tui.fleet.table_parts import Ask
from nsys_tui.fleet.tables import SECTIONS
from nsys_tui.model.packed import pack

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from nsys_tui.fleet.fleet import Fleet

EVERYTHING = Options(pace="gemm", families=("kernels", "copies", "ranges", "api", "osrt", "mpi"))
UNCACHED = Opening(use_cache=False)


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    run = Run(ranks=4, slow={(2, 1): 150 * US}, begun={1: 200 * US})
    return run.write(tmp_path_factory.mktemp("ranks"))


def figures(fleet: Fleet) -> dict[str, list[tuple[Any, ...]]]:
    """Everything that a fleet says."""
    return {name: make(fleet, Ask(by_rank=True)).rows() for name, make in SECTIONS.items()}


def same(first: ReportSummary, second: ReportSummary) -> None:
    arrays, meta = pack(first)
    others, other_meta = pack(second)
    assert meta == other_meta
    assert arrays.keys() == others.keys()
    for name, array in arrays.items():
        assert array.dtype == others[name].dtype, name
        assert np.array_equal(array, others[name], equal_nan=array.dtype.kind == "f"), name


def test_two_processes_give_what_one_gives(paths: list[Path]) -> None:
    alone = run_fleet(paths, EVERYTHING, opening=UNCACHED)
    together = run_fleet(paths, EVERYTHING, opening=UNCACHED, workers=2)
    assert figures(alone) == figures(together)
    assert len(figures(alone)["calls"]) == 5


def test_without_dask_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.partition(".")[0] in ("dask", "distributed"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(UsageError) as caught:
        cluster.dask_cluster("tcp://nowhere:8786")
    assert "'dask[distributed]>=" in caught.value.hint


def test_a_summary_survives_the_cache_bit_by_bit(paths: list[Path]) -> None:
    fresh = map_report(str(paths[0]), EVERYTHING, UNCACHED)
    assert isinstance(fresh, ReportSummary)
    loading.keep(paths[0], fresh, EVERYTHING)
    kept = loading.kept(paths[0], EVERYTHING)
    assert kept is not None
    same(fresh, kept)
    assert kept.processes[0].steps.labels == tuple(f"train step {n}" for n in range(5))
    assert loading.kept(paths[0], Options()) is None, "other options, another summary"
    assert loading.kept(paths[1], EVERYTHING) is None
    log = paths[0].with_name(paths[0].name + "-wal")
    log.write_bytes(b"what a writer has not put into the file yet")
    try:
        assert loading.kept(paths[0], EVERYTHING) is None
    finally:
        log.unlink()


def test_an_interrupted_run_goes_on_where_it_stopped(
    paths: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    def counting(path: str, options: Options, opening: Opening) -> ReportSummary | Failure:
        read.append(path)
        return map_report(path, options, opening)

    monkeypatch.setattr(engine, "map_report", counting)

    def stop_after_two(path: str, result: object, done: int, total: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_fleet(paths, told=stop_after_two)
    assert len(read) == 2
    resumed = run_fleet(paths)
    assert len(read) == 4, "only the other two were read"
    assert figures(resumed) == figures(run_fleet(paths, opening=UNCACHED))


def test_a_report_under_another_name_tells_its_rank_by_that(tmp_path: Path) -> None:
    paths = [tmp_path / f"profile_rank_{rank}.sqlite" for rank in (4, 7)]
    for path in paths:
        Run().write_rank(path, 0, variable="")
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert [[m.rank for m in run_fleet([path]).members] for path in paths] == [[4], [7]]
    assert [m.rank for m in run_fleet([paths[1].rename(tmp_path / "rank_2.sqlite")]).members] == [2]


def test_a_run_that_was_killed_goes_on_where_it_stopped(paths: list[Path]) -> None:
    code = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from nsys_tui.fleet.loading import run_fleet\n"
        "def told(path, result, done, total):\n"
        "    if done == 2:\n"
        "        os.kill(os.getpid(), 9)\n"
        "run_fleet([Path(path) for path in sys.argv[1:]], told=told)\n"
    )
    names = [str(path) for path in paths]
    ended = subprocess.run([sys.executable, "-c", code, *names], check=False)
    assert ended.returncode == -9
    assert sum(loading.kept(path, Options()) is not None for path in paths) == 2
    resumed = run_fleet(paths)
    assert figures(resumed) == figures(run_fleet(paths, opening=UNCACHED))


def test_a_pool_that_nobody_wants_any_more_is_left_at_once(
    paths: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "PULSE", 0.0)
    heard = []

    def stop(done: int, total: int) -> None:
        heard.append((done, total))
        raise CancelledError("cancelled")

    with pytest.raises(CancelledError):
        run_fleet(paths, opening=UNCACHED, workers=2, alive=stop)
    assert heard == [(0, 4)]


def test_a_damaged_summary_is_made_again(paths: list[Path], own_folders: Path) -> None:
    expected = figures(run_fleet(paths[:1]))
    stored = list((own_folders / "cache").rglob("summary-*"))
    assert len(stored) == 1
    stored[0].write_bytes(stored[0].read_bytes()[:200])
    assert figures(run_fleet(paths[:1])) == expected


def test_without_the_cache_nothing_is_kept(paths: list[Path], own_folders: Path) -> None:
    run_fleet(paths, opening=UNCACHED)
    assert not list((own_folders / "cache").rglob("*.columns"))


def test_an_unexpected_fault_is_a_failure_of_that_report(
    paths: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fault(report: object, *_: object) -> None:
        raise ZeroDivisionError("planted")

    monkeypatch.setattr(summary_parts, "collectives", fault)
    found = map_report(str(paths[0]), Options(), UNCACHED)
    assert isinstance(found, Failure)
    assert "ZeroDivisionError: planted" in found.reason


def _die_on_rank_2(path: str, options: Options, opening: Opening) -> ReportSummary | Failure:
    if path.endswith("report_2.sqlite"):
        os._exit(9)
    return map_report(path, options, opening)


def test_a_report_that_kills_its_worker_is_skipped_alone(
    paths: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "map_report", _die_on_rank_2)
    fleet = run_fleet(paths, opening=UNCACHED, workers=2)
    assert [m.rank for m in fleet.members] == [0, 1, 3]
    assert [(f.path, f.reason) for f in fleet.failures] == [(str(paths[2]), engine._DIED)]


def test_workers_start_where_stderr_is_no_file(paths: list[Path]) -> None:
    code = (
        "import io, sys\n"
        "from nsys_tui.fleet.engine import local_pool\n"
        "from nsys_tui.fleet.mapping import Opening, Task\n"
        "from nsys_tui.fleet.summary import Options\n"
        "class Screen(io.StringIO):\n"
        "    def fileno(self):\n"
        "        return -1\n"
        "sys.stderr = Screen()\n"
        "tasks = [Task(path, Options()) for path in sys.argv[1:]]\n"
        "found = [*filter(None, local_pool(2)(tasks, Opening(use_cache=False)))]\n"
        "print(sorted(type(result).__name__ for _, result in found))\n"
    )
    command = [sys.executable, "-c", code, *map(str, paths[:2])]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == "['ReportSummary', 'ReportSummary']\n", done.stderr


def test_workers_end_when_their_parent_is_killed() -> None:
    code = (
        "import os, sys, time\n"
        "from concurrent.futures import ProcessPoolExecutor\n"
        "import multiprocessing\n"
        "from nsys_tui.fleet.engine import _leave_with_parent\n"
        "if __name__ == '__main__':\n"
        "    context = multiprocessing.get_context('spawn')\n"
        "    pool = ProcessPoolExecutor(1, context, _leave_with_parent)\n"
        "    print(pool.submit(os.getpid).result(), flush=True)\n"
        "    os._exit(0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    worker = int(done.stdout)
    while _runs(worker):
        time.sleep(0.1)


def _runs(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_the_largest_reports_are_read_first(tmp_path: Path) -> None:
    sizes = {"a.sqlite": 10, "b.sqlite": 300, "c.sqlite": 20}
    for name, size in sizes.items():
        (tmp_path / name).write_bytes(b"x" * size)
    asked: list[str] = []

    def recording(given: Sequence[Task], opening: Opening) -> Iterator[engine.Done]:
        asked.extend(task.path for task in given)
        yield from engine.here(given, opening)

    with pytest.raises(Exception, match="none of the reports can be read"):
        run_fleet([tmp_path / name for name in sizes], engine=recording)
    assert [path.rpartition("/")[2] for path in asked] == ["b.sqlite", "c.sqlite", "a.sqlite"]
