from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
HEAVY = ("textual", "rich", "pandas", "numpy", "sqlite3", "dask", "pyarrow", "tomllib")


def imported_by(statement: str) -> set[str]:
    """Heavy packages that a statement loads in a fresh interpreter."""
    code = f"import sys, json\n{statement}\nprint(json.dumps(sorted(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = json.loads(run.stdout.splitlines()[-1])
    return {name.partition(".")[0] for name in modules} & set(HEAVY)


@pytest.mark.parametrize(
    ("statement", "allowed"),
    [
        ("import nsys_tui", set()),
        ("import nsys_tui.cli", set()),
        ("import nsys_tui.config", set()),
        ("import nsys_tui.model.report", {"numpy"}),
        ("import nsys_tui.analysis.stacks.folding, nsys_tui.analysis.overview", {"numpy"}),
        ("import nsys_tui.analysis.stalls.gaps, nsys_tui.analysis.stats.reports", {"numpy"}),
        ("import nsys_tui.render.raster", {"numpy"}),
        ("import nsys_tui.reader.source", {"numpy", "sqlite3"}),
        (
            "import nsys_tui.ui.app, nsys_tui.ui.screens.overview.screen",
            {"numpy", "rich", "textual", "tomllib"},
        ),
    ],
)
def test_a_room_loads_only_what_it_may(statement: str, allowed: set[str]) -> None:
    assert imported_by(statement) <= allowed


def test_version_and_help_load_nothing_heavy() -> None:
    for arguments in (["--version"], ["--help"]):
        statement = f"from nsys_tui.cli import main\nmain({arguments!r})"
        assert imported_by(statement) == set()


def test_every_verb_explains_itself() -> None:
    from nsys_tui.cli import VERBS, main

    for verb in VERBS:
        assert main([verb, "--help"]) == 0


