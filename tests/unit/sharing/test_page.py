"""The page about a report: looked at in a browser, with figures from elsewhere."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import browser
import pytest
from demo_making import make_report
from synth import Synth

from nsys_tui import cli

if TYPE_CHECKING:
    from pathlib import Path

HOSTILE = "</script><script>alert(1)</script><b>\u202eevil\u2028 ]]>&amp; hf_" + "a1B2" * 8


def made(folder: Path, report: Path, *words: str) -> Path:
    """The page about a report."""
    file = folder / "page.html"
    assert cli.main(["report", str(report), "-o", str(file), "--no-cache", *words]) == 0
    return file


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page about the demo."""
    folder = tmp_path_factory.mktemp("page")
    report = folder / "demo.sqlite"
    make_report(report)
    return made(folder, report)


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """The page about a report whose every name is an attack."""
    synth = Synth(tmp_path / "a#b 'c.sqlite").process(7, HOSTILE).thread(7, HOSTILE)
    synth.gpu(0, HOSTILE).nvtx(HOSTILE, 0, 9_000_000)
    for number in range(20):
        start = number * 400_000
        synth.launch(HOSTILE + str(number), (start, start + 10), (start + 20, start + 200_000))
    return made(tmp_path, synth.write())


async def test_it_opens_without_a_fault_or_a_request_and_fits_a_phone(page: Path) -> None:
    assert page.stat().st_size < 2_000_000
    for size, scheme in ((browser.WIDE, "light"), (browser.PHONE, "dark")):
        async with browser.opened(page, size, scheme) as seen:  # type: ignore[arg-type]
            assert await seen.overflow() == 0
            assert seen.faults == []
            assert seen.requests == [page.resolve().as_uri()]
            assert await seen.page.locator("article").count() > 5
            assert await seen.page.locator("article svg.timeline").count() > 5


def test_ticks_and_threads_of_a_picture_are_told_apart(page: Path) -> None:
    pictures = re.findall(r'<svg class="timeline".*?</svg>', page.read_text("utf-8"))
    assert len(pictures) > 5
    for picture in pictures:
        for kind in ("axis", "lane"):
            said = [text for text in re.findall(rf'class="{kind}"[^>]*>([^<]*)<', picture) if text]
            assert len(set(said)) == len(said)


async def test_tables_sort_by_click_and_by_key(page: Path) -> None:
    async with browser.opened(page) as seen:
        table = seen.page.locator("table", has=seen.page.get_by_text("Num Calls")).first
        heading = table.locator("th", has_text="Num Calls")

        async def counts() -> list[float]:
            cells = table.locator("tbody td:nth-child(4)")
            return [float(text.replace(",", "")) for text in await cells.all_inner_texts()]

        before = await counts()
        assert before != sorted(before)
        await heading.locator("button").click()
        assert await counts() == sorted(before, reverse=True)
        assert await heading.get_attribute("aria-sort") == "descending"
        await heading.locator("button").focus()
        await seen.page.keyboard.press("Enter")
        assert await counts() == sorted(before)
        names = table.locator("th", has_text="Name")
        await names.locator("button").click()
        texts = await table.locator("tbody td:first-child").all_inner_texts()
        assert [text.lower() for text in texts] == sorted(text.lower() for text in texts)
        assert await heading.get_attribute("aria-sort") == "none"
        assert seen.faults == []


async def test_on_a_phone_names_stay_beside_their_figures(page: Path) -> None:
    async with browser.opened(page, browser.PHONE) as seen:
        region = seen.page.get_by_role("region", name="Kernels", exact=True)
        await region.evaluate("region => region.scrollLeft = 300")
        name, figure = (
            region.locator(f"tbody tr:first-child td{n}") for n in (":first-child", ".n")
        )
        box, other = await name.bounding_box(), await figure.last.bounding_box()
        assert box is not None
        assert other is not None
        assert 0 <= box["x"] < box["x"] + box["width"] < browser.PHONE[0] * 0.6
        assert other["height"] == box["height"] < 60
        titles = await seen.page.locator(".caption, h2, h3").all_inner_texts()
        assert len(titles) == len({*titles})


async def test_on_paper_no_text_is_a_column_of_syllables(page: Path) -> None:
    paper = (703, 1000)  # A4 between its margins, in CSS pixels; browsers shrink what is wider
    widths = "cells => cells.map(cell => cell.getBoundingClientRect().width)"
    async with browser.opened(page, paper) as seen:
        await seen.page.emulate_media(media="print")
        cells = await seen.page.locator("td:not([class])").evaluate_all(widths)
        assert len(cells) > 100
        assert min(cells) >= 120
        assert await seen.overflow() < 0.5 * paper[0]


async def test_on_paper_headers_are_text_that_each_page_repeats(page: Path) -> None:
    async with browser.opened(page) as seen:  # Chromium repeats a row without its buttons
        await seen.page.emulate_media(media="print")
        boxes = "all => all.map(one => getComputedStyle(one).display)"
        buttons = await seen.page.locator("th button").evaluate_all(boxes)
        assert set(buttons) == {"contents"}
        ground = "getComputedStyle(document.body).backgroundColor"
        assert await seen.page.evaluate(ground) == "rgb(255, 255, 255)"


async def test_on_a_phone_a_frame_that_fills_the_flame_graph_shows_its_name(page: Path) -> None:
    async with browser.opened(page, browser.PHONE) as seen:
        frame = seen.page.locator("svg.flame .frame[data-depth='2']").first
        await frame.click()
        box = await frame.locator("text").bounding_box()
        assert box is not None
        assert 0 <= box["x"] < browser.PHONE[0] / 4


