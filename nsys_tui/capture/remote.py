"""A report on another machine by its name: ``gpu-box:runs/report7.nsys-rep``, ``ssh://gpu-box/…``.

The part before the colon is a target of the config, or whatever ssh understands. Files are kept by
content in the cache, so the same report is fetched once whatever it is called.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from nsys_tui.capture import bring_home, submit
from nsys_tui.capture.events import Progress, Remark
from nsys_tui.capture.failures import CaptureError
from nsys_tui.capture.job import Job
from nsys_tui.capture.launchers import Target
from nsys_tui.capture.output import KNOWN_ENDINGS, REPORT_ENDINGS
from nsys_tui.capture.plan import Plan
from nsys_tui.capture.quoting import printable
from nsys_tui.capture.record import Record, ReportFile, Store, new_id
from nsys_tui.capture.supervisor import last
from nsys_tui.capture.targets import check_host, find_target
from nsys_tui.capture.transport.askpass import PromptHandler
from nsys_tui.capture.transport.fetch import Fetch, RemoteFile, files_in
from nsys_tui.capture.transport.ssh import connector_for
from nsys_tui.config import Config, TargetConfig
from nsys_tui.errors import UsageError
from nsys_tui.writing import write_whole

_SCP: Final = re.compile(r"((?:[^/:\s\[]*@)?\[[^\]/]+\]|[^/:\s\[]{2,}):(.*)", re.DOTALL)


@dataclass(frozen=True)
class RemoteName:
    """A place on another machine; a path that ends in ``/`` or is empty means a folder.

    Attributes:
        host: a target of the config or a host for ssh.
        path: absolute, or relative to the home folder there.
        port: of an ``ssh://`` name; 0 = whatever ssh takes.
    """

    host: str
    path: str
    port: int = 0

    @property
    def is_folder(self) -> bool:
        """Whether the name asks for a list."""
        return not self.path or self.path.endswith("/")


@dataclass(frozen=True)
class Entry:
    """One line of a listing: a folder, or a report with its size and time."""

    name: str
    is_folder: bool
    size: int = 0
    mtime: int = 0


@dataclass(frozen=True)
class Listing:
    """Folders and reports of a folder over there; ``more`` when it was too long to list."""

    entries: tuple[Entry, ...]
    more: bool = False


def parse_remote(name: str) -> RemoteName | None:
    """Reads a remote name; ``None`` when it is a local path.

    A file of that very name on this machine wins, as does a drive letter.

    Raises:
        UsageError: an ``ssh://`` name without host, or a host that could be taken for an option.
    """
    if name.startswith("ssh://"):
        return _parse_url(name)
    match = _SCP.fullmatch(name)
    if match is None or Path(name).exists():
        return None
    host = match[1].replace("[", "").replace("]", "")  # scp's brackets mean nothing to ssh
    return RemoteName(check_host(host), match[2])


def _parse_url(name: str) -> RemoteName:
    try:
        parts = urlsplit(name)
        port = parts.port or 0
    except ValueError as error:
        raise UsageError(f"{name!r}: {error}", hint="write ssh://host/path") from error
    host = parts.netloc.removesuffix(f":{port}") if port else parts.netloc
    path = unquote(parts.path)
    return RemoteName(check_host(host), path[1:] if path.startswith("/~") else path, port)


class RemoteSource:
    """One line to a machine from which reports are listed and fetched.

    Args:
        host: of a :class:`RemoteName`.
        config: targets, ssh command, cache.
        on_prompt: answers ssh's questions.
        progress: told how far a fetch is.
    """

    def __init__(
        self,
        name: RemoteName,
        config: Config,
        on_prompt: PromptHandler | None = None,
        progress: Callable[[Progress | Remark], None] | None = None,
    ) -> None:
        target = _target(name, config)
        self._progress = progress or (lambda _: None)
        ssh = (*config.capture.ssh, *(("-p", str(name.port)) if name.port else ()))
        connector = connector_for(target, replace(config.capture, ssh=ssh), on_prompt)
        self._cache = _cache_folder(config)
        plan = Plan(target, ("true",))
        store = Store(self._cache / "jobs")
        record = Record(id=new_id(), plan={})
        here = config.nsys.path
        self._job = Job(record, plan, store, connector, config.capture, self._tell, nsys_here=here)
        self._host = f"{name.host}:{name.port}" if name.port else name.host

    def _tell(self, event: object) -> None:
        if isinstance(event, Progress | Remark):
            self._progress(event)

    async def list_folder(self, path: str = "") -> Listing:
        """Folders and reports of a folder over there, folders first, newest report first.

        Raises:
            CaptureError: no connection, or no such folder.
        """
        answers = await self._job.ask("list", PATHS=path.rstrip("/") or ("/" if path else ""))
        if last(answers, "dir") is None:
            raise CaptureError(f"{self._host}: no such folder: {printable(path)}")
        entries = [_entry(answer.value) for answer in answers if answer.key == "entry"]
        entries.sort(key=lambda entry: (not entry.is_folder, -entry.mtime, entry.name))
        more = any(answer.key == "more" for answer in answers)
        return Listing(tuple(entries), more)

    async def fetch(self, path: str, *, export: bool = True) -> Path:
        """Brings a report into the cache, unless it is there, and returns its local path.

        Args:
            path: as typed.
            export: have it exported over there as well, when that is where an nsys is.

        Raises:
            CaptureError: no connection, no such file, no room, or it arrives altered twice.
        """
        if not path.endswith(KNOWN_ENDINGS):
            raise UsageError(
                f"{self._host}:{path} is no report", "", "reports end in .nsys-rep or .sqlite"
            )
        answers = await self._job.ask("where", PATHS=path)
        if not (files := files_in(answers)):
            raise CaptureError(
                f"{self._host}: no such file: {printable(path)}",
                hint=f"nsys-tui {self._host}:{path.rpartition('/')[0]}/ lists that folder",
            )
        (file,) = files
        self._job.link.patient = True
        local = self._known(file) or await self._fetch(file)
        sqlite = local.with_suffix(".sqlite")
        if export and local.name.endswith(REPORT_ENDINGS) and not sqlite.exists():
            await self._export(file, sqlite)
        return local

    async def _fetch(self, file: RemoteFile) -> Path:
        name = bring_home.safe_name(file.path)
        folder = self._cache / ("new-" + hashlib.sha256(file.path.encode()).hexdigest()[:16])
        target = folder / name
        digest = await Fetch(self._job.link, self._job.values(), file, target, self._tell).run()
        content = digest if re.fullmatch(r"[0-9a-f]{64}", digest) else bring_home.sha256(target)
        home = self._cache / content[:32] / name
        home.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        target.replace(home)
        with contextlib.suppress(OSError):
            folder.rmdir()
        self._remember(file, content, home)
        return home

    async def _export(self, file: RemoteFile, sqlite: Path) -> None:
        """Has an nsys over there export the report, if this machine has none."""
        from nsys_tui.reader.find_nsys import find_nsys

        if find_nsys(self._job.nsys_here) is not None:
            return
        probed = await submit.probe(self._job)
        if not probed.nsys or "jobs" not in probed.values:
            return
        self._job.record = Record(
            id=self._job.record.id, plan={}, jobs_dir=probed.get("jobs"), nsys_path=probed.nsys
        )
        report = ReportFile(file.path, file.size, file.mtime)
        with contextlib.suppress(CaptureError):
            made = await bring_home.export_one(self._job, report, 0)
            await Fetch(self._job.link, self._job.values(), made, sqlite, self._tell).run()
        await self._job.link.ask("clean", self._job.values(self._job.record.id + "-export"))

    def _index(self) -> dict[str, Any]:
        with contextlib.suppress(OSError, ValueError):
            return dict(json.loads((self._cache / "index.json").read_text("utf-8")))
        return {}

    def _key(self, file: RemoteFile) -> str:
        return f"{self._host}:{file.path}"

    def _known(self, file: RemoteFile) -> Path | None:
        """The copy in the cache of a file that has not changed since."""
        entry = self._index().get(self._key(file), {})
        local = Path(entry.get("local", ""))
        same = (entry.get("size"), entry.get("mtime")) == (file.size, file.mtime)
        return local if same and local.is_file() and local.stat().st_size == file.size else None

    def _remember(self, file: RemoteFile, content: str, local: Path) -> None:
        entry = {"size": file.size, "mtime": file.mtime, "sha256": content, "local": str(local)}
        text = json.dumps(self._index() | {self._key(file): entry}, indent=1)
        write_whole(self._cache / "index.json", text)

    async def aclose(self) -> None:
        """Gives the connection back."""
        await self._job.link.close()
        shutil.rmtree(self._cache / "jobs" / self._job.record.id, ignore_errors=True)


async def fetch_report(
    name: RemoteName,
    config: Config,
    on_prompt: PromptHandler | None = None,
    progress: Callable[[Progress | Remark], None] | None = None,
) -> Path:
    """Fetches one report by name; see :meth:`RemoteSource.fetch`."""
    async with contextlib.aclosing(RemoteSource(name, config, on_prompt, progress)) as source:
        return await source.fetch(name.path)


async def list_reports(
    name: RemoteName, config: Config, on_prompt: PromptHandler | None = None
) -> Listing:
    """Lists one folder by name; see :meth:`RemoteSource.list_folder`."""
    async with contextlib.aclosing(RemoteSource(name, config, on_prompt)) as source:
        return await source.list_folder(name.path)


def _target(name: RemoteName, config: Config) -> Target:
    if name.host in config.targets and not name.port:
        return find_target(config, name.host)
    return Target(name.host, TargetConfig(host=name.host))


def _cache_folder(config: Config) -> Path:
    from nsys_tui.reader.cache import cache_at

    folder = cache_at(config.cache.dir).root / "remote"
    for path in (folder, folder / "jobs"):
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def _entry(value: str) -> Entry:
    kind, size, mtime, name = (*value.split(" ", 3), "", "", "", "")[:4]
    return Entry(
        printable(name, 500),
        kind == "d",
        int(size) if size.isdigit() else 0,
        int(mtime) if mtime.isdigit() else 0,
    )
