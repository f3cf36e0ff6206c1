"""What shells are offered, and that bash, zsh and fish really take it."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from synth import Synth

from nsys_tui.commands.completion import with_open

if TYPE_CHECKING:
    from pathlib import Path

PATIENCE = 60


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report, a target, a capture and a baseline, and the program on PATH."""
    folder = tmp_path_factory.mktemp("completion")
    Synth(folder / "small.sqlite").process(1, "train").gpu().write()
    (folder / "config.toml").write_text('[targets.gpu-box]\nhost = "gpu-box"\n')
    state = folder / "state" / "nsys-tui"
    (state / "captures" / "20260101-000000-abcdef").mkdir(parents=True)
    (state / "captures" / "20260101-000000-abcdef" / "record.json").write_text("{}")
    (state / "baselines").mkdir()
    (state / "baselines" / "main.json").write_text("{}")
    program = folder / "nsys-tui"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m nsys_tui "$@"\n')
    program.chmod(0o700)
    return folder


def environment(place: Path) -> dict[str, str]:
    own = {
        "PATH": f"{place}:{os.environ['PATH']}",
        "NSYS_TUI_CONFIG": str(place / "config.toml"),
        "XDG_STATE_HOME": str(place / "state"),
        "HOME": str(place),
        "TERM": "dumb",
    }
    return {**os.environ, **own}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("small.sqlite --theme li", "light"),
        ("--theme li", "light"),
        ("overview small.sqlite --section ker", "kernels"),
        ("keys --keys v", "vim"),
        ("stats small.sqlite -r cuda_gpu_kern", "cuda_gpu_kern_sum"),
        ("stats small.sqlite -r nvtx_sum,cuda_gpu_kern", "nvtx_sum,cuda_gpu_kern_sum"),
        ("stats small.sqlite -f js", "json"),
        ("analyze small.sqlite -r gpu_ga", "gpu_gaps"),
        ("export small.sqlite --table ker", "kernels"),
        ("open small.sqlite --print tim", "timeline"),
        ("capture gpu", "gpu-box"),
        ("capture --trace cuda,nv", "cuda,nvtx"),
        ("targets check gpu", "gpu-box"),
        ("captures log 2026", "20260101-000000-abcdef"),
        ("compare small.sqlite --baseline mai", "main"),
        ("explain exposed", "exposed communication"),
    ],
)
def test_values_are_offered(place: Path, words: str, expected: str) -> None:
    line = f"nsys-tui {words}"
    asked = {"_ARGCOMPLETE": "1", "_ARGCOMPLETE_SHELL": "fish", "_ARGCOMPLETE_IFS": "\n"}
    asked |= {"_ARGCOMPLETE_STDOUT_FILENAME": str(place / "answer")}
    asked |= {"COMP_LINE": line, "COMP_POINT": str(len(line))}
    command = [sys.executable, "-m", "nsys_tui"]
    subprocess.run(command, cwd=place, env=environment(place) | asked, check=True)
    offered = (place / "answer").read_text().splitlines()
    assert expected in [text.partition("\t")[0].strip() for text in offered]


def test_a_report_in_front_means_open() -> None:
    assert with_open("nsys-tui r.sqlite --th", 22, ["open"]) == ("nsys-tui open r.sqlite --th", 27)
    for line in ("nsys-tui r.sq", "nsys-tui open r --th", "nsys-tui --version ", "nsys-tui "):
        assert with_open(line, len(line), ["open"]) == (line, len(line))


@pytest.mark.parametrize("before", [" ", "true; ", "cat x | ", "A=1 ", "sudo "])
def test_what_stands_before_the_program_is_no_report(before: str) -> None:
    for line in ("nsys-tui sql --", "dir/nsys-tui sql --"):
        assert with_open(before + line, len(before + line), ["sql"]) == (line, len(line))


def need(shell: str) -> str:
    if (path := shutil.which(shell)) is None:
        pytest.skip(f"needs {shell}, which is not here: apt-get install {shell}")
    return path


@pytest.mark.parametrize(
    ("words", "expected"), [("analyze smal", "small.sqlite"), ("keys --keys vi", "vim")]
)
def test_fish_takes_the_answer(place: Path, words: str, expected: str) -> None:
    script = f'nsys-tui completion fish | source; complete -C "nsys-tui {words}"'
    command = [need("fish"), "--no-config", "-c", script]
    done = subprocess.run(
        command, cwd=place, env=environment(place), capture_output=True, text=True, check=True
    )
    assert expected in [line.partition("\t")[0].strip() for line in done.stdout.splitlines()]


def test_fish_offers_a_verb_its_own_options_alone(place: Path) -> None:
    script = 'nsys-tui completion fish | source; complete -C "true; nsys-tui completion --"'
    command = [need("fish"), "--no-config", "-c", script]
    done = subprocess.run(
        command, cwd=place, env=environment(place), capture_output=True, text=True, check=True
    )
    assert done.stdout.split()[:1] == ["--help"]
    assert done.stdout.count("--") == 1


@pytest.mark.parametrize(
    ("words", "expected"), [("analyze smal", "small.sqlite"), ("keys --keys vi", "vim")]
)
def test_bash_takes_the_answer(place: Path, words: str, expected: str) -> None:
    line = f"nsys-tui {words}"
    script = (
        f'eval "$(nsys-tui completion bash)"; COMP_LINE="{line}"; COMP_POINT={len(line)}; '
        '_python_argcomplete nsys-tui; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    command = [need("bash"), "--norc", "-c", script]
    done = subprocess.run(
        command, cwd=place, env=environment(place), capture_output=True, text=True, check=True
    )
    assert expected in [text.strip() for text in done.stdout.splitlines()]


def test_zsh_takes_the_answer_at_its_prompt(place: Path) -> None:
    near, far = pty.openpty()
    shell = subprocess.Popen(
        [need("zsh"), "-f", "-i"], cwd=place, env=environment(place),
        stdin=far, stdout=far, stderr=far, start_new_session=True,
    )  # fmt: skip
    os.close(far)
    ready = select.poll()  # select() takes no number beyond 1023, which many open files reach
    ready.register(near, select.POLLIN)

    def until(text: str) -> None:
        seen, end = "", time.monotonic() + PATIENCE
        while text not in seen:
            assert time.monotonic() < end, seen
            if ready.poll(1000):
                seen += os.read(near, 65536).decode(errors="replace")

    try:
        start = 'autoload -U compinit; compinit -u -d zcompdump; eval "$(nsys-tui completion zsh)"'
        os.write(near, f"{start}; echo rea''dy\n".encode())
        until("ready\r\n")
        os.write(near, b"nsys-tui analyze smal\t")
        until("small.sqlite")
        os.write(near, b"\x15nsys-tui keys --keys vi\t")
        until("vim")
        os.write(near, b"\x15true; nsys-tui sql small.sqlite --tabl\t")
        until("--tables")
    finally:
        shell.kill()
        shell.wait()
        os.close(near)
