"""Profile again as a person does it: keys in a terminal, over a real ssh, to the new report."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from capture_support import stand_in
from e2e.capture_lab import Lab, make_lab
from e2e.test_tmux import Terminal
from synth import Synth

from nsys_tui.capture.record import Store

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux: apt-get install tmux"),
]

NASTY = (
    "a b",
    "it's",
    '"q"',
    "$(touch pwned)",
    "`x`",
    "$HOME",
    "*",
    "",
    "--x",
    "-",
    "é✓",
    "\\",
    "~",
)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with make_lab(tmp_path_factory.mktemp("tmux") / "ssh") as lab:
        yield lab


@pytest.fixture
def report(tmp_path: Path) -> Path:
    """A report that says how it was made."""
    synth = Synth(tmp_path / "first.sqlite").process(1000).kernel("k", 0, 10)
    rows = [("COMMAND", "sh"), ("ARGUMENT_0", "-c"), ("ARGUMENT_1", "echo $#; sleep 1; exit 3")]
    rows += [(f"ARGUMENT_{number}", word) for number, word in enumerate(("sh", *NASTY), 2)]
    for name, value in rows:
        synth.add("META_DATA_CAPTURE", name=f"PROCESS_0:{name}", value=value)
    synth.add("META_DATA_CAPTURE", name="CAPTURE_EVENT_TYPE", value="Cuda")
    return synth.write()


@pytest.fixture
def home(lab: Lab, tmp_path: Path, report: Path) -> Path:
    """A config with one target behind a jump host, whose nsys copies the report."""
    nsys = stand_in(tmp_path / "bin")
    (tmp_path / "work").mkdir()
    env = {
        "FAKE_NSYS_DUMP": str(tmp_path / "dump"), "FAKE_NSYS_SQLITE": str(report),
        "FAKE_NSYS_SIZE": "40000000",
    }  # fmt: skip
    pairs = ", ".join(f'{name} = "{value}"' for name, value in env.items())
    (tmp_path / "config.toml").write_text(
        f'[capture]\nssh = ["ssh", "-F", "{lab.config}"]\ndefault_target = "gpu-box"\n'
        f'[targets.gpu-box]\nhost = "jumped"\ncwd = "{tmp_path}/work"\nnsys = "{nsys}"\n'
        f'jobs_dir = "{tmp_path}/jobs"\nenv = {{ {pairs} }}\n'
    )
    return tmp_path


@pytest.fixture
def opened(home: Path) -> Iterator[list[Terminal]]:
    terminals: list[Terminal] = []
    yield terminals
    for terminal in terminals:
        terminal.end()


def at(home: Path, columns: int, lines: int, opened: list[Terminal]) -> Terminal:
    names = {"CONFIG": "conf", "STATE": "state", "CACHE": "cache"}
    own = {f"XDG_{name}_HOME": str(home / folder) for name, folder in names.items()}
    own |= {"TMUX": "", "LC_ALL": "C.UTF-8", "TERM": "xterm-256color"}
    own |= {"NSYS_TUI_CONFIG": str(home / "config.toml")}
    terminal = Terminal(columns, lines, {**os.environ, **own})
    opened.append(terminal)
    return terminal


@pytest.mark.parametrize(("columns", "lines"), [(80, 24), (160, 45)])
def test_from_p_to_the_opened_report(
    home: Path, report: Path, opened: list[Terminal], columns: int, lines: int
) -> None:
    terminal = at(home, columns, lines, opened)
    terminal.start(str(report))
    terminal.until("1 Over")
    terminal.press("p")
    terminal.until("JOB/sh")
    terminal.press("Enter")
    terminal.until(lambda screen: f"│{len(NASTY)} " in screen)
    terminal.until("came home", 60)
    terminal.press("o")
    terminal.until(lambda screen: "sh.sqlite" in screen.splitlines()[0])
    calls = (home / "dump").read_bytes().split(b"\0\n")
    program = [b"sh", b"-c", b"echo $#; sleep 1; exit 3", b"sh", *map(os.fsencode, NASTY)]
    seen = calls[0].split(b"\0")
    assert seen[: seen.index(b"cwd") - 1][-len(program) :] == program
    assert not list(home.rglob("pwned"))
    [record] = Store(home / "state" / "nsys-tui" / "captures").all()
    assert record.program_exit == 3
    fetched = Path(record.reports[0].local)
    assert fetched.read_bytes() == Path(record.reports[0].path).read_bytes()


def test_killed_in_mid_fetch_and_taken_up_by_one_key(
    home: Path, report: Path, lab: Lab, opened: list[Terminal]
) -> None:
    config = home / "config.toml"
    config.write_text(config.read_text().replace('"40000000"', '"400000000"'))
    terminal = at(home, 100, 30, opened)
    terminal.start(str(report))
    terminal.until("[1 Over")
    terminal.press("p")
    terminal.until("JOB/sh")
    terminal.press("Enter")
    terminal.until("fetching sh.nsys-rep", 60)
    [pid] = app_pids(report)
    os.kill(pid, signal.SIGKILL)
    terminal.until("ended with status 137")
    again = at(home, 100, 30, opened)
    again.start(str(report))
    again.until("1 capture not finished on gpu-box")
    again.press("9")
    again.until("A attaches")
    again.press("A")
    again.until("came home", 60)
    [record] = Store(home / "state" / "nsys-tui" / "captures").all()
    fetched = Path(record.reports[0].local)
    assert fetched.read_bytes() == Path(record.reports[0].path).read_bytes()
    assert [call.split(b"\0")[0] for call in (home / "dump").read_bytes().split(b"\0\n")[:-1]] == [
        b"profile", b"export",
    ]  # fmt: skip


def app_pids(report: Path) -> list[int]:
    """The app itself, not the shell and tmux that were started with the same words."""
    time.sleep(0.1)
    words = [sys.executable, "-m", "nsys_tui", str(report)]
    listed = subprocess.run(["ps", "-ewwo", "pid,args"], capture_output=True, text=True, check=True)
    lines = [line.split(None, 1) for line in listed.stdout.splitlines()[1:]]
    return [int(pid) for pid, args in lines if args == " ".join(words)]
