"""Links as people write them, and those in JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from synth import Synth

from nsys_tui import cli
from nsys_tui.analysis.links import Place, looks_like_link, parse_place, split_link

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("2.1s-2.3s/GPU0/7", Place((2_100_000_000, 2_300_000_000), 0, "7")),
        ("-1ms-500us", Place((-1_000_000, 500_000))),
        ("-2ms--1ms", Place((-2_000_000, -1_000_000))),
        ("GPU12", Place(device=12)),
        ("/GPU1/2", Place(device=1, screen="2")),
        ("5", Place(screen="5")),
        ("0s-1s/3", Place((0, 1_000_000_000), screen="3")),
        ("2s-1s", None),
        ("1s", None),
        ("1-2", None),
        ("GPU0/GPU1", None),
        ("", None),
        ("GPU٣", None),
    ],
)
def test_what_stands_after_the_sign(text: str, place: Place | None) -> None:
    assert parse_place(text) == place


def test_a_sign_in_the_name_of_a_file_is_no_link() -> None:
    files = {"run#2.sqlite", "a#b", "run#2"}
    assert split_link("run#2.sqlite", files.__contains__) == ("run#2.sqlite", None)
    assert split_link("run#2", files.__contains__) == ("run#2", None)
    assert split_link("a#b#1s-2s", files.__contains__)[0] == "a#b"
    assert split_link("#1s-2s", files.__contains__) == ("#1s-2s", None)
    assert looks_like_link("r.sqlite#2s-1s")
    assert not looks_like_link("r#final.sqlite")


def test_findings_and_gaps_have_links_in_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = Synth(tmp_path / "r.sqlite").process(7, "train").gpu(3, "A100", cu_device=0)
    made.cuda_device(7, 0, 3)
    made.launch("a()", (0, 10), (100, 1_000_000)).launch("b()", (20, 30), (9_000_000, 9_500_000))
    report = str(made.write())
    assert cli.main(["stalls", report, "--format", "json", "--no-cache"]) == 0
    gap = json.loads(capsys.readouterr().out)["gaps"][0]
    assert gap["link"] == "r.sqlite#1ms-9ms/GPU3/2"
    assert cli.main(["analyze", report, "--format", "json", "--no-cache"]) == 0
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert any(finding["window_ns"] for finding in findings)
    for finding in findings:
        _, place = split_link(finding["link"], lambda name: name == "r.sqlite")
        window = finding["window_ns"] and tuple(finding["window_ns"])
        assert place == Place(window, finding["device"], finding["screen"])


def test_a_link_that_leads_nowhere_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = Synth(tmp_path / "r.sqlite").process(7).launch("a()", (0, 1), (2, 3)).write()
    assert cli.main([f"{report}#5s-1s"]) == 64
    assert "not a place in a report: '5s-1s'" in capsys.readouterr().err
    assert cli.main([f"{report}#0s-1s", "--text", "--no-cache"]) == 0
    assert "r.sqlite" in capsys.readouterr().out