def test_layers_hold() -> None:
    command = [sys.executable, "-m", "importlinter.cli", "lint"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if "No module named" in run.stderr:
        pytest.skip("needs import-linter: pip install -e '.[dev]'")
    assert run.returncode == 0, run.stdout


def test_no_imports_go_round_in_circles() -> None:
    """Also deferred imports and those for types alone: what needs each other is one module."""
    grimp = pytest.importorskip("grimp", reason="pip install -e '.[dev]'")
    graph = grimp.build_graph("nsys_tui")
    left = set(graph.modules)

    def is_end(name: str) -> bool:
        needed = graph.find_modules_directly_imported_by(name)
        needing = graph.find_modules_that_directly_import(name)
        return not needed & left or not needing & left

    while ends := {name for name in left if is_end(name)}:
        left -= ends
    assert left == set()


def test_what_drives_real_programs_stands_where_the_script_looks() -> None:
    marked = [path for path in TESTS.rglob("*.py") if re.search(r"mark\.e2e", path.read_text())]
    assert marked
    assert {path.parent for path in marked} == {TESTS / "e2e"}
    assert "-m e2e tests/e2e " in (TESTS / "run").read_text()


def test_the_script_says_at_once_that_it_needs_a_newer_python(tmp_path: Path) -> None:
    """Before pip is asked, which would try all old versions of every package first."""
    for name in ("tests/run", "demo/venv.sh", "pyproject.toml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(TESTS.parent / name, tmp_path / name)
    tools = tmp_path / "bin"
    tools.mkdir()
    for tool in ("bash", "cat", "cksum", "dirname"):
        (tools / tool).symlink_to(Path("/usr/bin") / tool)
    old = tools / "python3"
    old.write_text('#!/usr/bin/env bash\n[ "$1" = --version ] && echo Python 3.10.12\nexit 1\n')
    old.chmod(0o755)
    run = subprocess.run(
        ["/usr/bin/env", "bash", str(tmp_path / "tests/run"), "tests/unit"],
        env={"PATH": str(tools)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 69
    assert "no Python >= 3.11 found; python3 is" in run.stderr
    assert not (tmp_path / ".venv").exists()


def test_the_system_packages_that_tests_ask_for_are_installed_by_their_script() -> None:
    lists = re.findall(r"system_packages\+?=\(([^)]*)\)", (TESTS / "run").read_text())
    asked = set(" ".join(_asked(path) for path in TESTS.rglob("test_*.py")).split())
    asked |= set(" ".join(_asked(path) for path in TESTS.rglob("*_lab.py")).split())
    assert {"openssh-server", "munge", "podman"} <= asked
    assert asked <= set(" ".join(lists).split())


def _asked(path: Path) -> str:
    """Packages that a test names: for ``need``, and by the login shells it goes through."""
    text = path.read_text("utf-8")
    shells = re.search(r"LOGIN_SHELLS[^{]*\{([^}]*)\}", text)
    found = re.findall(r'package="([a-z0-9 -]+)"', text)
    return " ".join([*found, *re.findall(r'"(\w+)"', shells[1] if shells else "")])


# Words of nsys's schema that mean something else, or are told to the user, in these files.
MEANT = {
    "analysis/compare/comparability.py: GPU_METRICS",  # a setting of the capture, by its name
    "analysis/nccl/collectives.py: jsonText",
    "capture/profile_again.py: META_DATA_CAPTURE",
    "logs/nccl/communicators.py: localRank",  # NCCL's
}


def _nsys_words(source: str) -> set[str]:
    """Names of nsys's tables and columns in the literals of a source, docstrings left out.

    Words that nsys shares with everybody (``start``, ``bytes``, GUID as a heading) cannot be told
    apart and may stand anywhere; so only names in camelCase or with underscores count.
    """
    from nsys_tui.reader.schema import TABLES

    named = {
        name
        for table in TABLES.values()
        for column in table.columns.values()
        for name in (table.name.rstrip("*"), column.name, *column.aliases)
        if re.search("_|[a-z][A-Z]", name)
    }
    tree = ast.parse(source)
    documented = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    literals = {node for node in ast.walk(tree) if isinstance(node, ast.Constant)} - documented
    words = {word for node in literals for word in re.findall(r"\w+", str(node.value))}
    return {word for word in words if word in named or "CUPTI_ACTIVITY" in word}


def test_what_nsys_calls_things_stands_in_the_reader_alone() -> None:
    package = TESTS.parent / "nsys_tui"
    rooms = {path.relative_to(package): path for path in package.rglob("*.py")}
    found = {
        f"{name}: {word}"
        for name, path in rooms.items()
        if name.parts[0] not in ("reader", "demo")
        for word in _nsys_words(path.read_text())
    }
    assert found == MEANT, "ask the report for a Kind and its fields instead"


@pytest.mark.parametrize(
    "planted",
    [
        'report.rows(kind, "correlationId")',
        'connection.execute("SELECT start FROM NVTX_EVENTS WHERE end > ?", [0])',
        'sql = f"SELECT {field} FROM CUPTI_ACTIVITY_KIND_NEW"',
        'row["globalTid"]',
    ],
)
def test_a_name_of_nsys_is_seen_wherever_it_stands(planted: str) -> None:
    assert _nsys_words(f'"""Of correlationId."""\n{planted}')
    assert not _nsys_words(f'"""Of {planted.replace(chr(34), "")}."""')


SUBJECT = re.compile(r"(?=.{1,72}$)\w[\w ,/.-]*: \S.*")
"""``area: what changed, in plain words``, on one line."""


@pytest.mark.parametrize(
    ("subject", "fits"),
    [
        ("help, overview: marks as they are drawn", True),
        ("tests/run: " + 61 * "w", True),
        ("tests/run: " + 62 * "w", False),
        ("marks as they are drawn", False),
        ("overview:marks as they are drawn", False),
        ("overview: ", False),
        (": marks as they are drawn", False),
    ],
)
def test_a_subject_is_an_area_and_words(subject: str, fits: bool) -> None:
    assert bool(SUBJECT.match(subject)) is fits


def test_subjects_of_commits_have_their_form() -> None:
    """Those written since this was checked; others stand in the history before it."""
    since = ["git", "log", "--since=2026-11-27T19:06:00Z", "--format=%s"]
    run = subprocess.run(since, cwd=TESTS.parent, capture_output=True, text=True, check=False)
    if run.returncode:
        pytest.skip("needs the history: git clone")
    assert [subject for subject in run.stdout.splitlines() if not SUBJECT.match(subject)] == []
