"""Captures over a real OpenSSH to real sshds on loopback: ways in, refusals, cuts, secrets."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from capture_support import Place, Recorder, make_place, stand_in
from e2e.capture_lab import Lab, Proxy, make_key, make_lab

from nsys_tui.capture.capture import Capture, preflight
from nsys_tui.capture.events import Reconnecting
from nsys_tui.capture.failures import (
    AuthenticationError,
    CaptureError,
    HostKeyError,
    UnreachableError,
)
from nsys_tui.capture.launchers import Target
from nsys_tui.capture.record import State
from nsys_tui.capture.remote import RemoteName, RemoteSource, fetch_report
from nsys_tui.capture.transport.ssh import SWIFT_CIPHER, SshConnector
from nsys_tui.commands.remote import local_path
from nsys_tui.config import CaptureConfig, Config, TargetConfig
from nsys_tui.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from nsys_tui.capture.transport.askpass import Prompt

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with make_lab(tmp_path_factory.mktemp("lab") / "ssh") as lab:
        yield lab


@pytest.fixture
def heard() -> Recorder:
    return Recorder()


def at(lab: Lab, folder: Path, host: str = "gpu-box", **settings: object) -> Place:
    return make_place(folder, ssh=lab.ssh, host=host, **settings)


async def wait_for(condition: Callable[[], object], seconds: float = 20) -> None:
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.02)


def same(record_path: str, local: str) -> bool:
    return Path(record_path).read_bytes() == Path(local).read_bytes()


@pytest.mark.parametrize("host", ["gpu-box", "jumped"])
async def test_a_report_comes_home(lab: Lab, tmp_path: Path, heard: Recorder, host: str) -> None:
    place = at(lab, tmp_path, host, export="auto")
    nasty = ("a b", "$(x)", "it's", "new\nline", "", "--x", "\udcff")
    record = await place.capture("sh", "-c", "echo hi; exit 2", *nasty, recorder=heard).run()
    assert record.state is State.DONE
    assert record.program_exit == 2
    [report] = record.reports
    assert Path(report.local).parent == place.store.path(record.id)
    assert same(report.path, report.local)
    assert report.sha256 == hashlib.sha256(Path(report.local).read_bytes()).hexdigest()
    assert Path(report.sqlite).read_bytes()[:6] == b"SQLite"
    assert place.seen()[0][: len(record.argv) - 1] == list(record.argv[1:])
    assert "hi" in heard.log
    assert State.FETCHING in heard.states


async def test_no_connection_stays_behind(lab: Lab, tmp_path: Path) -> None:
    await at(lab, tmp_path).capture("true").run()
    masters = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    assert str(lab.config) not in masters.stdout


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ("Host gpu-box\n  HostName no-such-host.invalid\n", UnreachableError, "unknown host"),
        ("Host gpu-box\n  Port 1\n", UnreachableError, "Connection refused"),
        ("Host gpu-box\n  User nobody-here\n", AuthenticationError, "permission denied"),
        ("Host gpu-box\n  IdentityFile {folder}/other\n  PubkeyAuthentication yes\n"
         "  IdentityAgent none\n", AuthenticationError, "permission denied"),
    ],
)  # fmt: skip
async def test_what_keeps_us_out_is_said_in_sshs_words(
    lab: Lab, tmp_path: Path, change: str, error: type[CaptureError], says: str
) -> None:
    if not (lab.folder / "other").exists():
        make_key(lab.folder / "other")
    config = tmp_path / "config"
    text = lab.config.read_text()
    if "other" in change:
        text = text.replace(f"{lab.folder}/id\n", f"{lab.folder}/other\n")
    config.write_text(change.format(folder=lab.folder) + text)
    place = make_place(tmp_path, ssh=("ssh", "-F", str(config)), host="gpu-box")
    capture = place.capture("true")
    with pytest.raises(error) as caught:
        await capture.run()
    assert says in str(caught.value)
    assert "gpu-box" in caught.value.title
    assert caught.value.hint
    assert place.store.load(capture.record.id).state is State.FAILED
    assert not place.dump.exists()


async def test_a_jump_host_that_refuses_is_named(lab: Lab, tmp_path: Path) -> None:
    if not (lab.folder / "other").exists():
        make_key(lab.folder / "other")
    config = tmp_path / "config"
    wrong = f"Host bastion\n  IdentityFile {lab.folder}/other\n  IdentitiesOnly yes\n"
    text = lab.config.read_text()
    config.write_text(wrong + text.replace(f"{lab.folder}/id\n", f"{lab.folder}/other\n"))
    place = make_place(tmp_path, ssh=("ssh", "-F", str(config)), host="jumped")
    with pytest.raises(UnreachableError) as caught:
        await place.capture("true").run()
    assert "the way over bastion is closed" in caught.value.title
    assert f"`ssh -F {config} bastion` tells why" in caught.value.hint


@pytest.fixture
def unknown(lab: Lab, tmp_path: Path) -> Place:
    """The box with an empty known_hosts file of its own."""
    config = tmp_path / "config"
    text = lab.config.read_text().replace(str(lab.known_hosts), str(tmp_path / "known"))
    config.write_text(text)
    return make_place(tmp_path, ssh=("ssh", "-F", str(config)), host="gpu-box")


async def test_an_unknown_host_key_without_anybody_to_ask(unknown: Place) -> None:
    with pytest.raises(HostKeyError) as caught:
        await unknown.capture("true").run()
    assert caught.value.exit_code == 73
    assert "unknown host key" in caught.value.title
    assert f"run `ssh -F {unknown.folder}/config gpu-box` once" in caught.value.hint
    assert not (unknown.folder / "known").exists()


async def test_a_host_key_is_asked_for_and_written_on_yes(unknown: Place) -> None:
    asked: list[Prompt] = []

    async def answer(prompt: Prompt) -> str:
        asked.append(prompt)
        return "yes"

    found = await preflight(unknown.plan("true"), unknown.config, answer)
    assert found.get("host")
    [prompt] = asked
    assert prompt.kind.value == "host key"
    assert prompt.fingerprint.startswith("SHA256:")
    assert not prompt.masked
    assert (unknown.folder / "known").read_text()


@pytest.mark.parametrize("word", ["no", None])
async def test_a_host_key_that_is_not_accepted(unknown: Place, word: str | None) -> None:
    async def answer(_: Prompt) -> str | None:
        return word

    with pytest.raises(HostKeyError, match="was not accepted"):
        await preflight(unknown.plan("true"), unknown.config, answer)
    assert not (unknown.folder / "known").exists()


async def test_a_changed_host_key_is_refused_without_a_question(lab: Lab, unknown: Place) -> None:
    other = (lab.bastion.key.with_suffix(".pub")).read_text()
    (unknown.folder / "known").write_text(f"[127.0.0.1]:{lab.box.port} {other}")

    async def answer(_: Prompt) -> str:
        raise AssertionError("asked")

    with pytest.raises(HostKeyError) as caught:
        await preflight(unknown.plan("true"), unknown.config, answer)
    assert "not the known one" in caught.value.title
    assert f"{unknown.folder}/known:1" in caught.value.message


async def test_an_encrypted_key_is_asked_for(lab: Lab, tmp_path: Path) -> None:
    make_key(tmp_path / "locked", "open sesame")
    with (lab.folder / "authorized_keys").open("a") as file:
        file.write((tmp_path / "locked.pub").read_text())
    config = tmp_path / "config"
    config.write_text(lab.config.read_text().replace(f"{lab.folder}/id\n", f"{tmp_path}/locked\n"))
    place = make_place(tmp_path, ssh=("ssh", "-F", str(config)), host="gpu-box")
    kinds = []

    async def answer(prompt: Prompt) -> str:
        kinds.append((prompt.kind.value, prompt.masked))
        return "open sesame"

    assert (await preflight(place.plan("true"), place.config, answer)).get("host")
    assert kinds == [("passphrase", True)]


STATES = (State.RUNNING, State.IMPORTING, State.EXPORTING, State.FETCHING)


@pytest.mark.parametrize("state", STATES)
async def test_a_cut_in_any_state_is_mended(
    lab: Lab, tmp_path: Path, heard: Recorder, state: State
) -> None:
    """The server's side of every connection is killed; the job goes on and nothing is lost."""
    place = at(lab, tmp_path, export="auto").fake(SECONDS="0.8", SIZE="60000000")
    program = "for i in 1 2 3 4 5 6 7 8; do echo line $i; sleep 0.1; done"
    capture = place.capture("sh", "-c", program, recorder=heard)
    running = asyncio.create_task(capture.run())
    await wait_for(lambda: capture.record.state is state)
    if state is State.FETCHING:
        await wait_for(lambda: heard.fetched > 0 or running.done())
    before = logins(lab)
    lab.box.cut_connections()
    record = await asyncio.wait_for(running, 60)
    assert logins(lab) > before, "nothing was cut"
    assert record.state is State.DONE
    assert same(record.reports[0].path, record.reports[0].local)
    log = place.store.log_path(record.id).read_bytes()
    assert log == (Path(record.job_dir) / "log").read_bytes()
    assert [call[0] for call in place.seen()] == ["profile", "export"]


