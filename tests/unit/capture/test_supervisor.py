"""The far side alone: the shell program, run by every POSIX shell that is here."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nsys_tui.capture.failures import ConnectionLostError
from nsys_tui.capture.supervisor import Answer, keeper, last, request
from nsys_tui.capture.transport.channel import Channel, inner, local_channel
from nsys_tui.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

JOB = f"20260101-000000-{os.getpid():06d}"
"""Processes of other tests that run beside carry another."""
SHELLS = [name for name in ("dash", "bash", "busybox") if shutil.which(name)]


def channel(shell: str = "sh") -> Channel:
    return Channel([shell, "sh", "-s"] if shell == "busybox" else [shell, "-s"])


class Far:
    """One folder of jobs, asked through one shell."""

    def __init__(self, folder: Path, shell: str = "sh") -> None:
        self.folder = folder
        self.channel = channel(shell)

    async def ask(self, verb: str, job: str = JOB, **values: str) -> list[Answer]:
        common = {"J": job, "B": str(self.folder), "CWD": str(self.folder)}
        return await self.channel.ask(request(verb, **(common | values)), 30)

    async def start(self, script: str, job: str = JOB, **values: str) -> list[Answer]:
        wrap = keeper()
        return await self.ask("start", job, RUN=script, WRAP=wrap, OWNER="me", **values)

    async def state(self, job: str = JOB) -> str:
        return last(await self.ask("status", job), "state") or ""

    async def follow(self, offset: int = 0, job: str = JOB) -> tuple[bytes, list[Answer]]:
        data, answers = b"", []
        values = {"J": job, "B": str(self.folder), "OFF": str(offset)}
        async with self.channel.open(request("follow", **values)) as stream:
            async for answer in stream.answers():
                answers.append(answer)
                if answer.key == "data":
                    start, count = map(int, answer.value.split())
                    assert start == offset + len(data)
                    data += await stream.data(count)
        return data, answers


@pytest.fixture
def far(tmp_path: Path) -> Far:
    (tmp_path / "jobs").mkdir()
    return Far(tmp_path / "jobs")


@pytest.mark.parametrize("shell", SHELLS)
async def test_a_job_from_start_to_removal_in_every_shell(tmp_path: Path, shell: str) -> None:
    far = Far(tmp_path / "jobs", shell)
    assert await far.state() == "absent"
    script = "printf 'no @@nt end here\\n@@nt end\\n'; sleep 0.3; printf 'tail'; exit 5\n"
    assert last(await far.start(script), "state") == "running"
    data, answers = await far.follow()
    assert data == b"no @@nt end here\n@@nt end\ntail"
    assert answers[-1] == Answer("state", "exit 5")
    assert await far.state() == "exit 5"
    assert last(await far.ask("clean"), "cleaned") == str(far.folder / JOB)
    assert await far.state() == "absent"


async def test_start_can_be_repeated(far: Far) -> None:
    script = "echo x >> ../count; sleep 0.5\n"
    answers = await asyncio.gather(*(far.start(script) for _ in range(4)))
    assert {last(answer, "error") for answer in answers} == {None}
    assert {last(answer, "state") for answer in answers} <= {"running", "starting", "exit 0"}
    await far.follow()
    assert (far.folder / "count").read_text() == "x\n"


async def test_following_goes_on_from_any_byte(far: Far) -> None:
    await far.start("seq 1 3000\n")
    whole, _ = await far.follow()
    assert whole == "".join(f"{n}\n" for n in range(1, 3001)).encode()
    for offset in (0, 1, 5000, len(whole)):
        rest, answers = await far.follow(offset)
        assert rest == whole[offset:]
        assert answers[-1].value == "exit 0"


async def test_the_job_gets_signals_that_a_shell_would_ignore(far: Far) -> None:
    script = "trap 'echo got it; exit 7' INT\necho ready\nwhile :; do sleep 0.05; done\n"
    await far.start(script)
    async with asyncio.timeout(10):
        while b"ready" not in (far.folder / JOB / "log").read_bytes():
            await asyncio.sleep(0.05)
    assert "signalled INT" in str(await far.ask("signal", SIG="INT")).replace("', value='", " ")
    data, answers = await far.follow()
    assert data.endswith(b"got it\n")
    assert answers[-1].value == "exit 7"


async def test_a_signal_reaches_the_whole_group_and_the_keeper_survives_it(far: Far) -> None:
    await far.start("sleep 300 & sleep 300 & wait\n")
    pid = int((last(await far.ask("status"), "pid")) or 0)
    await far.ask("signal", SIG="TERM")
    _, answers = await far.follow()
    assert answers[-1].value == "exit 143"
    living = [
        stat
        for stat in Path("/proc").glob("[0-9]*/stat")
        if (fields := read(stat).rpartition(")")[2].split())
        and fields[2] == str(pid)
        and fields[0] != "Z"
    ]
    assert living == []


def read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


async def test_a_killed_job_without_its_keeper_is_lost(far: Far) -> None:
    await far.start("sleep 300\n")
    pid = int(last(await far.ask("status"), "pid") or 0)
    keeper = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(keeper, signal.SIGKILL)
    os.killpg(pid, signal.SIGKILL)
    assert await far.state() == "lost"
    _, answers = await far.follow()
    assert answers[-1].value == "lost"


async def test_a_reused_pid_is_not_taken_for_the_job(far: Far) -> None:
    folder = far.folder / JOB
    folder.mkdir()
    (folder / "launched").touch()
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as other:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        began = Path(f"/proc/{other.pid}/stat").read_text().rpartition(")")[2].split()[19]
        (folder / "pid").write_text(f"{other.pid} {began} {boot}\n")
        assert await far.state() == "running"
        (folder / "pid").write_text(f"{other.pid} {int(began) - 1} {boot}\n")
        assert await far.state() == "lost"
        (folder / "pid").write_text(f"{other.pid} {began} another-boot\n")
        assert await far.state() == "lost"
        other.kill()


async def test_a_start_that_died_half_way_is_told_apart(far: Far) -> None:
    (far.folder / JOB).mkdir()
    assert await far.state() == "stillborn"


async def test_a_banner_before_the_answer_is_passed_over(tmp_path: Path) -> None:
    noisy = Channel(["sh", "-c", "echo 'Welcome @@nt hello 1 x'; echo '@@nt end'; exec sh -s"])
    request_ = request("status", J=JOB, B=str(tmp_path))
    assert last(await noisy.ask(request_, 10), "state") == "absent"


async def test_a_banner_without_line_end_is_passed_over(tmp_path: Path) -> None:
    noisy = Channel(["sh", "-c", "printf 'last login: '; exec sh -s"])
    assert last(await noisy.ask(request("status", J=JOB, B=str(tmp_path)), 10), "state") == "absent"


async def test_an_answer_that_is_cut_is_a_lost_connection(tmp_path: Path) -> None:
    dying = Channel(["sh", "-c", "echo nonsense; echo why >&2; exit 3"])
    with pytest.raises(ConnectionLostError) as caught:
        await dying.ask(request("status", J=JOB, B=str(tmp_path)), 10)
    assert caught.value.status == 3
    assert caught.value.stderr == "why\n"


async def test_last_words_that_come_after_the_end_are_waited_for() -> None:
    late = "exec >&-; (sleep 0.3; echo Permission denied >&2) & exit 255"
    with pytest.raises(ConnectionLostError) as caught:
        await Channel(["sh", "-c", late]).ask(request("hello"), 10)
    assert caught.value.status == 255
    assert caught.value.stderr == "Permission denied\n"


async def test_a_silent_shell_runs_into_the_time_limit() -> None:
    began = time.monotonic()
    with pytest.raises(ConnectionLostError, match="no answer within"):
        await Channel(["sleep", "60"]).ask(request("hello"), 0.3)
    assert time.monotonic() - began < 10


@pytest.fixture
async def standing(tmp_path: Path) -> AsyncIterator[Channel]:
    """A shell that writes down each log-in."""
    channel = Channel(["sh", "-c", f"echo in >> '{tmp_path}/logins'; exec sh -s"], standing=True)
    yield channel
    await channel.close()


async def test_one_log_in_serves_verbs_one_after_the_other(
    standing: Channel, tmp_path: Path
) -> None:
    asked = request("status", J=JOB, B=str(tmp_path))
    for _ in range(3):
        assert last(await standing.ask(asked, 10), "state") == "absent"
    assert (tmp_path / "logins").read_text() == "in\n"
    await asyncio.gather(*(standing.ask(asked, 10) for _ in range(2)))
    assert (tmp_path / "logins").read_text() == "in\nin\n"


async def test_a_standing_shell_that_is_gone_is_replaced(standing: Channel, tmp_path: Path) -> None:
    await standing.ask(request("hello"), 10)
    (stream,) = standing._idle
    os.kill(stream._process.pid, signal.SIGKILL)
    async with asyncio.timeout(10):
        while stream.alive:
            await asyncio.sleep(0.01)
    await standing.ask(request("hello"), 10)
    assert (tmp_path / "logins").read_text() == "in\nin\n"


async def test_a_verb_that_dies_in_a_standing_shell_is_noticed(standing: Channel) -> None:
    await standing.ask(request("hello"), 10)
    dying = request("hello")
    broken = replace(dying, script="echo why >&2; exit 9")
    with pytest.raises(ConnectionLostError) as caught:
        await standing.ask(broken, 10)
    assert (caught.value.status, caught.value.stderr) == (9, "why\n")


async def test_a_shell_inside_a_shell(tmp_path: Path) -> None:
    outer = local_channel()
    nested = Channel(outer.argv, inner(["env", "A=it's", "sh", "-s"]))
    assert (
        last(await nested.ask(request("status", J=JOB, B=str(tmp_path)), 10), "state") == "absent"
    )


async def test_files_hashes_and_sends(far: Far) -> None:
    path = far.folder / "a 'b'.nsys-rep"
    path.write_bytes(b"0123456789")
    gone = far.folder / "gone.nsys-rep"
    answers = await far.ask("files", PATHS=f"{path}\n{gone}")
    assert answers[0].value.split(" ", 2)[0::2] == ["10", str(path)]
    assert answers[1] == Answer("missing", str(gone))
    [answer] = await far.ask("hash", PATHS=str(path))
    assert answer.value.startswith(
        "84d89877f0d4041efb6bf91a16f0248f2fd573e6af05c19f96bedb9f882f7882 "
    )


async def test_listing_shows_folders_and_reports_only(far: Far) -> None:
    for name in ("a b.nsys-rep", "x.sqlite", "notes.txt", "new\nline.nsys-rep"):
        (far.folder / name).write_text("12345")
    (far.folder / "sub").mkdir()
    answers = await far.ask("list", PATHS=str(far.folder))
    assert answers[0] == Answer("dir", str(far.folder))
    entries = {a.value.split(" ", 3)[3]: a.value.split()[:2] for a in answers if a.key == "entry"}
    assert entries == {"a b.nsys-rep": ["f", "5"], "x.sqlite": ["f", "5"], "sub": ["d", "0"]}


async def test_scan_finds_what_nobody_named(far: Far) -> None:
    await far.start("touch here.nsys-rep here.qdstrm ../nsys-report-12ab.qdstrm ../mine.nsys-rep\n")
    await far.follow()
    (far.folder / JOB / "run.sh").touch()
    os.utime(far.folder / JOB / "run.sh", (1, 1))
    answers = await far.ask("scan")
    found = {Path(answer.value.split(" ", 2)[2]).name for answer in answers}
    assert found == {"here.nsys-rep", "here.qdstrm"}


async def test_a_log_that_is_cut_shows_as_a_counted_gap(far: Far, tmp_path: Path) -> None:
    go_on = tmp_path / "go on"
    wait = f'until [ -e "{go_on}" ]; do sleep 0.1; done'
    await far.start(f"seq 1 2000; {wait}; echo tail\n", LOG_LIMIT="1000")
    data, answers = b"", []
    async with asyncio.timeout(20):
        while not (far.folder / JOB / "base").exists():
            await asyncio.sleep(0.1)
    values = {"J": JOB, "B": str(far.folder), "OFF": "100"}
    async with far.channel.open(request("follow", **values)) as stream:
        async for answer in stream.answers():
            answers.append(answer)
            go_on.touch()
            if answer.key == "data":
                data += await stream.data(int(answer.value.split()[1]))
    size = len("".join(f"{n}\n" for n in range(1, 2001)))
    assert answers[0] == Answer("gap", f"100 {size - 100}")
    assert data == b"tail\n"


async def test_of_a_flood_the_newest_is_followed(far: Far) -> None:
    await far.start("head -c 100000000 /dev/zero | tr '\\0' x; echo; echo tail\n")
    async with asyncio.timeout(20):
        while not (far.folder / JOB / "exit").exists():
            await asyncio.sleep(0.1)
    data, gaps = b"", []
    values = {"J": JOB, "B": str(far.folder), "OFF": "0"}
    async with far.channel.open(request("follow", **values)) as stream:
        async for answer in stream.answers():
            if answer.key == "data":
                data += await stream.data(int(answer.value.split()[1]))
            elif answer.key == "gap":
                gaps.append(int(answer.value.split()[1]))
    assert data.endswith(b"x\ntail\n")
    assert len(data) == 8 << 20
    assert len(data) + sum(gaps) == 100_000_006


async def test_a_log_that_is_cut_while_it_is_read_keeps_the_count(far: Far) -> None:
    await far.start("echo all of it\n")
    asked = request("follow", J=JOB, B=str(far.folder), OFF="0")
    cut = asked.script.replace('nt_chunk "$NT_D/log"', ': > "$NT_D/log"; nt_chunk "$NT_D/log"')
    async with far.channel.open(replace(asked, script=cut)) as stream:
        async for answer in stream.answers():
            if answer.key == "data":
                assert await stream.data(int(answer.value.split()[1])) == bytes(len("all of it\n"))
            last_word = answer
    assert last_word == Answer("state", "exit 0")


async def test_only_folders_of_our_making_are_removed(far: Far, tmp_path: Path) -> None:
    precious = far.folder / JOB
    precious.mkdir()
    (precious / "thesis.tex").write_text("x")
    assert last(await far.ask("clean"), "error") == f"no job folder {precious}"
    assert (precious / "thesis.tex").exists()
    link = far.folder / "20260101-000000-bbbbbb"
    target = tmp_path / "elsewhere"
    target.mkdir()
    (target / "run.sh").touch()
    link.symlink_to(target)
    await far.ask("clean", "20260101-000000-bbbbbb")
    assert (target / "run.sh").exists()


async def test_a_running_job_is_not_removed(far: Far) -> None:
    await far.start("sleep 300\n")
    assert last(await far.ask("clean"), "state") == "running"
    assert (far.folder / JOB).exists()
    await far.ask("signal", SIG="KILL")


async def test_what_stays_behind_is_found_by_its_mark_and_ended_by_its_name(far: Far) -> None:
    await far.start(f"export NSYS_TUI_JOB={JOB}; setsid sleep 47 > /dev/null 2>&1 & exit 0\n")
    await far.follow()
    assert [answer.value.split()[1] for answer in await far.ask("left")] == ["sleep"]
    await far.ask("left", SIG="KILL", ONLY="nsys")
    assert len(await far.ask("left", SIG="KILL")) == 1
    async with asyncio.timeout(10):
        while await far.ask("left"):
            await asyncio.sleep(0.05)


async def test_term_and_kill_reach_a_program_in_a_session_of_its_own(far: Far) -> None:
    mark = f"export NSYS_TUI_JOB={JOB}"
    deaf = "trap '' INT TERM; while :; do sleep 0.1; done"
    await far.start(f'{mark}; setsid sleep 48 & setsid sh -c "{deaf}" & {deaf}\n')
    async with asyncio.timeout(10):
        while len(await far.ask("left")) < 4:
            await asyncio.sleep(0.05)
    for pid in pgrep("sleep 48"):
        os.kill(pid, signal.SIGSTOP)  # one that was stopped goes on, to hear the signal
    await far.ask("signal", SIG="INT")
    assert pgrep("sleep 48")
    await far.ask("signal", SIG="TERM")
    async with asyncio.timeout(10):
        while pgrep("sleep 48"):
            await asyncio.sleep(0.05)
    assert "sh" in {answer.value.split()[1] for answer in await far.ask("left")}
    await far.ask("signal", SIG="KILL")
    async with asyncio.timeout(10):
        while await far.ask("left"):
            await asyncio.sleep(0.05)


def pgrep(line: str) -> list[int]:
    done = subprocess.run(["pgrep", "-fx", line], capture_output=True, text=True, check=False)
    return [int(pid) for pid in done.stdout.split()]


async def test_without_setsid_another_way_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    names = """sh perl cat sleep mkdir mv rm wc tr tail head cut env grep sed df find kill printf dd
    stat cksum id"""
    for name in names.split():
        if real := shutil.which(name):
            (tools / name).symlink_to(real)
    if not (tools / "perl").exists():
        pytest.skip("NOT TESTED: perl is not installed")
    monkeypatch.setenv("PATH", str(tools))
    far = Far(tmp_path / "jobs", str(tools / "sh"))
    await far.start("echo x; exit 2\n")
    data, answers = await far.follow()
    assert (data, answers[-1].value) == (b"x\n", "exit 2")
    await far.start("sleep 300\n", "20260101-000000-bbbbbb")
    await far.ask("signal", "20260101-000000-bbbbbb", SIG="TERM")
    _, answers = await far.follow(job="20260101-000000-bbbbbb")
    assert answers[-1].value == "exit 143"
    (tmp_path / "f").write_text("abc")
    [answer] = await far.ask("hash", PATHS=str(tmp_path / "f"))
    assert answer.value.startswith("cksum:")


@pytest.mark.parametrize("job", ["../x", "a;b", "-rf", "2026"])
def test_ids_are_checked_before_they_are_sent(job: str) -> None:
    with pytest.raises(UsageError):
        request("clean", J=job)


def test_no_value_can_end_its_assignment() -> None:
    script = request("status", J=JOB, CWD="'; touch /pwned; '").script
    assert "CWD=''\"'\"'; touch /pwned; '\"'\"''\n" in script
