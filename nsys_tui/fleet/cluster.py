"""A Dask cluster as an engine: its workers read the reports that they find.

A worker that does not find a file hands the report to the others; what none of them finds is read
here. A worker that falls silent loses its reports to the others.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pydoc import locate
from typing import Any, Final, NamedTuple

from nsys_tui.errors import NsysTuiError, UsageError
from nsys_tui.extras import adding
from nsys_tui.fleet.engine import PULSE, Done, Engine, Result, default_workers, here, local_pool
from nsys_tui.fleet.files import find_reports
from nsys_tui.fleet.fleet import listed
from nsys_tui.fleet.mapping import Opening, Task, map_report
from nsys_tui.fleet.summary import Failure, Options

PATIENCE: Final = 2.0
"""Seconds that a scheduler may take to answer."""
PATIENCE_FOR_WORKERS = "120s"
"""How long it may take until it has a worker: batch systems start them late."""
VERSIONS_WITHIN: Final = 3.0
"""Seconds that all workers may take to tell their version."""
RESULT_WITHIN: Final = 5.0
"""Seconds that a result that is there may take to come."""
DISKS_WITHIN: Final = 60.0
"""Seconds that all workers may take to tell what is on their disks."""
SILENCE = 20.0
"""Seconds without a sign of life after which a worker is taken for dead."""
LOOK = 2.0
"""Seconds between two looks at the workers."""
VERSION_AT: Final = "nsys_tui.__version__"
VERSION: Final = str(locate(VERSION_AT))
_NAMED: Final = 3
"""Workers named in a sentence."""
_NONE_LEFT: Final = "no worker of the cluster is left"
_CUT: Final = "the scheduler of the cluster does not answer any more"
_log = logging.getLogger(__name__)


class _Unseen(NamedTuple):
    """What a worker answers that does not find a file."""

    worker: str


def _on_worker(path: str, options: Options, opening: Opening) -> Result | _Unseen:
    """Summarises a report on a worker of the cluster."""
    if not os.path.exists(path):
        from distributed import get_worker

        return _Unseen(get_worker().address)
    return map_report(path, options, opening)


def _found(names: Sequence[str]) -> tuple[str, list[str] | str]:
    """On a worker: its host, and the reports that names stand for there, or why there are none."""
    try:
        return socket.gethostname(), [str(path.absolute()) for path in find_reports(names)]
    except NsysTuiError as error:
        return socket.gethostname(), str(error)


@dataclass
class Cluster:
    """The workers of a Dask scheduler; they must have this version of the program."""

    address: str
    """Of the scheduler, such as ``tcp://node1:8786``."""
    security: Any = None
    """Its certificates, where it has some of this run."""
    _places: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Path and address of its node of each report that only one node has, by ``host:path``."""

    def __call__(self, tasks: Sequence[Task], opening: Opening) -> Iterator[Done]:
        """Maps reports; an ``Engine``.

        Raises:
            UsageError: there is no such scheduler, or no worker with this version.
        """
        with _connected(self.address, self.security) as client:
            yield from _Work(client, tasks, opening, self._places).results()

    def per_node(self, names: Sequence[str]) -> list[str]:
        """The reports on the disks of the nodes, as ``host:path``; each node then reads its own.

        Args:
            names: files and folders on each node.

        Raises:
            UsageError: as above, or no node has any.
        """
        places = [os.path.abspath(name) for name in names]
        with _connected(self.address, self.security) as client:
            try:
                answers = client.sync(client._run, _found, places, callback_timeout=DISKS_WITHIN)
            except TimeoutError as error:
                raise UsageError(
                    f"not all workers tell within {DISKS_WITHIN:.0f} s what is on their disks",
                    hint="the page of the scheduler shows which one hangs",
                ) from error
        by_host: dict[str, list[str]] = {}
        for worker, (host, _) in sorted(answers.items()):
            by_host.setdefault(host, []).append(worker)
        reasons = []
        for host, workers in by_host.items():
            told = [answers[worker][1] for worker in workers]
            paths = dict.fromkeys(path for seen in told if isinstance(seen, list) for path in seen)
            if not paths:
                reasons.append(f"{host}: {told[0]}")
            for path in paths:
                self._places[f"{host}:{path}"] = path, _node(workers[0])
        if not self._places:
            raise UsageError("no node has these reports", "; ".join(reasons))
        for reason in reasons:
            _log.warning("%s", reason)
        return list(self._places)


def _node(worker: str) -> str:
    """Address of a worker's node."""
    return worker.rpartition(":")[0]


