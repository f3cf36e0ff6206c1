"""Summaries of host tables that all look alike: start, end, a name, a thread."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nsys_tui.analysis.stats.summary import NAME, summarise, time_columns
from nsys_tui.analysis.window import EVERYTHING, row_count
from nsys_tui.errors import NoDataError
from nsys_tui.model.events import EventSet
from nsys_tui.model.groups import pair_codes, regroup
from nsys_tui.model.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from nsys_tui.analysis.stats.query import Query
    from nsys_tui.analysis.stats.registry import Columns
    from nsys_tui.model.table import Column


def host_summary(
    query: Query,
    kinds: Iterable[Kind],
    count: str,
    source: tuple[Column, Mapping[Kind, str]] | None = None,
) -> Columns:
    """Events of some kinds of ``report.host_events`` by name, or by (source, name).

    Args:
        query: the report and its restrictions.
        kinds: kinds of host events.
        count: header of the count.
        source: a column that tells the kinds apart, and what it says for each.

    Raises:
        NoDataError: none of the kinds has rows in scope.
    """
    events = query.report.host_events
    wanted = np.isin(events.kinds, list(kinds)) if events.kinds else np.zeros(1, bool)
    rows = query.events(events, wanted[events.kind])
    if not row_count(events, rows):
        raise NoDataError("no rows")
    kind = events.kind[rows] if source else np.zeros(row_count(events, rows), np.uint8)
    codes, name, of_kind = pair_codes(events.name[rows], kind, max(len(events.kinds), 1))
    summary = summarise(query, events, rows, codes, len(name))
    labels: Columns = [(NAME, [events.names[place] for place in name.tolist()])]
    if source:
        column, texts = source
        labels.insert(0, (column, [texts[Kind(events.kinds[place])] for place in of_kind.tolist()]))
    return time_columns(summary, count, labels)


def rows_summary(
    query: Query,
    rows: list[dict[str, Any]],
    names: Sequence[tuple[str, ...]],
    count: str,
    labels: tuple[Column, ...],
) -> Columns:
    """Rows of rarely used tables by one or more labels; rows without an end take no part.

    Args:
        query: decides whether time is clipped to the window.
        rows: as ``query.raw`` returns them.
        names: the labels of each row.
        count: header of the count.
        labels: columns of the labels.

    Raises:
        NoDataError: no row has an end.
    """
    kept = [place for place, row in enumerate(rows) if row["end"] is not None]
    if not kept:
        raise NoDataError("no rows")
    codes, keys = regroup(np.arange(len(kept)), [names[place] for place in kept])
    start = np.array([rows[place]["start"] for place in kept], np.int64)
    end = np.array([rows[place]["end"] for place in kept], np.int64)
    events = EventSet(start, end, np.arange(len(kept)))
    summary = summarise(query, events, EVERYTHING, codes, len(keys))
    texts: Columns = [(column, [key[place] for key in keys]) for place, column in enumerate(labels)]
    return time_columns(summary, count, texts)
