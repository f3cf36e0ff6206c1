"""The table of options that an nsys gives itself; its layout is theirs, the words here are ours."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from capture_support import make_place

from nsys_tui.capture.capture import preflight
from nsys_tui.capture.options.target_facts import WHOLE, OwnOption, read_help

if TYPE_CHECKING:
    from pathlib import Path

TEXT = """
usage: nsys profile [<args>] [application]

\t-b, --backtrace=

\t   Possible values are 'lbr', 'fp',
\t   or 'none'.
\t   How to unwind, see --sample=none.
\t   Default is 'lbr'. For all.

\t--capture-range=

\t   Possible values are none, nvtx, hotkey.
\t   Default is none.

\t--capture-range-end=

\t   Possible values are 'stop', 'repeat[:N]' or 'repeat-shutdown:N'.

\t--cuda-graph-trace=<granularity>[:<origin>]

\t   Possible values for <granularity> are 'graph' or 'node'.
\t   With a new driver, default is 'graph', otherwise default is 'node'.

\t--kill=

\t   Possible values are 'none', 'sigkill', or signal number.
\t   Default is 'sigterm', which ends the program.

\t--levels=

\t   Possible values are integers between 1 and 32.
\t   Default is 6144 (6 KiB).

\t--nvtx-domain-[include|exclude]=

\t   Default is an empty list.

\t--resolve-symbols=

\t   Default is 'false' on Windows, 'true' on other platforms.
"""
EXPECTED = {
    "backtrace": OwnOption("lbr", ("lbr", "fp", "none")),
    "capture-range": OwnOption("none", ("none", "nvtx", "hotkey")),
    "capture-range-end": OwnOption("", ("stop", "repeat", "repeat-shutdown")),
    "cuda-graph-trace": OwnOption("graph", ("graph", "node")),
    "kill": OwnOption("sigterm"),
    "levels": OwnOption("6144"),
    "nvtx-domain-include": OwnOption(),
    "nvtx-domain-exclude": OwnOption(),
    "resolve-symbols": OwnOption("true"),
}
FILLING = [f"\t--option-{number}=" for number in range(WHOLE)]


def test_names_defaults_and_legal_values() -> None:
    found = read_help([*TEXT.splitlines(), *FILLING])
    assert {name: own for name, own in found.items() if "option" not in name} == EXPECTED


@pytest.mark.parametrize("lines", [[], ["no such verb"], TEXT.splitlines()])
def test_what_is_no_whole_help_is_no_table(lines: list[str]) -> None:
    assert read_help(lines) == {}


async def test_an_option_is_given_by_the_name_that_it_has_there(tmp_path: Path) -> None:
    place = make_place(tmp_path).fake(LACKS="gpu-metrics-devices", HAS="gpu-metrics-device")
    found = await preflight(place.plan("true"), place.config)
    assert "gpu-metrics-device" in found.facts.options
    record = await place.capture("true", options={"gpu-metrics-devices": "all"}).run()
    assert record.argv[2] == "--gpu-metrics-device=all"