async def test_wide_letters_stay_in_their_frame(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite")
    for start in range(0, 6000, 1000):
        synth.nvtx(f"{'😀' * 30} {start}", start, start + 900)
        synth.launch("k()", (start, start + 10), (start + 20, start + 500))
    async with browser.opened(made(tmp_path, synth.write())) as seen:
        over = """all => all.map(f => f.querySelector('text').getBBox().width
                                      - f.querySelector('rect').getBBox().width)"""
        frames = seen.page.locator("svg.flame .frame")
        assert max(await frames.evaluate_all(over)) <= 0
        await frames.nth(1).click()
        await seen.page.keyboard.press("Escape")
        assert max(await frames.evaluate_all(over)) <= 0


async def test_the_flame_graph_zooms_by_click_and_by_key(page: Path) -> None:
    async with browser.opened(page) as seen:
        frames = seen.page.locator("svg.flame .frame")
        frame = seen.page.locator("svg.flame .frame[data-depth='2']").first

        async def width() -> float:
            return float(await frame.locator("rect").get_attribute("width") or 0)

        narrow = await width()
        hidden = await frames.evaluate_all("all => all.filter(f => f.style.display).length")
        assert hidden == 0
        await frame.click()
        assert narrow < 1100
        assert await width() == pytest.approx(1180, abs=1)
        assert await frames.evaluate_all("all => all.filter(f => f.style.display).length") > 0
        await frame.focus()
        await seen.page.keyboard.press("Escape")
        assert await width() == pytest.approx(narrow, abs=0.1)
        await frames.first.focus()
        await seen.page.keyboard.press("ArrowDown")
        await seen.page.keyboard.press("Enter")
        depth = await seen.page.evaluate("document.activeElement.dataset.depth")
        wide = await seen.page.evaluate(
            "+document.activeElement.querySelector('rect').getAttribute('width')"
        )
        assert (depth, round(wide)) == ("1", 1180)
        for key in ("Escape", "ArrowDown"):  # from the first of them to another
            await seen.page.keyboard.press(key)
        await seen.page.locator("svg.flame .frame[data-depth='2']").first.click()
        reached = seen.page.locator("svg.flame .frame[tabindex='0']")
        assert await reached.count() == 1
        assert await reached.is_visible()
        assert seen.faults == []


CONTRAST = """() => {
  const parse = c => (c.match(/[\\d.]+/g) || [0, 0, 0, 0]).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(v => v / 255)
    .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = e => {
    for (; e; e = e.parentElement) {
      const c = parse(getComputedStyle(e).backgroundColor);
      if (c.length < 4 || c[3] > 0) return c;
    }
    return [255, 255, 255];
  };
  const bad = [];
  for (const e of document.querySelectorAll('body *:not(script)')) {
    const own = [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
    if (!own || e.closest('.skip')) continue;
    const boxed = e.closest('.event, .frame'), look = getComputedStyle(e);
    const ink = parse(e.closest('svg') ? look.fill : look.color);
    const on = boxed ? parse(getComputedStyle(boxed.querySelector('rect')).fill) : ground(e);
    const [dark, bright] = [light(ink), light(on)].sort((a, b) => a - b);
    const ratio = (bright + 0.05) / (dark + 0.05);
    const said = `${ratio.toFixed(2)} ${e.outerHTML.slice(0, 90)}`;
    if (ratio < 4.5 && e.tagName !== 'title') bad.push(said);
  }
  return bad;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_text_has_contrast(page: Path, scheme: browser.Scheme) -> None:
    async with browser.opened(page, scheme=scheme) as seen:
        assert await seen.page.evaluate(CONTRAST) == []


async def test_hostile_names_are_text(hostile: Path) -> None:
    text = hostile.read_text("utf-8")
    assert not re.search("[\u202e\u2028]|hf_a1B2", text)
    assert text.count("<script>") == text.count("</script>") == 1
    dialogs: list[str] = []
    async with browser.tab() as seen:
        seen.page.on("dialog", lambda dialog: dialogs.append(dialog.message))
        await seen.page.goto(hostile.resolve().as_uri())
        assert "</script><script>alert(1)</script><b>" in await seen.page.inner_text("main")
        assert await seen.overflow() == 0
        assert seen.faults == []
    assert dialogs == []


async def test_it_is_read_from_top_to_bottom_by_headings(page: Path) -> None:
    async with browser.opened(page) as seen:
        levels = await seen.page.locator("h1,h2,h3").evaluate_all("all => all.map(h => h.tagName)")
        assert levels[0] == "H1"
        assert levels.count("H1") == 1
        assert "H3" not in levels[: levels.index("H2")]
        links = await seen.page.locator("nav a").evaluate_all(
            "all => all.map(a => !!document.querySelector(a.getAttribute('href')))"
        )
        assert links
        assert all(links)
        ids = await seen.page.locator("[id]").evaluate_all("all => all.map(e => e.id)")
        assert len(ids) == len(set(ids))


async def test_a_window_without_statistics_of_one_event_has_a_page(
    page: Path, tmp_path: Path
) -> None:
    """Of one event there is no deviation; its cell is empty and sorts last."""
    windowed = made(tmp_path, page.with_name("demo.sqlite"), "--window", "0.9s/1s")
    async with browser.opened(windowed) as seen:
        assert "900.0 ms to 1.000 s" in await seen.page.inner_text("h1")
        assert await seen.page.locator("td", has_text=re.compile("^-$")).count() > 0
        assert seen.faults == []


def test_a_report_without_gpu_work_tells_of_threads_calls_and_samples(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "host.sqlite").process(100, "train").nvtx("load", 0, 900_000)
    synth.osrt("pread64", 10_000, 500_000).sample(20_000, ("leaf", "main"))
    text = made(tmp_path, synth.write()).read_text("utf-8")
    for told in ("Top OS runtime calls", "pread64", "CPU samples", ">leaf<"):
        assert told in text, told
