"""Several reports in one page, and the same as Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

import browser
import pytest
from synth import Synth

from nsys_tui import cli

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "hf_" + "a1B2" * 8
MS = 1_000_000


@pytest.fixture
def runs(tmp_path: Path) -> list[str]:
    """Two runs of ten steps, the second with kernels half as long again."""
    found = []
    for name, length in (("a", 4), ("b", 6)):
        made = Synth(tmp_path / f"{name}.sqlite").process(7, "train").gpu(0, "A100")
        made.nvtx(f"<b>|*{SECRET}", 0, 5 * MS)
        for step in range(10):
            at = step * 10 * MS
            made.nvtx(f"step {step}", at, at + 10 * MS)
            made.launch("gemm(float*)", (at, at + 10), (at + MS, at + (1 + length) * MS))
        found.append(str(made.write()))
    return found


async def test_two_reports_and_what_changed(runs: list[str], tmp_path: Path) -> None:
    page = tmp_path / "c.html"
    assert cli.main(["report", *runs, "--compare", "-o", str(page), "--no-cache"]) == 0
    async with browser.opened(page, browser.PHONE) as seen:
        assert await seen.page.inner_text("h1") == "a.sqlite and b.sqlite"
        headings = await seen.page.locator("h2").all_inner_texts()
        assert headings[:2] == ["What changed from A to B", "a.sqlite"]
        assert "b.sqlite" in headings
        kernels = seen.page.locator("tr", has_text="+2.000 ms")
        assert await kernels.count() >= 1, "each step a kernel of 2 ms more"
        heads = seen.page.locator("thead th")
        assert await heads.count() == await seen.page.locator("thead th button").count() > 10
        texts = ["gone", "+1.500 ms", "-2.000 us", "1,000 ns", "12 B", "new", "-3.1%"]
        ordered = await seen.page.evaluate("texts => texts.sort(written)", texts)
        assert ordered == ["-2.000 us", "-3.1%", "12 B", "1,000 ns", "+1.500 ms", "gone", "new"]
        ids = await seen.page.locator("[id]").evaluate_all("all => all.map(e => e.id)")
        assert len(ids) == len(set(ids))
        assert await seen.overflow() == 0
        assert seen.faults == []


def test_a_fleet_has_a_page(runs: list[str], tmp_path: Path) -> None:
    page = tmp_path / "f.html"
    assert cli.main(["report", *runs, "--fleet", "-o", str(page), "--no-cache"]) == 0
    text = page.read_text("utf-8")
    assert "What the reports say together</h2>" in text
    assert "a.sqlite" in text
    assert "b.sqlite" in text


PIECES = {SECRET[at : at + 7] for at in range(3, len(SECRET) - 6)}


def pieces_in(text: str) -> set[str]:
    """Parts of the token that stand in a text, its digits as ``#`` or not."""
    alike = {piece.translate(str.maketrans("0123456789", "#" * 10)) for piece in PIECES}
    return {piece for piece in PIECES | alike if piece in text}


def test_no_piece_of_a_token_travels(runs: list[str], tmp_path: Path) -> None:
    made = Synth(tmp_path / "named.sqlite").process(7, f"rank {SECRET}").thread(7, f"t {SECRET}")
    for step in range(10):
        at = step * 10 * MS
        made.nvtx(f"step {step}", at, at + 10 * MS).nvtx(f"{SECRET}: 3", at, at + 9 * MS)
        made.api(f"cudaMalloc {SECRET}", at, at + 5 * MS, corr=step)
        made.kernel("gemm(float*)", at + 5 * MS, at + 9 * MS, corr=step)
    named, base, summary = str(made.write()), str(tmp_path / "base.json"), str(tmp_path / "s.md")
    for name, words in {
        "one": [named],
        "compare": ["--compare", runs[0], named],
        "fleet": ["--fleet", *runs, named],
    }.items():
        for ending in ("html", "md"):
            page = str(tmp_path / f"{name}.{ending}")
            assert cli.main(["report", *words, "-o", page, "--no-cache"]) == 0
    cli.main(["baseline", "add", "--file", base, named])
    gates = ["--gate", "phase:.*:1%", "--gate", "api:.*:1%", "--junit", str(tmp_path / "j.xml")]
    cli.main(["compare", runs[0], "--baseline-file", base, "--step-summary", summary, *gates])
    written = [path for path in tmp_path.iterdir() if path.suffix != ".sqlite"]
    assert len(written) == 9
    for path in written:
        text = path.read_text("utf-8")
        assert "[redacted]" in text, path.name
        assert not pieces_in(text), path.name


def test_markdown_is_escaped_redacted_and_appended_to_a_summary(
    runs: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    summary = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    file = tmp_path / "r.md"
    words = ["report", runs[0], "-o", str(file), "--step-summary", "--no-cache"]
    assert cli.main(words) == 0
    text = file.read_text("utf-8")
    assert summary.read_text("utf-8") == text + "\n"
    assert text.startswith("## a.sqlite\n")
    assert SECRET not in text
    assert "\\<b\\>\\|\\*[redacted]" in text
    assert text.count("<details>") == text.count("</details>") >= 4
    assert "| 40.00 ms |" in text, "ten kernels of 4 ms"


@pytest.mark.parametrize(
    ("words", "said"),
    [(["--compare"], "--compare takes two reports"), ([*["x.sqlite"] * 8], "9 reports are too")],
)
def test_what_does_not_fit_is_refused(
    runs: list[str], words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["report", runs[0], *words]) == 64
    assert said in capsys.readouterr().err
