"""Which rows are shown, against a loop over all tracks; busy time of many lanes together."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nsys_tui.analysis.timeline.lineup import Lineup
from nsys_tui.analysis.timeline.tracks import Shape, Track
from nsys_tui.model.lanes import Crowd, Lane

EVENTS = 5


@st.composite
def lineups(draw: st.DrawFn) -> tuple[Track, ...]:
    """Tracks in groups of groups, in the order of a tree."""
    tracks: list[Track] = []
    for number in range(draw(st.integers(0, 12))):
        above = draw(st.sampled_from([None, *tracks]))
        parents = () if above is None else (*above.parents, above.key)
        events = draw(st.integers(0, EVENTS))
        stream = draw(st.sampled_from([None, 1, 2]))
        tracks.append(
            Track(
                key=f"k{number}",
                label=f"str {number}",
                title="",
                part=draw(st.sampled_from(["operations", "ranges", "api"])),
                order=(number, draw(st.integers(0, 2)), 0),
                shape=Shape.EVENTS,
                parents=parents,
                lane=Lane.build(np.arange(events), np.arange(events) + 1),
                folded=draw(st.booleans()),
                estimate=draw(st.booleans()),
                device=None if stream is None else draw(st.integers(0, 1)),
                stream=stream,
            )
        )
    return tuple(tracks)


KEYS = st.lists(st.sampled_from([f"k{n}" for n in range(14)]), unique=True, max_size=5)


@given(lineups(), KEYS, KEYS, KEYS, KEYS, st.sampled_from([None, 1, 2]))
def test_the_rows_shown_are_those_that_a_loop_over_all_tracks_finds(
    tracks: tuple[Track, ...],
    hidden: list[str],
    opened: list[str],
    closed: list[str],
    pinned: list[str],
    levels: int | None,
) -> None:
    lineup = Lineup(tracks).prepare()
    folded = {t.key for t in tracks if t.key in closed or (t.folded and t.key not in opened)}
    by_key = {t.key: t for t in tracks}
    first = [by_key[key] for key in pinned if key in by_key and key not in hidden]
    away = folded | {*hidden}
    rest = [t for t in tracks if t.key not in {*hidden, *pinned} and not away & {*t.parents}]
    wanted = [
        t for t in (*first, *rest) if levels is None or t.part != "ranges" or t.order[-2] < levels
    ]
    rows = lineup.shown(hidden=hidden, opened=opened, folded=closed, pinned=pinned, levels=levels)
    assert [*rows] == wanted == rows[:]
    assert rows.folded == folded
    for track in tracks:
        assert rows.number(track.key) == (wanted.index(track) if track in wanted else None)
    assert rows.number("not there") is None
    assert rows.estimated == any(t.estimate for t in wanted)
    weights = [(t.part == "operations" and not t.device, len(t.lane or ())) for t in wanted]
    assert rows.busiest == (weights.index(max(weights)) if weights else 0)
    visible = [t for t in tracks if t.key not in hidden and not {*hidden} & {*t.parents}]
    assert [tracks[place] for place in lineup.unhidden(hidden)] == visible
    assert set(lineup.groups) == {key for t in tracks for key in t.parents}


@given(lineups(), st.integers(0, 14))
def test_groups_open_as_far_as_their_rows_fit_and_none_that_would_is_left(
    tracks: tuple[Track, ...], room: int
) -> None:
    lineup = Lineup(tracks)
    first, opened = lineup.shown(), lineup.filling(room)
    rows = lineup.shown(opened=opened)
    assert opened <= first.folded
    assert len(rows) <= max(room, len(first))
    seen = {row.key for row in rows}
    assert opened <= seen
    for key in rows.folded & seen & {*lineup.groups}:
        assert len(lineup.shown(opened=opened | {key})) > room


@given(lineups())
def test_two_streams_share_a_row_where_they_stand_one_below_the_other(
    tracks: tuple[Track, ...],
) -> None:
    rows = Lineup(tracks).shown().paired()
    wanted: list[list[Track]] = []
    for track in Lineup(tracks).shown():
        last = wanted[-1] if wanted else []
        both = len(last) == 1 and last[0].stream is not None and track.stream is not None
        if both and last[0].device == track.device:
            last.append(track)
        else:
            wanted.append([track])
    assert [[row.key, *([row.pair.key] if row.pair else [])] for row in rows] == [
        [track.key for track in row] for row in wanted
    ]
    for number, row in enumerate(wanted):
        assert {rows.number(track.key) for track in row} == {number}


@given(
    st.lists(st.lists(st.tuples(st.integers(-20, 20), st.integers(0, 9)), max_size=6), max_size=5),
    st.sampled_from([0, 2**61]),
)
def test_a_crowd_is_as_busy_as_its_lanes_together(
    lanes: list[list[tuple[int, int]]], shift: int
) -> None:
    built = [
        Lane.build([shift + at for at, _ in lane], [shift + at + d for at, d in lane])
        for lane in lanes
    ]
    edges = shift + np.array([-25, -7, -7, 0, 3, 11, 30])
    wanted = sum((lane.busy(edges) for lane in built), np.zeros(len(edges) - 1, np.int64))
    crowd = Crowd.of(built)
    assert crowd.busy(edges).tolist() == wanted.tolist()
