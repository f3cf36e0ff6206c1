"""A link reads back as the place that it was written for, to the nanosecond."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nsys_tui.analysis.links import Place, exact_time, link, parse_place, split_link
from nsys_tui.units import parse_duration

TIMES = st.integers(-(2**62), 2**62)
WINDOWS = st.tuples(TIMES, TIMES).filter(lambda pair: pair[0] < pair[1])
PLACES = st.builds(
    Place,
    st.none() | WINDOWS,
    st.none() | st.integers(0, 10_000),
    st.sampled_from(["", *"0123456789"]),
)
NAMES = st.text(min_size=1, max_size=30).filter(lambda name: "\0" not in name)


@given(TIMES)
def test_times_are_exact(ns: int) -> None:
    assert parse_duration(exact_time(ns)) == ns


@given(NAMES, PLACES)
def test_links_read_back(name: str, place: Place) -> None:
    written = link(name, place)
    if written == name:
        assert place == Place()
    else:
        assert split_link(written, lambda text: text == name) == (name, place)


@given(NAMES, PLACES)
def test_a_file_of_the_whole_name_comes_first(name: str, place: Place) -> None:
    assert split_link(link(name, place), lambda _: True) == (link(name, place), None)


@given(st.text(max_size=40))
def test_any_text_is_a_place_or_none(text: str) -> None:
    place = parse_place(text)
    assert place is None or parse_place(str(place)) == place