async def test_a_server_that_goes_down_before_the_start_ends_it_and_nothing_was_started(
    lab: Lab, tmp_path: Path
) -> None:
    def cut(event: object) -> None:
        if getattr(event, "state", None) is State.CHECKING:
            lab.box.stop()

    place = at(lab, tmp_path)
    capture = Capture.create(place.plan("true"), place.config, on_event=cut, store=place.store)
    try:
        with pytest.raises(UnreachableError):
            await asyncio.wait_for(capture.run(), 60)
    finally:
        lab.box.start()
    assert place.store.load(capture.record.id).state is State.FAILED
    assert not place.dump.exists()


@pytest.mark.parametrize("state", [State.SUBMITTING, State.VERIFYING])
async def test_a_cut_at_the_start_and_at_the_end_is_mended(
    lab: Lab, tmp_path: Path, state: State
) -> None:
    """Whether the start had arrived or not: the program runs once."""

    def cut(event: object) -> None:
        if getattr(event, "state", None) is state:
            asyncio.get_running_loop().call_later(0.05, lab.box.cut_connections)

    place = at(lab, tmp_path, export="auto")
    plan = place.plan("sh", "-c", "echo x >> count; sleep 0.5")
    capture = Capture.create(plan, place.config, on_event=cut, store=place.store)
    record = await asyncio.wait_for(capture.run(), 60)
    assert record.state is State.DONE
    assert (place.cwd / "count").read_text() == "x\n"
    assert same(record.reports[0].path, record.reports[0].local)


