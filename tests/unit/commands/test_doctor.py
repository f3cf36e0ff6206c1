from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from synth import Synth

from nsys_tui.cli import VERBS, main
from nsys_tui.errors import UnreadableReportError
from nsys_tui.paths import state_folder


@pytest.fixture
def small(tmp_path: Path) -> Path:
    synth = Synth(tmp_path / "small.sqlite").process(1, "train").gpu()
    return Path(synth.launch("k(int)", (0, 5), (10, 20)).write())


def test_doctor_says_what_was_found_and_why(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("LANG", "C")
    monkeypatch.delenv("LC_ALL", raising=False)
    monkeypatch.delenv("LC_CTYPE", raising=False)
    monkeypatch.setenv("SSH_CONNECTION", "1 2 3 4")
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert "256 (TERM=xterm-256color)" in out
    assert "ASCII (LANG=C is not UTF-8)" in out
    assert "OSC 52 (over SSH)" in out
    assert str(state_folder()) in out
    assert "presets: default, azerty, dvorak, vim" in out
    assert "problem" not in out


def test_doctor_lists_what_a_report_holds_and_how_to_record_the_rest(
    small: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", str(small), "--no-cache"]) == 0
    out = capsys.readouterr().out
    assert "yes   kernels" in out
    assert "--gpu-metrics-devices" in out


def test_doctor_on_an_unreadable_report_says_so_and_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = tmp_path / "bad.sqlite"
    bad.touch()
    assert main(["doctor", str(bad)]) == UnreadableReportError.exit_code
    out = capsys.readouterr().out
    assert "cannot be read" in out
    assert "bad.sqlite" in out


def test_doctor_names_clashing_and_unknown_keys(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "config.toml"
    config.write_text('[keys.bindings]\n"app.quit" = ["y"]\n"no.such" = ["z"]\n')
    monkeypatch.setenv("NSYS_TUI_CONFIG", str(config))
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert "y means both copy.cell and app.quit" in out
    assert "no action named no.such" in out


def test_the_configured_cache_is_the_one_that_is_looked_at_and_written_into(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "config.toml"
    config.write_text(f'[cache]\ndir = "{tmp_path}/chosen"\n')
    monkeypatch.setenv("NSYS_TUI_CONFIG", str(config))
    monkeypatch.delenv("NSYS_TUI_CACHE", raising=False)
    assert main(["doctor", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["Cache"]["folder"] == [f"{tmp_path}/chosen"]
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert main(["demo", "--steps", "1"]) == 0
    assert (tmp_path / "chosen" / "demo.sqlite").is_file()


def test_open_without_a_terminal_prints_the_text_overview(
    small: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(small), "--no-cache"]) == 0
    out = capsys.readouterr().out
    assert "small.sqlite" in out
    assert "Test GPU" in out


def completions(words: str, folder: Path, shell: str = "bash") -> list[str]:
    """What comes next after these words, by the questions that the shells' code asks."""
    answer = folder / "answer"
    asked = {"_ARGCOMPLETE": "1", "_ARGCOMPLETE_SHELL": shell, "_ARGCOMPLETE_IFS": "\n"}
    asked |= {"_ARGCOMPLETE_STDOUT_FILENAME": str(answer)}
    asked |= {"COMP_LINE": words, "COMP_POINT": str(len(words))}
    command = [sys.executable, "-m", "nsys_tui"]
    done = subprocess.run(command, cwd=folder, env={**os.environ, **asked}, capture_output=True)
    assert done.returncode == 0
    return [line.strip() for line in answer.read_text().splitlines()]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_every_verb(
    shell: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["completion", shell]) == 0
    assert "nsys-tui" in capsys.readouterr().out
    offered = completions("nsys-tui ", tmp_path, shell)
    assert set(VERBS) <= {line.partition(":")[0] for line in offered}
    assert shell != "zsh" or f"stalls:{VERBS['stalls']}" in offered


@pytest.mark.skipif(not shutil.which("bash"), reason="needs bash")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("nsys-tui doct", "doctor"),
        ("nsys-tui overview --form", "--format"),
        ("nsys-tui overview --format js", "json"),
        ("nsys-tui smal", "small.sqlite"),
        ("nsys-tui overview smal", "small.sqlite"),
        ("nsys-tui baseline sa", "save"),
        ("nsys-tui baseline save name smal", "small.sqlite"),
        ("nsys-tui baseline save --no-c", "--no-cache"),
        ("nsys-tui capture --pres", "--preset"),
        ("nsys-tui completion ", "zsh"),
    ],
)
def test_bash_completion_completes(small: Path, words: str, expected: str) -> None:
    assert expected in completions(words, small.parent)


@pytest.mark.skipif(not shutil.which("bash"), reason="needs bash")
def test_the_code_for_bash_asks_and_takes_the_answer(small: Path, tmp_path: Path) -> None:
    program = tmp_path / "nsys-tui"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m nsys_tui "$@"\n')
    program.chmod(0o700)
    words = "nsys-tui stacks smal"
    script = (
        f'eval "$(nsys-tui completion bash)"; COMP_LINE="{words}"; COMP_POINT={len(words)}; '
        '_python_argcomplete nsys-tui; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-c", script], cwd=small.parent, capture_output=True, text=True, env=env
    )
    assert done.stderr == ""
    assert done.stdout.split() == ["small.sqlite"]
