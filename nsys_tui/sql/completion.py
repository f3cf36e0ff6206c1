"""What may come next in a query: tables after FROM, columns of the tables it names elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

_WORD: Final = re.compile(r"[\w.]*\Z")
_AFTER_TABLE: Final = re.compile(r"\b(from|join)\s+([\w.]*\s*,\s*)*[\w.]*\Z", re.IGNORECASE)
_NAMED: Final = re.compile(r"\b(?:from|join|,)\s*(\w+)(?:\s+(?:as\s+)?(\w+))?", re.IGNORECASE)
_MADE: Final = re.compile(r"(?:\bwith|\brecursive|,)\s+(\w+)\s*(?:\([^()]*\))?\s+as\s*\(", re.I)
"""Tables that the query makes itself."""
_WORDS: Final = """
SELECT FROM WHERE GROUP BY ORDER LIMIT HAVING JOIN LEFT ON AS AND OR NOT IN LIKE GLOB BETWEEN IS
NULL CASE WHEN THEN ELSE END DISTINCT WITH UNION ALL DESC ASC OVER PARTITION count sum avg min
max round coalesce substr lower group_concat
"""
_KEYWORDS: Final = _WORDS.split()
_KNOWN: Final = frozenset(word.lower() for word in _KEYWORDS)


def completions(
    before: str, whole: str, tables: Mapping[str, tuple[str, ...]]
) -> tuple[str, list[str]]:
    """The word that is being typed, and what it may become, likeliest first.

    Args:
        before: the query up to the cursor.
        whole: all of it; tables are mostly named behind the cursor.
        tables: what can be asked, with its columns.
    """
    match = _WORD.search(before)
    word = match[0] if match else ""
    if _AFTER_TABLE.search(before):
        return word, _starting(word, [*_MADE.findall(whole), *tables])
    known = {table.lower(): table for table in tables}
    named = {
        alias.lower(): known[table.lower()]
        for table, alias in _NAMED.findall(whole)
        for alias in (alias, table)
        if alias and table.lower() in known and alias.lower() not in _KNOWN
    }
    owner, dot, rest = word.rpartition(".")
    if dot:
        table = named.get(owner.lower()) or known.get(owner.lower(), "")
        return rest, _starting(rest, tables.get(table, ()))
    asked = dict.fromkeys(named.values()) or tables  # without FROM so far: columns of any
    columns = [column for table in asked for column in tables[table]]
    return word, _starting(word, [*dict.fromkeys(columns), *named, *_KEYWORDS, *tables])


def _starting(word: str, names: Iterable[str]) -> list[str]:
    """Those that begin so, case aside, each once; none that is there already."""
    low = word.lower()
    return [name for name in dict.fromkeys(names) if name.lower().startswith(low) and name != word]
