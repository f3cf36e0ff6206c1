"""A cluster whose workers die, fall silent, or see other files: every report is told of."""

from __future__ import annotations

import json
import os
import signal
import socketserver
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
from unit.fleet.fleet_reports import Run
from unit.fleet.test_fleet_engines import EVERYTHING, UNCACHED, figures

from nsys_tui import cli
from nsys_tui.errors import NoDataError, UsageError
from nsys_tui.fleet import cluster
from nsys_tui.fleet.files import find_reports
from nsys_tui.fleet.loading import run_fleet
from nsys_tui.fleet.mapping import Opening, Task
from nsys_tui.fleet.summary import Failure, Options

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

distributed = pytest.importorskip(
    "distributed", reason="needs dask: pip install 'nsys-terminal[cluster]'"
)


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return Run(ranks=4).write(tmp_path_factory.mktemp("ranks"))


@pytest.fixture
def threads() -> Iterator[Any]:
    """Two workers of this process: what is patched here is patched there."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None, protocol="tcp"
    ) as made:
        yield made


def test_a_cluster_of_two_workers_gives_what_is_computed_here(paths: list[Path]) -> None:
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as made:
        run = cluster.dask_cluster(made.scheduler_address)
        broken = paths[0].parent / "broken.sqlite"
        broken.write_text("no report")
        every = [*paths, broken]
        remote = run_fleet(every, EVERYTHING, opening=UNCACHED, engine=run)
        names = run.per_node([str(paths[0].parent)])
        assert {name.partition(":")[2] for name in names} == {str(path) for path in every}
        per_node = run_fleet(names, EVERYTHING, opening=UNCACHED, engine=run)
    local = run_fleet(every, EVERYTHING, opening=UNCACHED)
    assert figures(remote) == figures(local)
    assert [f.reason for f in remote.failures] == [f.reason for f in local.failures]
    assert [m.rank for m in per_node.members] == [0, 1, 2, 3]
    assert per_node.collectives.by_rank().waited.tolist() == (
        local.collectives.by_rank().waited.tolist()
    )


def blind(monkeypatch: pytest.MonkeyPatch, seeing: int) -> list[str]:
    """Lets only so many workers see the reports; tells who mapped."""
    real, mapped = os.path.exists, []

    def exists(path: Any) -> bool:
        try:
            worker = distributed.get_worker()
        except ValueError:
            return real(path)
        order = sorted(w.address for w in distributed.Worker._instances)
        if str(path).endswith(".sqlite") and worker.address not in order[:seeing]:
            return False
        mapped.append(worker.address)
        return real(path)

    monkeypatch.setattr(os.path, "exists", exists)
    return mapped


def test_what_one_worker_does_not_see_another_reads(
    threads: Any, paths: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    mapped = blind(monkeypatch, 1)
    run = cluster.dask_cluster(threads.scheduler_address)
    fleet = run_fleet(paths, opening=UNCACHED, engine=run)
    assert [m.rank for m in fleet.members] == [0, 1, 2, 3]
    assert len(set(mapped)) == 1


@pytest.mark.parametrize("blind_one", [0, 1])
def test_a_worker_that_sees_nothing_does_not_speak_for_its_node(
    threads: Any, paths: list[Path], monkeypatch: pytest.MonkeyPatch, blind_one: int
) -> None:
    asked = iter(range(2))

    def found(names: Sequence[str]) -> list[Path]:
        if next(asked) == blind_one:
            raise NoDataError("no report there")
        return find_reports(names)

    monkeypatch.setattr(cluster, "find_reports", found)
    run = cluster.dask_cluster(threads.scheduler_address)
    names = run.per_node([str(paths[0].parent)])
    assert {name.partition(":")[2] for name in names} >= {str(path) for path in paths}
    fleet = run_fleet(names, opening=UNCACHED, engine=run)
    assert [m.rank for m in fleet.members] == [0, 1, 2, 3]


def test_what_no_worker_sees_is_read_here(
    threads: Any, paths: list[Path], monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    mapped = blind(monkeypatch, 0)
    run = cluster.dask_cluster(threads.scheduler_address)
    fleet = run_fleet(paths, EVERYTHING, opening=UNCACHED, engine=run)
    assert mapped == []
    assert figures(fleet) == figures(run_fleet(paths, EVERYTHING, opening=UNCACHED))
    assert "finds 4 of the reports: they are read here" in caplog.text


def test_what_nobody_sees_fails_the_command(
    threads: Any, paths: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    gone = paths[0].with_name("gone.sqlite")
    names = [str(paths[0]), str(gone)]
    assert cli.main(["fleet", *names, "--scheduler", threads.scheduler_address]) == 65
    assert "gone.sqlite: no worker of the cluster finds it" in capsys.readouterr().err


def others_live(monkeypatch: pytest.MonkeyPatch, victim: str) -> None:
    """Workers but one give a sign of life at every look, however busy the machine is."""
    known = cluster._Work._known_workers

    def lively(work: cluster._Work) -> dict[str, Any] | None:
        workers = known(work)
        for worker in {*(workers or {})} - {victim}:
            (workers or {})[worker]["last_seen"] = time.monotonic()
        return workers

    monkeypatch.setattr(cluster._Work, "_known_workers", lively)


@pytest.mark.parametrize("how", [signal.SIGSTOP, signal.SIGKILL])
def test_reports_of_a_worker_that_is_gone_go_to_the_other(
    paths: list[Path], monkeypatch: pytest.MonkeyPatch, how: signal.Signals
) -> None:
    monkeypatch.setattr(cluster, "SILENCE", 3.0)
    monkeypatch.setattr(cluster, "LOOK", 0.2)
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as made:
        run = cluster.dask_cluster(made.scheduler_address)
        with distributed.Client(made) as client:
            worker, victim = min(client.run(os.getpid).items())
        others_live(monkeypatch, worker)
        os.kill(victim, how)
        try:
            fleet = run_fleet(paths, opening=UNCACHED, engine=run)
        finally:
            if how == signal.SIGSTOP:
                os.kill(victim, signal.SIGCONT)
    assert [m.rank for m in fleet.members] == [0, 1, 2, 3]


class Web(socketserver.BaseRequestHandler):
    """Answers what no scheduler would."""

    def handle(self) -> None:
        self.request.recv(64)
        self.request.sendall(b"HTTP/1.0 400 Bad Request\r\n\r\n")


def test_no_scheduler_is_said_in_one_line_at_once() -> None:
    with socketserver.TCPServer(("127.0.0.1", 0), Web) as web:
        threading.Thread(target=web.serve_forever, daemon=True).start()
        other = f"tcp://127.0.0.1:{web.server_address[1]}"
        for address in (
            "tcp://127.0.0.1:1",
            "nowhere",
            "foo://x:1",
            "tls://127.0.0.1:1",
            "",
            other,
        ):
            run = cluster.dask_cluster(address)
            with pytest.raises(UsageError, match=f"no Dask scheduler at {address}: .") as caught:
                list(run([Task("x", Options())], Opening()))
            assert "\n" not in str(caught.value)
        web.shutdown()
    assert cluster.PATIENCE < 3


def test_a_worker_is_no_scheduler(threads: Any) -> None:
    run = cluster.dask_cluster(next(iter(threads.scheduler_info["workers"])))
    with pytest.raises(UsageError, match="it is a Worker"):
        list(run([Task("x", Options())], Opening()))


@pytest.mark.parametrize("how", [signal.SIGSTOP, signal.SIGKILL])
def test_a_scheduler_that_is_gone_fails_what_was_not_read(
    paths: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: signal.Signals
) -> None:
    monkeypatch.setattr(cluster, "SILENCE", 1.0)
    monkeypatch.setattr(cluster, "LOOK", 0.1)
    monkeypatch.setattr(cluster, "RESULT_WITHIN", 1.0)
    monkeypatch.setattr(cluster, "PATIENCE", 1.5)
    known = tmp_path / "scheduler.json"
    server = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--no-dashboard", "--port=0"]
    server += ["--host=127.0.0.1", f"--scheduler-file={known}"]
    with subprocess.Popen(server, stderr=subprocess.DEVNULL) as scheduler:
        while not (known.exists() and known.read_text().strip().endswith("}")):
            time.sleep(0.1)
        worker = [sys.executable, "-m", "distributed.cli.dask_worker", "--no-dashboard"]
        worker += ["--no-nanny", f"--scheduler-file={known}"]
        with subprocess.Popen(worker, stderr=subprocess.DEVNULL) as reading:
            run = cluster.dask_cluster(json.loads(known.read_text())["address"])
            work = run([Task(str(path), Options()) for path in paths], Opening(use_cache=False))
            assert next(work) is None, "they are under way"
            os.kill(scheduler.pid, how)
            done = dict(found for found in work if found is not None)
            reading.kill()
        scheduler.kill()
    reasons = {found.reason for found in done.values() if isinstance(found, Failure)}
    assert reasons == {"the scheduler of the cluster does not answer any more"}


def test_a_scheduler_without_workers_is_not_waited_for_forever(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(cluster, "PATIENCE_FOR_WORKERS", "0.3s")
    with distributed.LocalCluster(n_workers=0, dashboard_address=None) as made:
        run = cluster.dask_cluster(made.scheduler_address)
        with pytest.raises(UsageError, match="has no workers"):
            list(run([Task("x", Options())], Opening()))
    assert f"waiting for a worker of {made.scheduler_address}" in caplog.text


def test_workers_of_another_version_are_named(
    threads: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "VERSION", "9.9")
    run = cluster.dask_cluster(threads.scheduler_address)
    with pytest.raises(UsageError, match=r"another version than nsys-tui 9\.9 here: nsys-tui 0"):
        list(run([Task("x", Options())], Opening()))


def test_per_node_needs_a_scheduler() -> None:
    assert cli.main(["fleet", "x", "--per-node"]) == 64
