"""Every verb on files that are damaged, foreign or strange: a plain message or a true view.

Never a traceback, an escape sequence, invalid JSON or a file changed or left beside the report.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
import sqlite3
import subprocess
import sys
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pytest
from demo_making import make_report
from synth import Synth

from nsys_tui.cli import main
from nsys_tui.errors import NO_DATA, NSYS_MISSING, UNREADABLE, USAGE

if TYPE_CHECKING:
    from pathlib import Path

PATH: Final = "{}"
JSON_VERBS: Final = (
    f"overview {PATH} --format json",
    f"stats {PATH} -f json -q",
    f"analyze {PATH} --format json",
    f"stalls {PATH} --format json",
    f"stacks {PATH} --format json",
    f"iterations {PATH} --format json",
    f"collectives {PATH} --format json",
    f"compare {PATH} {PATH} --format json",
    f"fleet {PATH} --format json --workers 1",
    f"export {PATH} --table operations --format json",
    f"export {PATH} --table ranges --format json",
    f"export {PATH} --perfetto -",
)
TEXT_VERBS: Final = (
    f"overview {PATH}",
    f"overview {PATH} --format markdown",
    f"stats {PATH} -f column",
    f"stats {PATH} -r cuda_gpu_trace,nvtx_pushpop_trace -f csv",
    f"analyze {PATH}",
    f"analyze {PATH} -r all",
    f"stalls {PATH}",
    f"stacks {PATH} --across-threads",
    f"stacks {PATH} --format svg",
    f"stacks {PATH} --format tree",
    f"stacks {PATH} --source osrt",
    f"iterations {PATH}",
    f"collectives {PATH}",
    f"compare {PATH} {PATH}",
    f"fleet {PATH} --workers 1",
    f"export {PATH} --table api --format csv",
    f"doctor {PATH}",
    f"open {PATH}",
)
NOT_SENT: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
"""What no terminal may get; a carriage return may end a line of csv or stand in its quotes."""
CALM: Final = {0, NO_DATA}


@dataclass(frozen=True)
class Ran:
    status: int
    out: str
    err: str


def run(capfd: pytest.CaptureFixture[str], verb: str, path: Path, *more: str) -> Ran:
    words = [word.replace(PATH, str(path)) for word in verb.split(" ")] + list(more)
    status = main([words[0], "--no-cache", *words[1:]])
    out, err = capfd.readouterr()
    return Ran(status, out, err)


def state(folder: Path) -> dict[str, str]:
    return {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest()
        for file in folder.iterdir()
        if file.is_file()
    }


def faults(capfd: pytest.CaptureFixture[str], path: Path, statuses: set[int]) -> list[str]:
    """What goes wrong on one report, over all verbs; empty when nothing does."""
    found = []
    before = state(path.parent)
    for verb in (*JSON_VERBS, *TEXT_VERBS):
        ran = run(capfd, verb, path)
        said = ran.err.strip()
        bad = [word for word in ("Traceback", "unexpected fault", "internal error") if word in said]
        if ran.status not in statuses:
            bad.append(f"status {ran.status}")
        if ran.status and not said and not ran.out:
            bad.append("no word of explanation")
        bad += [f"sends {sent.group()!r}" for sent in NOT_SENT.finditer(ran.out + ran.err)]
        if verb in JSON_VERBS and ran.status == 0:
            try:
                json.loads(ran.out, parse_constant=_refuse)
            except ValueError as error:
                bad.append(f"JSON: {error}")
        if bad:
            found.append(f"{verb.replace(PATH, path.name)}: {', '.join(bad[:4])}: {said[-300:]}")
    if state(path.parent) != before:
        found.append("the folder of the report changed")
    return found


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def kernel(synth: Synth, name: str = "gemm", at: int = 0) -> Synth:
    return synth.launch(name, call=(at + 10, at + 20), gpu=(at + 100, at + 400))


def small(folder: Path, name: str = "r.sqlite") -> Path:
    made = Synth(folder / name).process(100, "train").gpu(0).nvtx("step", 0, 900)
    return kernel(made).write()


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = make_report(tmp_path_factory.mktemp("demo") / "demo.sqlite", steps=3)
    return made.report


FOREIGN: Final = {
    "empty.sqlite": (b"", "empty"),
    "text.sqlite": (b"hello\nworld\n", "text"),
    "gzip.sqlite": (gzip.compress(b"x"), "gzip"),
    "picture.sqlite": (b"\x89PNG\r\n\x1a\n" + bytes(100), "PNG"),
    "zeros.sqlite": (bytes(8192), "zeros"),
    "stream.qdstrm": (b"QDSTRM" + bytes(100), "QdstrmImporter"),
    "empty.nsys-rep": (b"", "empty"),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_a_file_that_is_no_export_is_named_and_explained(
    name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    content, cause = FOREIGN[name]
    path = tmp_path / name
    path.write_bytes(content)
    assert faults(capfd, path, {UNREADABLE}) == []
    said = run(capfd, f"overview {PATH}", path)
    assert said.out == ""
    assert name in said.err
    assert cause in said.err


@pytest.mark.parametrize("name", ["a.nsys-rep", "a.qdrep", "renamed.sqlite"])
def test_an_nsys_report_without_nsys_says_how_to_export_it(
    name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nsys_tui.reader.nsys.all_nsys", lambda *_, **__: [])
    path = tmp_path / name
    path.write_bytes(b"NVIDIA Tegra Profiler Report" + bytes(300))
    said = run(capfd, f"overview {PATH}", path)
    assert (said.status, said.out) == (NSYS_MISSING, "")
    assert name in said.err
    assert "nsys export" in said.err


@pytest.mark.parametrize("kind", ["missing", "folder", "pipe", "loop"])
def test_what_is_no_file_is_refused_at_once(
    kind: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / f"{kind}.sqlite"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "loop":
        path.symlink_to(path)
    for verb in JSON_VERBS:
        said = run(capfd, verb, path)
        assert said.status in {UNREADABLE, USAGE}, verb
        assert said.out == "", verb
        assert path.name in said.err, verb


@pytest.mark.parametrize("part", ["header", "middle", "between pages"])
def test_a_report_that_is_cut_off_says_so(
    part: str, demo: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    whole = demo.read_bytes()
    half = len(whole) // 2 // 4096 * 4096
    path = tmp_path / "cut.sqlite"
    path.write_bytes(whole[: {"header": 60, "middle": half + 77, "between pages": half}[part]])
    assert faults(capfd, path, {UNREADABLE}) == []
    assert "cut off" in run(capfd, f"stalls {PATH}", path).err


@pytest.mark.parametrize("page", [1, 2, 30])
def test_a_page_of_zeros_is_refused_or_survived(
    page: int, demo: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    damaged = bytearray(demo.read_bytes())
    damaged[page * 4096 : (page + 1) * 4096] = bytes(4096)
    path = tmp_path / "damaged.sqlite"
    path.write_bytes(damaged)
    assert faults(capfd, path, {*CALM, UNREADABLE}) == []


def test_a_database_of_another_program_is_no_report(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "own.sqlite"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE mine (a)")
    assert faults(capfd, path, {UNREADABLE}) == []


EVIL: Final = (
    "a\x1b[31mred\x1b]0;title\x07",
    "\x9b31m eight bits",
    "[red]markup[/red]",
    "[/]",
    "[@click=app.bell]x[/]",
    "\u202egnp.exe",
    "emoji \U0001f525 wide \u5bbd\u5b57",
    "x" * 100_000,
    "nul\0inside",
    "line\nbreak\ttab\rreturn",
    "semi;colon,\"quotes' |pipe| `tick`",
    "</script><b>&amp;",
    "%s {0} $(id)",
    "",
)


@pytest.fixture(scope="module")
def evil(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("evil")
    made = Synth(folder / "evil.sqlite").process(100, "pro\x1b[5mc").gpu(0, name="GPU\x1b[31m[red]")
    made.thread(100, "main\x1b[0m[bold]")
    for place, name in enumerate(EVIL):
        kernel(made.nvtx(name, place * 1000, place * 1000 + 900), name, place * 1000)
    return made.write()


def printed(words: list[str]) -> bytes:
    """What a terminal gets from a command whose standard output it is, without our own colours."""
    near, far = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "nsys_tui", *words],
        stdout=far, stderr=far, env={**os.environ, "NO_COLOR": "1"},
    )  # fmt: skip
    os.close(far)
    received = b""
    with suppress(OSError):  # the terminal's end when the command left
        while block := os.read(near, 65536):
            received += block
    os.close(near)
    process.wait(30)
    return received


@pytest.mark.parametrize(
    "verb",
    [
        f"overview {PATH} --format csv",
        f"export {PATH} --table ranges --format csv",
        f"stats {PATH} -r cuda_gpu_trace -f csv",
        f"stacks {PATH} --format svg",
        f"overview {PATH}",
    ],
)
def test_a_terminal_gets_no_escape_sequence_of_a_name(verb: str, evil: Path) -> None:
    words = [word.replace(PATH, str(evil)) for word in verb.split(" ")]
    received = printed(words)
    assert b"red" in received
    text = received.decode().replace("\r\n", "\n")
    assert set(re.findall("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]", text)) == set()


def test_a_file_name_with_escapes_reaches_no_terminal(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "c\x1b[31ml\u202e.sqlite"
    path.write_bytes(b"hello")
    said = run(capfd, f"overview {PATH}", path)
    assert said.status == UNREADABLE
    assert "\x1b" not in said.err
    assert "\u202e" not in said.err
    assert "\u241b[31ml" in said.err


def test_a_fleet_of_reports_without_api_calls_has_its_collectives(
    demo: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "no-api.sqlite"
    path.write_bytes(demo.read_bytes())
    with closing(sqlite3.connect(path)) as db:
        db.execute("DROP TABLE CUPTI_ACTIVITY_KIND_RUNTIME")
    said = run(capfd, f"fleet {PATH} --format json --workers 1", path)
    assert said.status == 0
    assert "Traceback" not in said.err
    assert json.loads(said.out)["sections"]["collectives"]


def test_what_goes_wrong_inside_a_fleet_is_no_traceback(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise IndexError("planted")

    monkeypatch.setattr("nsys_tui.fleet.mapping.summarise", fails)
    said = run(capfd, f"fleet {PATH} --workers 1", small(tmp_path))
    assert said.status == UNREADABLE
    assert "planted" in said.err
    assert "Traceback" not in said.err


LAST: Final = 2**63 - 1


@pytest.mark.parametrize(
    "times",
    [
        [(LAST, LAST)],
        [(0, 100), (LAST - 1000, LAST)],
        [(-LAST - 1, -LAST + 1000), (0, 100)],
        [(-LAST - 1, LAST), (5, 10)],
        [(1000, 10), (500, 100)],
        [(-1000, -500), (-400, 100)],
    ],
    ids=["the last instant", "late", "early", "all of time", "backwards", "negative"],
)
def test_absurd_times_are_survived(
    times: list[tuple[int, int]], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    made = Synth(tmp_path / "times.sqlite").process(100, "train").gpu(0)
    for start, end in times:
        made.nvtx("step", start, end).launch("gemm", call=(start, end), gpu=(start, end))
    assert faults(capfd, made.write(), CALM) == []


def test_json_is_valid_whatever_names_hold(evil: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for verb in JSON_VERBS:
        said = run(capfd, verb, evil)
        assert said.status in CALM, verb
        if said.status == 0:
            json.loads(said.out, parse_constant=_refuse)


@pytest.mark.parametrize(
    "name", ["sp ace", "q'uo\"te", "ha#sh", "query?mode=rwc", "per%20cent", "a:b", "x;y", "\udcff"]
)
def test_odd_file_names_are_opened_as_they_are(
    name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = small(tmp_path, f"{name}.sqlite")
    before = state(tmp_path)
    for verb in (f"overview {PATH}", f"stalls {PATH} --format json", f"doctor {PATH}"):
        status = main([word.replace(PATH, str(path)) for word in verb.split(" ")])
        assert status == 0, capfd.readouterr().err
    assert state(tmp_path) == before


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_a_report_that_somebody_writes_is_read_or_refused_unchanged(
    mode: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = small(tmp_path)
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute(f"PRAGMA journal_mode = {mode}")
        writer.execute("BEGIN EXCLUSIVE")
        writer.execute("INSERT INTO StringIds VALUES (4711, 'new')")
        before = state(tmp_path)
        said = run(capfd, f"overview {PATH}", path)
        assert said.status in {0, UNREADABLE}
        assert "fault" not in said.err
        assert state(tmp_path) == before


@pytest.mark.parametrize(
    "damage",
    [
        "DROP TABLE StringIds",
        "DELETE FROM StringIds",
        "DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL",
        "DELETE FROM CUPTI_ACTIVITY_KIND_RUNTIME",
        "DROP TABLE NVTX_EVENTS",
        "UPDATE NVTX_EVENTS SET eventType = 999",
        "UPDATE NVTX_EVENTS SET text = CAST(x'ff41c328' AS TEXT)",
        "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET correlationId = 7",
        "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = 'oops'",
        "DROP TABLE TARGET_INFO_GPU",
        "CREATE VIEW broken AS SELECT * FROM nowhere",
    ],
)
def test_a_report_that_lacks_something_is_read_as_far_as_it_goes(
    damage: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = small(tmp_path)
    with closing(sqlite3.connect(path)) as db:
        db.execute(damage)
        db.commit()
    assert faults(capfd, path, CALM) == []


def test_a_reader_that_leaves_after_a_line_hears_nothing_else(evil: Path) -> None:
    for verb in ("stacks", "stats", "overview"):
        words = [sys.executable, "-m", "nsys_tui", verb, str(evil)]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdout.readline()
            process.stdout.close()
            said = process.stderr.read().decode()
        assert process.returncode == 0, verb
        assert "Traceback" not in said, verb
        assert "Broken" not in said, verb
