"""The verb: formats, sections, exit codes, what goes to stdout and what to stderr."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from loglines import body, info, init, logs_json, nemo

from nsys_tui.cli import main
from nsys_tui.errors import GATE_HIT, NO_DATA, OK, UNREADABLE, USAGE
from nsys_tui.logs import read_logs
from nsys_tui.logs.sections.tables import SECTIONS

if TYPE_CHECKING:
    from pathlib import Path

Capture = pytest.CaptureFixture[str]

EVIL = "\x1b]0;owned\x07\x1b[2J\x08‮|pipe"


@pytest.fixture
def log(tmp_path: Path) -> str:
    lines = [
        "NCCL version 2.27.7+cuda13.0",
        *(info(init(f"0x{r}", r, 2, device=r), tid=r) for r in (0, 1)),
        info("Ring 00 : 1 -> 0 -> 1", tid=0),
        info("Channel 00/0 : 0[0] -> 1[1] via P2P/IPC", tid=0),
        info("NCCL_P2P_LEVEL set by environment to NVL."),
        info("AllReduce: 4096 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..1}"),
        f"node01:1000:1 [0] init.cc:1 NCCL WARN {EVIL}",
    ]
    for step in range(3):
        lines += [info(body(op_count=step, comm=f"0x{r}", nranks=2), dev=r) for r in (0, 1)]
        lines.append(nemo(step))
    lines.append("[1.0] MPI_Bcast: root=0 bytes=8")
    path = tmp_path / "nccl.log"
    path.write_text("".join(f"{line}\n" for line in lines))
    return str(path)


@pytest.mark.parametrize("section", SECTIONS)
@pytest.mark.parametrize("fmt", ["table", "csv", "markdown"])
def test_every_section_in_every_format(log: str, section: str, fmt: str, capsys: Capture) -> None:
    assert main(["logs", log, "--section", section, "--format", fmt]) == OK
    out = capsys.readouterr().out
    assert out
    if fmt == "csv":
        rows = list(csv.reader(io.StringIO(out)))
        assert len({len(row) for row in rows}) == 1
    else:
        assert not set(out) & {"\x1b", "\x07", "\x08", "‮"}


def test_summary_names_the_figures(log: str, capsys: Capture) -> None:
    assert main(["logs", log]) == OK
    captured = capsys.readouterr()
    for word in ("AllReduce", "6.043000", "1243.000000", "RING", "P2P/IPC", "2.27.7", "owned"):
        assert word in captured.out
    assert "\x1b" not in captured.err


def test_json_escapes_and_keeps_the_text(log: str, capsys: Capture) -> None:
    assert main(["logs", log, "--format", "json"]) == OK
    out = capsys.readouterr().out
    assert "\x1b" not in out
    # Colours and cursor moves are dropped on reading; what is left is kept as it is.
    (warning,) = json.loads(out)["nccl_warnings"]
    assert warning["text"].startswith("0;owned\x07")


def test_call_list_as_csv_and_json_agree(log: str, capsys: Capture) -> None:
    assert main(["logs", log, "--section", "calls", "--format", "csv"]) == OK
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert main(["logs", log, "--calls", "--format", "json"]) == OK
    calls = json.loads(capsys.readouterr().out)["calls"]
    assert [(r["Operation"], r["Bytes"], r["Step"], r["Rank"], r["Line"]) for r in rows] == [
        (c["op"], str(c["bytes"]), str(c["step"]), str(c["rank"]), str(c["line"])) for c in calls
    ]
    assert [(c["rank"], c["step"], c["line"]) for c in calls] == [
        (0, 0, 9),
        (1, 0, 10),
        (0, 1, 12),
        (1, 1, 13),
        (0, 2, 15),
        (1, 2, 16),
    ]


def test_empty_call_list_is_valid_json(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "train.log"
    path.write_text(nemo(1) + "\n")
    assert main(["logs", str(path), "--calls", "--format", "json"]) == OK
    found = json.loads(capsys.readouterr().out)
    assert (found["calls"], found["collective_lines"], found["per_op"]) == ([], 0, {})


def test_long_lists_are_shortened_for_people_and_say_so(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "a.log"
    path.write_text("".join(info(body(count=n)) + "\n" for n in range(1, 31)))
    assert main(["logs", str(path), "--section", "calls"]) == OK
    assert "10 more calls" in capsys.readouterr().out
    assert main(["logs", str(path), "--section", "aggregate", "--top", "3"]) == OK
    assert "27 more sizes" in capsys.readouterr().out
    assert main(["logs", str(path), "--section", "calls", "--format", "csv"]) == OK
    assert len(capsys.readouterr().out.splitlines()) == 31


def test_gates(tmp_path: Path, log: str) -> None:
    assert main(["logs", log, "--fail-on", "mismatch", "--fail-on", "behind"]) == OK
    assert main(["logs", log, "--fail-on", "torn"]) == OK
    path = tmp_path / "bad.log"
    lines = [info(init(f"0x{r}", r, 2), tid=r) for r in (0, 1)]
    lines += [info(body("AllReduce", 1, comm="0x0", nranks=2))]
    lines += [info(body("AllGather", 1, comm="0x1", nranks=2))]
    path.write_text("\n".join(lines))
    assert main(["logs", str(path), "--fail-on", "mismatch"]) == GATE_HIT
    assert main(["logs", str(path), "--fail-on", "behind"]) == OK
    path.write_text("\n".join([*lines, info(body("AllReduce", 2, comm="0x0", nranks=2)), body()]))
    assert main(["logs", str(path), "--fail-on", "behind"]) == GATE_HIT
    assert main(["logs", str(path), "--fail-on", "torn"]) == GATE_HIT


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        ([], USAGE),
        (["--steps", "9-3"], USAGE),
        (["--steps", "a-b"], USAGE),
        (["--buckets", "3,2"], USAGE),
        (["--format", "xml"], USAGE),
        (["--section", "nothing"], USAGE),
        (["--top", "-1"], USAGE),
        (["--trainer", "megatron", "--steps", "1"], USAGE),
    ],
)
def test_usage_errors(log: str, arguments: list[str], status: int, capsys: Capture) -> None:
    files = [log] if arguments else []
    assert main(["logs", *files, *arguments]) == status
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("nsys-tui: ")


def test_files_that_are_no_logs(tmp_path: Path, capsys: Capture) -> None:
    cases = {
        "missing": (tmp_path / "missing\x1b[2J.log", UNREADABLE),
        "folder": (tmp_path, UNREADABLE),
        "empty": (tmp_path / "empty.log", NO_DATA),
        "prose": (tmp_path / "prose.log", NO_DATA),
        "binary": (tmp_path / "binary.log", UNREADABLE),
    }
    (tmp_path / "empty.log").touch()
    (tmp_path / "prose.log").write_text("it was a dark and stormy night\n" * 99)
    (tmp_path / "binary.log").write_bytes(bytes(range(256)) * 99)
    for name, (path, status) in cases.items():
        assert main(["logs", str(path), "--format", "json"]) == status, name
        captured = capsys.readouterr()
        assert ("no_data" in captured.out) == (status == NO_DATA), name
        assert "\x1b" not in captured.err, name
        assert captured.err.count("\n") >= 2, name


def test_debug_time_in_the_environment(
    log: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NCCL_DEBUG_TIME", "1")
    assert main(["logs", log, "--format", "json"]) == OK
    assert "NCCL_DEBUG_TIME is no variable of NCCL" in capsys.readouterr().err


def test_reader_that_leaves_and_standard_input(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text("".join(info(body(op_count=n)) + "\n" for n in range(20_000)))
    command = f"{sys.executable} -m nsys_tui logs - --section calls --format csv"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; cat {path} | {command} | head -1"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.startswith("Line,Step,")
    assert done.stdout.count("\n") == 1
    assert "Traceback" not in done.stderr
    assert done.returncode == 0


def test_json_of_some_sections(log: str, capsys: Capture) -> None:
    def keys(*sections: str) -> list[str]:
        words = [word for name in sections for word in ("--section", name)]
        assert main(["logs", log, "--format", "json", *words]) == 0
        first, *found, last = json.loads(capsys.readouterr().out)
        assert (first, last) == ("schema", "notes")
        return found

    every = keys()
    assert keys("per-op", "histogram") == ["collective_lines", "per_op", "histogram", "window"]
    assert keys("calls") == ["window", "calls"]
    assert "calls" not in every
    for name in SECTIONS:
        assert len(keys(name)) > 1, name
        assert set(keys(name)) - {"calls", "api_calls"} <= set(every)


def test_the_first_lines_say_what_matters(tmp_path: Path, capsys: Capture) -> None:
    times = [9.0, *[1.0] * 9, 4.0]
    form = "completed step: {}, seconds: {}, TFLOP/s/device: 40.25, Tokens/s/device: 80.0"
    log = tmp_path / "log"
    log.write_text("\n".join(form.format(*at) for at in enumerate(times)))
    assert main(["logs", str(log)]) == 0
    first, second, third, *_ = capsys.readouterr().out.splitlines()
    assert first == "In short"
    assert second == (
        "  maxtext: step 10 took 4.000000 s, 4.0 times the median; 1 of 10 timed lines after "
        "warm-up are above 1.5 times"
    )
    assert third == (
        "  maxtext: median step 1.000000 s, p95 2.650000 s, 80.0 tokens/s per GPU, steps 0 to 10"
    )
    log.write_text("\n".join(form.format(*at) for at in enumerate(times[:-1])))
    (said,) = logs_json(read_logs([log]))["in_short"]
    assert "times the median" not in said


def test_a_bandwidth_that_larger_sizes_lose(tmp_path: Path) -> None:
    rows = [f" {size} {size} float sum -1 9.0 {bw} {bw} 0 9.0 100.00 100.00 0" for size, bw in LOST]
    head = ["# out-of-place  in-place", "# size count type redop root time algbw busbw #wrong"]
    log = tmp_path / "log"
    log.write_text("\n".join([*head, *rows]))
    out, inside = logs_json(read_logs([log]))["in_short"]
    assert out == (
        "nccl-tests out-of-place: at most 200.00 GB/s bus bandwidth, at 16 bytes; only 99.00 at 32"
    )
    assert inside == "nccl-tests in-place: at most 100.00 GB/s bus bandwidth, at 8 bytes"


LOST = ((8, "100.00"), (16, "200.00"), (32, "99.00"), (64, "170.00"))