def dask_cluster(address: str) -> Cluster:
    """The workers of a Dask scheduler.

    Raises:
        UsageError: dask is not installed.
    """
    try:
        import distributed  # noqa: F401
    except ImportError as error:
        raise UsageError(
            "--scheduler needs dask[distributed], which is not installed",
            hint=f"{adding('cluster')}; or --workers N",
        ) from error
    return Cluster(address)


@contextmanager
def _connected(address: str, security: Any) -> Iterator[Any]:
    """A client of a scheduler that has workers of this version.

    Raises:
        UsageError: there is none.
    """
    distributed: Any = importlib.import_module("distributed")
    for name in ("distributed", "distributed.client", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        kind = asyncio.run(asyncio.wait_for(_kind(address, security), PATIENCE))
    except MemoryError as error:  # its first bytes, read as a length
        raise UsageError(f"no Dask scheduler at {address}: something else answers") from error
    except Exception as error:  # of the address, the network, TLS, or what the other end sends
        reason = str(error).partition("\n")[0] or f"no answer within {PATIENCE} s"
        raise UsageError(f"no Dask scheduler at {address}: {reason}") from error
    if kind != "Scheduler":
        raise UsageError(f"no Dask scheduler at {address}: it is a {kind}")
    client = distributed.Client(address, security=security, set_as_default=False)
    try:
        try:
            if not client.scheduler_info()["workers"]:
                _log.warning("waiting for a worker of %s", address)
            client.wait_for_workers(1, timeout=PATIENCE_FOR_WORKERS)
            _check_versions(client)
        except (OSError, TimeoutError) as error:
            raise UsageError(
                f"the Dask scheduler at {address} has no workers",
                hint=f"start some with: dask worker {address}",
            ) from error
        yield client
    finally:
        with suppress(TimeoutError):
            client.close(PATIENCE)


async def _kind(address: str, security: Any) -> str:
    """What a server of Dask says it is; a client waits for others without end."""
    core: Any = importlib.import_module("distributed.core")
    safe = security or importlib.import_module("distributed").Security()
    how = safe.get_connection_args("client")
    comm = await core.connect(address, **how)
    try:
        return str((await core.send_recv(comm, op="identity", reply=True))["type"])
    finally:
        comm.abort()


def _check_versions(client: Any) -> None:
    """Sees that all workers have this version: with another one results would be others.

    Raises:
        UsageError: one has not.
    """
    try:  # one that hangs is noticed later
        answers = client.sync(
            client._run, locate, VERSION_AT, on_error="return", callback_timeout=VERSIONS_WITHIN
        )
    except TimeoutError:
        _log.warning("not all workers tell their version of nsys-tui")
        return
    others: dict[str, list[str]] = {}
    for worker, version in sorted(answers.items()):
        if version != VERSION and not isinstance(version, Exception):  # gone: noticed later
            text = f"nsys-tui {version}" if version else "no nsys-tui"
            others.setdefault(text, []).append(worker)
    if others:
        texts = [f"{text} on {listed(workers, _NAMED)}" for text, workers in others.items()]
        raise UsageError(
            f"workers have another version than nsys-tui {VERSION} here: {'; '.join(texts)}",
            hint=f"install nsys-tui {VERSION} there as it was installed here",
        )


class _Work:
    """Reports on their way through a cluster."""

    def __init__(
        self,
        client: Any,
        tasks: Sequence[Task],
        opening: Opening,
        places: dict[str, tuple[str, str]],
    ) -> None:
        self.client, self.opening, self.places = client, opening, places
        self.left = {task.path: task for task in tasks}
        self.waiting: dict[Any, tuple[str, set[str]]] = {}
        """Path of each future, and the workers that it may run on; none of them for any."""
        self.blind: dict[str, set[str]] = {}
        """Workers that do not find a report."""
        self.unseen: list[Task] = []
        self.signs: dict[str, tuple[float, float]] = {}
        """Last sign of life of each worker by the scheduler's clock, and when it was noticed."""
        self.looked = self.alone_since = time.monotonic()
        self.workers: dict[str, Any] | None = {}
        """As the scheduler knew them at the last look; None where it did not answer."""
        self.silent: set[str] = set()

    def results(self) -> Iterator[Done]:
        """Results as they come; None now and then while none comes."""
        self.workers = self._known_workers()
        for task in self.left.values():
            self._submit(task, self._having(task.path) if task.path in self.places else set())
        while self.left:
            for future in [future for future in self.waiting if future.done()]:
                path, _ = self.waiting[future]
                try:
                    result = self._answer(future, path) if path in self.left else None
                except TimeoutError:  # who has it hangs: told when that is noticed
                    break
                del self.waiting[future]
                if result is not None:
                    del self.left[path]
                    yield path, result
            if self.left:
                yield None
                time.sleep(PULSE)
                yield from self._look()
        if self.unseen:
            _log.warning(
                "no worker of the cluster finds %d of the reports: they are read here",
                len(self.unseen),
            )
            workers = min(default_workers(), len(self.unseen))
            engine: Engine = local_pool(workers) if workers > 1 else here
            yield from engine(self.unseen, self.opening)

    def _having(self, path: str) -> set[str]:
        """Workers that may find a report."""
        workers = set(self.workers or ()) - self.blind.get(path, set()) - self.silent
        if path not in self.places:
            return workers
        return {worker for worker in workers if _node(worker) == self.places[path][1]}

    def _submit(self, task: Task, workers: set[str]) -> None:
        path = self.places.get(task.path, (task.path, ""))[0]
        future = self.client.submit(
            _on_worker,
            path,
            task.options,
            self.opening,
            pure=False,
            workers=sorted(workers) or None,
        )
        self.waiting[future] = task.path, workers

    def _answer(self, future: Any, path: str) -> Result | None:
        """A result; None where another worker is asked, or the report is read here."""
        try:
            answer: Result | _Unseen = future.result(RESULT_WITHIN)
        except (NsysTuiError, TimeoutError):
            raise
        except Exception as error:
            if future.cancelled():
                return Failure(path, _CUT, lost=True)
            reason = f"the worker that read it failed: {type(error).__name__}: {error}"
            return Failure(path, reason, lost=True)
        if isinstance(answer, Failure):
            return replace(answer, path=path)
        if not isinstance(answer, _Unseen):
            return answer
        self.blind.setdefault(path, set()).add(answer.worker)
        others = self._having(path)
        if others:
            self._submit(self.left[path], others)
            return None
        if path not in self.places and os.access(path, os.R_OK):
            self.unseen.append(self.left.pop(path))
            return None
        return Failure(path, "no worker of the cluster finds it", lost=True)

    def _known_workers(self) -> dict[str, Any] | None:
        """The workers that the scheduler knows; None where it does not answer."""
        identity = self._asked(self.client.scheduler.identity, n_workers=-1)
        return None if identity is None else identity["workers"]

    def _asked(self, question: Any, **arguments: Any) -> Any:
        """The scheduler's answer; None where there is none in time."""
        try:
            return self.client.sync(question, callback_timeout=PATIENCE, **arguments)
        except (OSError, TimeoutError):
            return None

    def _look(self) -> Iterator[Done]:
        """Notices workers that died or fell silent; gives their reports to others."""
        now = time.monotonic()
        if now - self.looked < LOOK:
            return
        self.looked = now
        self.workers = self._known_workers()
        for worker, facts in (self.workers or {}).items():
            sign = float(facts.get("last_seen", 0.0))
            if self.signs.get(worker, (-1.0, now))[0] != sign:
                self.signs[worker] = sign, now
                self.alone_since = now
        if now - self.alone_since > SILENCE:
            yield from self._lost(list(self.left), _CUT if self.workers is None else _NONE_LEFT)
            return
        if self.workers is None:
            return
        silent = {worker for worker in self.workers if now - self.signs[worker][1] > SILENCE}
        fallen, self.silent = silent - self.silent, silent
        if fallen:
            _log.warning(
                "no sign of life from %s: others read its reports", listed(sorted(fallen), _NAMED)
            )
        yield from self._moved(set(self.workers) - silent, self._keys_of(silent))

    def _moved(self, alive: set[str], stuck: set[str]) -> Iterator[Done]:
        """Gives what lies with dead workers to others."""
        for future, (path, only) in list(self.waiting.items()):
            if path in self.left and (future.key in stuck or (only and not only & alive)):
                del self.waiting[future]
                others = self._having(path)
                if others:
                    self._submit(self.left[path], others)
                else:
                    yield from self._lost([path], _NONE_LEFT)

    def _lost(self, paths: list[str], reason: str) -> Iterator[Done]:
        for path in paths:
            del self.left[path]
            yield path, Failure(path, reason, lost=True)

    def _keys_of(self, workers: set[str]) -> set[str]:
        """What workers have, done and undone."""
        scheduler = self.client.scheduler
        questions = (scheduler.processing, scheduler.has_what) if workers else ()
        answers = [self._asked(question, workers=sorted(workers)) for question in questions]
        return {key for answer in answers for keys in (answer or {}).values() for key in keys}
