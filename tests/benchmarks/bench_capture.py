"""What a capture costs over a real ssh on loopback: prints ratios, asserts nothing.

    python -m tests.benchmarks.bench_capture [--mib 200] [--repeats 5]      (from the checkout)

The floor of a fetch is ``ssh HOST cat FILE > COPY`` in the same run, over a shared connection as
plain ssh opens it and over ours (which may prefer a faster cipher). They take turns in random
order, so that a change of the machine's load meets all.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from nsys_tui.capture.capture import Capture
from nsys_tui.capture.events import LogChanged
from nsys_tui.capture.launchers import Target
from nsys_tui.capture.supervisor import request
from nsys_tui.capture.transport.fetch import Fetch, RemoteFile
from nsys_tui.capture.transport.reconnecting import Link
from nsys_tui.capture.transport.ssh import SshConnector
from nsys_tui.config import TargetConfig
from tests.capture_support import make_place
from tests.e2e.capture_lab import Lab, make_lab

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable


PLAIN = "ssh cat, plain"
SLEEP = ("sh", "-c", "ls / > /dev/null; sleep 1")


async def fetched(link: Link, source: Path, target: Path) -> float:
    """Seconds of one fetch into a fresh file."""
    status = source.stat()
    file = RemoteFile(str(source), status.st_size, int(status.st_mtime))
    began = time.perf_counter()
    await Fetch(link, {}, file, target, lambda _: None).run()
    return time.perf_counter() - began


async def copied(argv: list[str], source: Path, target: Path) -> float:
    """Seconds of plain ``ssh HOST cat`` into a file."""
    began = time.perf_counter()
    with target.open("wb") as file:
        process = await asyncio.create_subprocess_exec(
            *argv, f"cat '{source}'", stdin=subprocess.DEVNULL, stdout=file
        )
        await process.wait()
        await asyncio.to_thread(os.fsync, file.fileno())
    return time.perf_counter() - began


async def lag_meter(lags: list[float], stop: asyncio.Event) -> None:
    """How late the event loop wakes up, in seconds."""
    while not stop.is_set():
        began = time.perf_counter()
        await asyncio.sleep(0.01)
        lags.append(time.perf_counter() - began - 0.01)


@contextlib.asynccontextmanager
async def metered(lags: list[float]) -> AsyncIterator[None]:
    """Measures the event loop while something else goes on in it."""
    stop = asyncio.Event()
    meter = asyncio.create_task(lag_meter(lags, stop))
    yield
    stop.set()
    await meter


def plain_ssh(lab: Lab, folder: Path) -> list[str]:
    """The command before ``cat``, over a shared connection that nobody gave further options."""
    shared = ["-o", "ControlMaster=auto", "-o", "ControlPersist=60", "-S", str(folder / "plain")]
    argv = [*lab.ssh, "-T", *shared, "gpu-box"]
    subprocess.run([*argv, "true"], check=True)
    return argv


async def fetches(lab: Lab, folder: Path, mib: int, repeats: int) -> None:
    """Fetch against ``ssh cat``, and the event loop meanwhile."""
    source, target = folder / "big.nsys-rep", folder / "copy"
    with source.open("wb") as file:
        for _ in range(mib):
            file.write(os.urandom(1 << 20))
    os.sync()
    connector = SshConnector(Target("box", TargetConfig(host="gpu-box")), lab.ssh, None)
    link = Link(connector, lambda *_: None)
    channel = await link.channel()
    plain = plain_ssh(lab, folder)
    ways: dict[str, Callable[[], Awaitable[float]]] = {
        PLAIN: lambda: copied(plain, source, target),
        "the same on our connection": lambda: copied(list(channel.argv)[:-1], source, target),
        "fetch": lambda: fetched(link, source, target),
    }
    times: dict[str, list[float]] = {name: [] for name in ways}
    lags: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(repeats):
        for name in random.sample(list(ways), len(ways)):
            async with metered(lags[name]):
                times[name].append(await ways[name]())
            target.unlink()
    floor = statistics.median(times[PLAIN])
    print(f"median of {repeats}, {mib} MiB          MiB/s   share   event loop late p50, p95, max")
    for name, found in lags.items():  # during plain ssh cat it is what the machine's load makes
        seconds = statistics.median(times[name])
        found.sort()
        late = [found[int((len(found) - 1) * share)] * 1e3 for share in (0.5, 0.95, 1)]
        print(f"{name:<28}{mib / seconds:7.1f} {100 * floor / seconds:5.1f} %"
              f"{late[0]:14.1f} {late[1]:6.1f} {late[2]:6.1f} ms")  # fmt: skip
    seconds = []
    for _ in range(repeats):
        began = time.perf_counter()
        await channel.ask(request("hello"), 30)
        seconds.append(time.perf_counter() - began)
    print(f"second ssh command    {statistics.median(seconds):7.3f} s, over the shared connection")
    await link.close()


async def follow_lag(lab: Lab, folder: Path) -> None:
    """How old a line of the program is when it is heard of."""
    late: list[float] = []

    def heard(event: object) -> None:
        updates = event.updates if isinstance(event, LogChanged) else ()
        times = [float(u.text) for u in updates if re.fullmatch(r"\d{10}\.\d+", u.text)]
        late.extend(time.time() - told for told in times)

    place = make_place(folder / "place", ssh=lab.ssh, host="gpu-box")
    program = "for i in $(seq 30); do date +%s.%N; sleep 0.17; done"
    plan = place.plan("sh", "-c", program)
    await Capture.create(plan, place.config, on_event=heard, store=place.store).run()
    late.sort()
    print(f"follow lag            median {late[len(late) // 2]:.2f}, max {late[-1]:.2f} s")


def bare(nsys: str, folder: Path) -> float:
    """Seconds of ``nsys profile`` and ``nsys export`` as one types them."""
    report, quiet = folder / "r", {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    export = ["export", "--type=sqlite", f"--output={report}.sqlite", f"{report}.nsys-rep"]
    began = time.perf_counter()
    for words in (["profile", "--trace=osrt", f"--output={report}", *SLEEP], export):
        subprocess.run([nsys, *words], check=True, timeout=60, **quiet)
    return time.perf_counter() - began


def whole(nsys: str, folder: Path, *target: str) -> float:
    """Seconds of ``nsys-tui capture`` of the same, from its start to its end as a process."""
    env = {**os.environ, "XDG_STATE_HOME": str(folder)}
    words = [*target, f"--nsys={nsys}", "--trace=osrt", "--", *SLEEP]
    began = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "nsys_tui", "capture", *words],
        check=True, timeout=120, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    return time.perf_counter() - began


def overhead(lab: Lab, folder: Path, nsys: str, repeats: int) -> None:
    """What a capture of NVIDIA's nsys takes beyond its bare commands, in pairs."""
    config = folder / "config.toml"
    ssh = ", ".join(map(json.dumps, lab.ssh))
    config.write_text(f'[capture]\nssh = [{ssh}]\n[targets.box]\nhost = "gpu-box"\n')
    for name, target in (("here", ()), ("over ssh", (f"--config={config}", "box"))):
        more = []
        for number in range(repeats):
            place = folder / f"{name}{number}"
            place.mkdir()
            more.append(-bare(nsys, place) + whole(nsys, place, *target))
        print(f"overhead {name:<12} median {statistics.median(more):.2f}, max {max(more):.2f} s")


async def measure(mib: int, repeats: int, nsys: str) -> None:
    """Everything, one after the other."""
    with tempfile.TemporaryDirectory(prefix="nt-bench-") as name:
        folder = Path(name)
        with make_lab(folder / "ssh") as lab:
            await fetches(lab, folder, mib, repeats)
            await follow_lag(lab, folder)
            if nsys:
                await asyncio.to_thread(overhead, lab, folder, nsys, repeats)


def main() -> None:
    """Reads the flags and measures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mib", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--nsys", default="", help="NVIDIA's own: what a capture adds to it")
    arguments = parser.parse_args()
    asyncio.run(measure(arguments.mib, arguments.repeats, arguments.nsys))


if __name__ == "__main__":
    main()
