"""Stamps lifted off whole blocks against the same stamps read line by line."""

from __future__ import annotations

import tempfile
from pathlib import Path
from unittest import mock

from hypothesis import example, given, settings
from hypothesis import strategies as st
from loglines import body, info, logs_json, nemo

from nsys_tui.logs import LogResult, read_logs

FSDP = "[INFO] __main__: Batch {n} Loss: 11.0, Speed: 1.17 samples/sec, lr: 0.000031"


def dates(draw: st.DrawFn) -> str:
    year, month, day = (
        draw(st.integers(1968, 2201)),
        draw(st.integers(0, 13)),
        draw(st.integers(0, 32)),
    )
    clock = ":".join(f"{draw(st.integers(0, top)):02}" for top in (24, 60, 61))
    return f"{year}-{month:02}-{day:02}{draw(st.sampled_from(' T_'))}{clock}"


@st.composite
def fronts(draw: st.DrawFn) -> str:
    digits = draw(st.sampled_from(["", ".5", ",123", ".123456", ".123456789"]))
    zone = draw(st.sampled_from(["", "Z", "+08:00", "-0330"]))
    stamp = dates(draw) + digits + zone
    stamp = draw(st.sampled_from([stamp, stamp, "06:33:24" + digits, "1737900000.25"]))
    return draw(st.sampled_from(["{} ", "[{}] ", "({}) ", "{}: ", "{} x "])).format(stamp)


@st.composite
def logs(draw: st.DrawFn) -> str:
    label = draw(st.sampled_from(["", "3: ", "12: ", "[rank0]: ", "[pod/a-1/c] "]))
    shapes = [label + front for front in draw(st.lists(fronts(), min_size=1, max_size=3))]
    text = ""
    for n in range(draw(st.integers(1, 12))):
        front = draw(st.sampled_from([*shapes, ""]))
        line = info(body(op_count=n))
        if not front and draw(st.booleans()):
            micros = draw(st.integers(10**9, 10**18))
            line = line.replace("NCCL", f"{micros} NCCL")
        others = (info("Using network IB"), nemo(n), FSDP.format(n=n), FSDP.format(n=n) + line)
        line = draw(st.sampled_from([line, line, *others]))
        text += front + line + draw(st.sampled_from(["\n", "\r\n"]))
    return text


def everything(result: LogResult) -> object:
    found = logs_json(result, "calls")
    times = result.calls.select().time_ns[~result.calls.select().torn].tolist()
    return found, times, result.step_lines, result.processes


FULL_AND_BROKEN_SECONDS = "\n".join(
    f"2026-01-01 00:00:00{fraction} {info(body(op_count=n))}"
    for n, fraction in enumerate(("", ".5", ""))
)
GLUED_AFTER_A_TIME = (
    f"1968-00-00 00:00:00 {info(body(op_count=0))}\n"
    f"1968-00-00 00:00:00 {FSDP.format(n=3)}{info(body(op_count=3))}\n"
)
LABEL_BEFORE_A_GLUED_STEP = (
    f"3: 2026-01-01 00:00:00.5 {FSDP.format(n=0)}{info(body(op_count=0))}\n"
    f"3: 2026-01-01 00:00:00.5 {info(body(op_count=1))}\n"
)


@settings(max_examples=150, deadline=None)
@given(logs())
@example(LABEL_BEFORE_A_GLUED_STEP)
@example(FULL_AND_BROKEN_SECONDS)
@example(GLUED_AFTER_A_TIME)
def test_lifting_stamps_changes_nothing(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "a.log"
        log.write_text(text, newline="")
        lifted = everything(read_logs([log]))
        with mock.patch("nsys_tui.logs.line_prefixes._shapes", return_value={}):
            assert lifted == everything(read_logs([log]))
