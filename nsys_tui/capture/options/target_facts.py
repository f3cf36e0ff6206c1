"""What is known about the place where a capture would run, as far as advice depends on it.

What an nsys says of its own options in ``nsys profile --help`` wins over our table of them, which
knows no release: options come, go, are renamed and change defaults.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

WHOLE: Final = 25
"""Fewer options than any nsys has are no list to refuse an option by."""
_HEADER: Final = re.compile(
    r"\s{0,8}(?:-\w, )?--([a-z][a-z0-9-]+)(?:\[([a-z|]+)\])?(?![a-z0-9-]).*"
)
_DEFAULT: Final = re.compile(r"[Dd]efault is (?:'[^']*' on Windows, )?(?:'([^']*)'|([\w,.-]*\w))")
_NO_VALUE: Final = ("an", "the", "disabled")
_VALUES: Final = re.compile(r"Possible values (?:for <\w+> )?are:? (.+?)\.(?:\s|$)")
_QUOTED: Final = re.compile(r"[`']([^`']+)'")
_BETWEEN: Final = re.compile(r"(?:[\s,]|\bor\b|\band\b)+")


@dataclass(frozen=True)
class OwnOption:
    """One option as an nsys describes it.

    Attributes:
        default: what it does when the option is left out; empty = it does not say.
        values: the legal words; empty = it lists none, or others are legal too.
    """

    default: str = ""
    values: tuple[str, ...] = ()


def read_help(lines: Iterable[str]) -> dict[str, OwnOption]:
    """The options by their long names without dashes; empty where this is no such help."""
    options = dict(_options(lines))
    return options if len(options) >= WHOLE else {}


def _options(lines: Iterable[str]) -> Iterator[tuple[str, OwnOption]]:
    names: list[str] = []
    text: list[str] = []
    for line in [*lines, "--end"]:
        match = _HEADER.fullmatch(line)
        if match is None:
            text.append(line.strip())
            continue
        option = _described(" ".join(text))
        yield from ((name, option) for name in names)
        endings = match[2].split("|") if match[2] else [""]
        names, text = [match[1] + ending for ending in endings], []


def _described(text: str) -> OwnOption:
    default = _DEFAULT.search(text)
    word = (default[1] or default[2] or "") if default else ""
    return OwnOption("" if word in _NO_VALUE else word, _legal(text))


def _legal(text: str) -> tuple[str, ...]:
    """The words of a list that is whole; a phrase between them means that others are legal."""
    match = _VALUES.search(text)
    if match is None:
        return ()
    quoted = _QUOTED.findall(match[1])
    rest = _BETWEEN.sub(" ", _QUOTED.sub(" ", match[1])).strip()
    if quoted:
        return () if rest else tuple(dict.fromkeys(re.split(r"[:\[<=]", q)[0] for q in quoted))
    words = [word for word in re.split(r",\s*|\s+or\s+", match[1]) if word]
    return tuple(words) if len(words) > 1 and not any(" " in word for word in words) else ()


_SCOPE = re.compile(r"CPU Profiling.*\((process-tree|system-wide)\).*\bfail", re.IGNORECASE)
_VERSION = re.compile(r"(\d{4})\.(\d+)(?:\.(\d+))?")


@dataclass(frozen=True)
class Facts:
    """Findings of the preflight; ``None`` means not known (yet).

    Attributes:
        nsys_version: (year, release, patch) of the nsys found there.
        options: what this nsys says of its options, by long names; empty = not known.
        paranoid: ``/proc/sys/kernel/perf_event_paranoid``.
        root: whether the user there is root.
        gpu_admin_only: whether the driver keeps GPU counters to administrators.
        refused_scopes: ``process-tree`` and ``system-wide`` as far as ``nsys status -e`` says that
            the CPU cannot be profiled so.
    """

    nsys_version: tuple[int, int, int] | None = None
    options: Mapping[str, OwnOption] = field(default_factory=dict)
    paranoid: int | None = None
    root: bool | None = None
    gpu_admin_only: bool | None = None
    refused_scopes: frozenset[str] = frozenset()

    @property
    def version(self) -> str:
        """The version for a reader; empty = not known."""
        return ".".join(map(str, self.nsys_version or ()))


def parse_version(text: str) -> tuple[int, int, int] | None:
    """Finds the version in what ``nsys --version`` prints, such as ``2024.5.1.113-…``."""
    match = _VERSION.search(text)
    if match is None:
        return None
    return int(match[1]), int(match[2]), int(match[3] or 0)


def refused_scopes(status: Iterable[str]) -> frozenset[str]:
    """Finds the scopes of CPU profiling that the lines of ``nsys status -e`` call a failure."""
    return frozenset(match[1].lower() for line in status if (match := _SCOPE.search(line)))