@pytest.fixture
def proxied(lab: Lab, tmp_path: Path) -> Iterator[tuple[Place, Proxy]]:
    """The box behind a proxy that can freeze and cut."""
    proxy = Proxy(lab.box.port)
    config = tmp_path / "config"
    config.write_text(
        f"Host gpu-box\n  Port {proxy.port}\n  HostKeyAlias [127.0.0.1]:{lab.box.port}\n"
        + lab.config.read_text()
    )
    place = make_place(tmp_path, ssh=("ssh", "-F", str(config)), host="gpu-box")
    yield place, proxy
    proxy.close()


async def test_a_cut_in_mid_fetch_is_resumed_at_its_byte(
    proxied: tuple[Place, Proxy], heard: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, proxy = proxied
    monkeypatch.setattr("nsys_tui.capture.transport.reconnecting.BACKOFF_S", (0.2,))
    size = 40_000_000
    capture = place.fake(SIZE=str(size)).capture("true", recorder=heard)
    running = asyncio.create_task(capture.run())
    await wait_for(lambda: capture.record.state is State.FETCHING)
    part = next(iter(place.store.path(capture.record.id).glob("*")), None)
    proxy.bytes_per_s = 20e6
    before = proxy.carried
    await wait_for(lambda: heard.fetched > size // 4)
    proxy.cut()
    proxy.bytes_per_s = 0
    record = await asyncio.wait_for(running, 60)
    assert same(record.reports[0].path, record.reports[0].local)
    assert heard.all(Reconnecting)
    assert proxy.carried - before < 1.6 * size, "it began again at the first byte"
    assert part is not None


async def test_silence_is_noticed_and_the_log_goes_on_where_it_was(
    proxied: tuple[Place, Proxy], heard: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, proxy = proxied
    monkeypatch.setattr("nsys_tui.capture.follow.SILENCE_S", 4.0)
    monkeypatch.setattr("nsys_tui.capture.transport.reconnecting.BACKOFF_S", (0.3,))
    program = "for i in $(seq 30); do echo l $i; sleep 0.2; done; exit 9"
    capture = place.capture("sh", "-c", program, recorder=heard)
    running = asyncio.create_task(capture.run())
    await wait_for(lambda: "l 3" in heard.log)
    proxy.freeze()
    await wait_for(lambda: heard.all(Reconnecting))
    proxy.cut()
    proxy.thaw()
    record = await asyncio.wait_for(running, 60)
    assert [line for line in heard.log if line.startswith("l ")] == [f"l {n}" for n in range(1, 31)]
    assert record.program_exit == 9


async def test_a_server_that_takes_one_session_only(tmp_path: Path) -> None:
    with make_lab(tmp_path / "ssh") as lab:
        lab.box.stop()
        lab.box.extra = "MaxSessions 1\n"
        lab.box.start()
        record = await at(lab, tmp_path / "place").capture("true").run()
        assert record.state is State.DONE


async def test_the_users_own_shared_connection_is_used_and_left(lab: Lab, tmp_path: Path) -> None:
    config = tmp_path / "config"
    control = Path("/tmp") / f"nt-{os.getpid()}-own"
    config.write_text(f"Host gpu-box\n  ControlPath {control}\n" + lab.config.read_text())
    own = ["ssh", "-F", str(config)]
    subprocess.run([*own, "-M", "-N", "-f", "gpu-box"], check=True, timeout=20)
    try:
        place = make_place(tmp_path, ssh=own, host="gpu-box")
        before = logins(lab)
        await place.capture("true").run()
        assert logins(lab) == before
        check = subprocess.run([*own, "-O", "check", "gpu-box"], check=False, capture_output=True)
        assert check.returncode == 0
    finally:
        subprocess.run([*own, "-O", "exit", "gpu-box"], check=False, stderr=subprocess.DEVNULL)


@contextlib.contextmanager
def behind_a_dying_connection(lab: Lab, folder: Path) -> Iterator[tuple[Place, Proxy]]:
    """A user whose shared connection goes over a proxy; what is opened later goes straight."""
    proxy, config = Proxy(lab.box.port), folder / "config"
    control = Path("/tmp") / f"nt-{os.getpid()}-dying"
    alias = f"  HostKeyAlias [127.0.0.1]:{lab.box.port}\n"
    usual = f"Host gpu-box\n  ControlPath {control}\n" + lab.config.read_text()
    config.write_text(f"Host gpu-box\n  Port {proxy.port}\n{alias}{usual}")
    own = ["ssh", "-F", str(config)]
    subprocess.run([*own, "-M", "-N", "-f", "gpu-box"], check=True, timeout=20)
    config.write_text(usual)
    try:
        yield make_place(folder, ssh=own, host="gpu-box"), proxy
    finally:
        subprocess.run([*own, "-O", "exit", "gpu-box"], check=False, stderr=subprocess.DEVNULL)
        proxy.close()


async def test_a_dead_shared_connection_of_the_user_is_left_alone(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nsys_tui.capture.transport.ssh._SHARED_S", 1.0)
    with behind_a_dying_connection(lab, tmp_path) as (place, proxy):
        proxy.freeze()
        record = await asyncio.wait_for(place.capture("true").run(), 30)
        assert record.state is State.DONE


async def test_a_fetch_goes_on_when_the_users_connection_falls_silent(
    lab: Lab, tmp_path: Path, heard: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nsys_tui.capture.transport.ssh._SHARED_S", 2.0)
    monkeypatch.setattr("nsys_tui.capture.transport.fetch._SILENCE_S", 1.5)
    monkeypatch.setattr("nsys_tui.capture.transport.reconnecting.BACKOFF_S", (0.2,))
    with behind_a_dying_connection(lab, tmp_path) as (place, proxy):
        capture = place.fake(SIZE="20000000").capture("true", recorder=heard)
        running = asyncio.create_task(capture.run())
        await wait_for(lambda: capture.record.state is State.FETCHING)
        proxy.bytes_per_s = 10e6
        await wait_for(lambda: heard.fetched > 4_000_000)
        proxy.freeze()
        record = await asyncio.wait_for(running, 40)
        assert same(record.reports[0].path, record.reports[0].local)
        assert heard.all(Reconnecting)


def logins(lab: Lab) -> int:
    return (lab.folder / "box.log").read_text().count("Accepted publickey")


async def test_settings_of_the_user_that_get_in_the_way(lab: Lab, tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text(
        "Host gpu-box\n  RemoteCommand echo no\n  RequestTTY force\n  LogLevel ERROR\n"
        + lab.config.read_text()
    )
    place = make_place(tmp_path, ssh=("ssh", "-F", str(config)), host="gpu-box")
    assert (await place.capture("true").run()).state is State.DONE


async def test_stop_goes_to_the_remote_group(lab: Lab, tmp_path: Path, heard: Recorder) -> None:
    place = at(lab, tmp_path)
    capture = place.capture("sleep", "4711", recorder=heard)
    running = asyncio.create_task(capture.run())
    await wait_for(lambda: place.running)
    await capture.stop(keep=True)
    record = await asyncio.wait_for(running, 30)
    assert (record.state, record.kept) == (State.CANCELLED, "kept")
    assert same(record.reports[0].path, record.reports[0].local)
    left = subprocess.run(["pgrep", "-fx", "sleep 4711"], capture_output=True, check=False)
    assert left.stdout == b""


async def test_secrets_are_in_no_argv_on_either_side(
    lab: Lab, tmp_path: Path, heard: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_TOKEN", "s3cr3t-over-ssh")
    place = at(lab, tmp_path).fake(DUMP_ENV="MY_TOKEN")
    capture = place.capture("sleep", "0.5", env_from=["MY_TOKEN"], recorder=heard)
    running = asyncio.create_task(capture.run())
    seen = b""
    while not running.done():
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                seen += path.read_bytes() if b"s3cr3t-over-ssh" in path.read_bytes() else b""
        await asyncio.sleep(0.02)
    record = await running
    assert seen == b""
    assert "MY_TOKEN=s3cr3t-over-ssh" in place.seen()[0]
    assert not (Path(record.job_dir) / "env").exists()
    kept = [*place.store.folder.rglob("*"), *place.jobs.rglob("*"), *tmp_path.glob("*.log")]
    holding = [path for path in kept if path.is_file() and b"s3cr3t" in path.read_bytes()]
    assert holding == []


KILLED_PROGRAM = "echo one; sleep 0.3; echo two; exit 3"
KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
sys.path[:0] = sys.argv[1:3]
from capture_support import make_place
from nsys_tui.capture.record import State
place = make_place(Path(sys.argv[3]), ssh=["ssh", "-F", sys.argv[4]], host="gpu-box", export="auto")
place = place.fake(SECONDS="0.6", SIZE="30000000")
stopping = sys.argv[5] == "stopping"
state = State.RUNNING if stopping else State(sys.argv[5])
def on_event(event):
    if stopping:
        if "stopping" in getattr(event, "detail", ""):
            asyncio.get_running_loop().call_later(0.3, os.kill, os.getpid(), signal.SIGKILL)
        elif "going on" in str(getattr(event, "updates", "")):
            asyncio.ensure_future(capture.stop(keep=True))
        return
    if getattr(event, "state", None) is state or (
        state is State.FETCHING and getattr(event, "done", 0) > 0
    ):
        os.kill(os.getpid(), signal.SIGKILL)
capture = place.capture("sh", "-c", sys.argv[6], recorder=on_event)
Path(sys.argv[3], "id").write_text(capture.record.id)
asyncio.run(capture.run())
"""


async def test_kill_9_of_the_app_while_it_stops_the_job_still_keeps_the_report(
    lab: Lab, tmp_path: Path
) -> None:
    assert killed(lab, tmp_path, "stopping", "echo going on; sleep 30") == -signal.SIGKILL
    place = at(lab, tmp_path, export="auto").fake(SECONDS="0.6", SIZE="30000000")
    attached = place.attach((tmp_path / "id").read_text())
    record = await asyncio.wait_for(attached.run(), 60)
    assert (record.state, record.kept) == (State.CANCELLED, "kept")
    assert same(record.reports[0].path, record.reports[0].local)


def killed(lab: Lab, folder: Path, state: str, program: str = KILLED_PROGRAM) -> int:
    """Runs a capture in another process that kills itself in a state."""
    root = Path(__file__).resolve().parent.parent
    command = [sys.executable, "-c", KILLED, str(root), str(root.parent)]
    return subprocess.run(
        [*command, str(folder), str(lab.config), state, program], check=False, timeout=60,
        stderr=subprocess.DEVNULL,
    ).returncode  # fmt: skip


@pytest.mark.parametrize(
    "state",
    ["connecting", "checking", "submitting", "running", "importing", "exporting", "fetching",
     "verifying", "done"],
)  # fmt: skip
async def test_kill_9_of_the_app_in_every_state_loses_nothing(
    lab: Lab, tmp_path: Path, state: str
) -> None:
    assert killed(lab, tmp_path, state) == -signal.SIGKILL
    place = at(lab, tmp_path, export="auto").fake(SECONDS="0.6", SIZE="30000000")
    capture = (tmp_path / "id").read_text()
    heard = Recorder()
    if state in ("connecting", "checking", "submitting"):
        with pytest.raises(CaptureError, match="was never started"):
            await place.attach(capture, heard).run()
        assert not place.dump.exists()
        return
    record = await asyncio.wait_for(place.attach(capture, heard).run(), 60)
    assert record.state is State.DONE
    assert record.program_exit == 3
    assert same(record.reports[0].path, record.reports[0].local)
    assert [call[0] for call in place.seen()] == ["profile", "export"]
    log = place.store.log_path(record.id).read_bytes()
    assert log == (Path(record.job_dir) / "log").read_bytes()


async def test_a_report_by_name_is_fetched_once(lab: Lab, tmp_path: Path) -> None:
    folder = tmp_path / "run s"
    folder.mkdir()
    report = folder / "it's 7.nsys-rep"
    report.write_bytes(os.urandom(300_000))
    stand_in(tmp_path)
    config = Config(capture=CaptureConfig(ssh=lab.ssh))
    source = RemoteSource(RemoteName("gpu-box", ""), config)
    try:
        listing = await source.list_folder(f"{folder}/")
        assert [(entry.name, entry.size) for entry in listing.entries] == [(report.name, 300_000)]
        first = await source.fetch(str(report), export=False)
        assert first.read_bytes() == report.read_bytes()
        began = time.monotonic()
        assert await source.fetch(str(report), export=False) == first
        assert time.monotonic() - began < 5
        report.write_bytes(os.urandom(300_000))
        os.utime(report, (9, 9))
        second = await source.fetch(str(report), export=False)
        assert second != first
        assert second.read_bytes() == report.read_bytes()
        with pytest.raises(CaptureError, match="no such file"):
            await source.fetch(f"{folder}/none.nsys-rep")
        with pytest.raises(CaptureError, match="no such folder"):
            await source.list_folder("/no/such/folder/")
    finally:
        await source.aclose()


async def test_a_report_by_name_brings_an_export_where_only_the_far_side_has_nsys(
    lab: Lab, tmp_path: Path
) -> None:
    report = tmp_path / "r.nsys-rep"
    report.write_bytes(os.urandom(1000))
    place = at(lab, tmp_path / "place")
    config = Config(capture=CaptureConfig(ssh=lab.ssh), targets={"gpu-box": place.target.settings})
    local = await fetch_report(RemoteName("gpu-box", str(report)), config)
    assert local.read_bytes() == report.read_bytes()
    assert local.with_suffix(".sqlite").read_bytes()[:6] == b"SQLite"


def test_a_remote_name_on_the_command_line(
    lab: Lab, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = tmp_path / "r 1.nsys-rep"
    report.write_bytes(os.urandom(1000))
    (tmp_path / "sub").mkdir()
    config = Config(capture=CaptureConfig(ssh=lab.ssh))
    with pytest.raises(UsageError, match="is a folder, not a report"):
        local_path(f"gpu-box:{tmp_path}/", config)
    listed = capsys.readouterr().err.splitlines()
    assert [line.split(maxsplit=1) for line in listed] == [
        ["1", "sub/"], ["2", "r 1.nsys-rep  1.00 kB"],
    ]  # fmt: skip
    local = local_path(f"ssh://gpu-box{tmp_path}/r%201.nsys-rep", config)
    assert local.read_bytes() == report.read_bytes()
    assert local_path(str(report), config) == report


@pytest.mark.parametrize(
    ("wish", "cipher"),
    [("", SWIFT_CIPHER), ("Ciphers aes256-ctr", "aes256-ctr"), ("Ciphers -aes*-gcm*", "chacha20")],
)
async def test_a_swift_cipher_unless_the_user_wants_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wish: str, cipher: str
) -> None:
    monkeypatch.setattr("nsys_tui.capture.transport.ssh._has_aes", lambda: True)
    with make_lab(tmp_path / "ssh") as lab:
        lab.write_config(wish)
        connector = SshConnector(Target("box", TargetConfig(host="gpu-box")), lab.ssh, None)
        channel = await connector.connect()
        argv = [channel.argv[0], "-v", "-S", "none", *channel.argv[1:-1], "true"]
        said = subprocess.run(argv, check=True, capture_output=True, text=True).stderr
        await channel.close()
        await connector.close()
    assert f"server->client cipher: {cipher}" in said
