"""Short names of kernels, unique within a report and the same in all reports.

``kernel_rules`` names one kernel alone. What tells two of one name apart is added to both here.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final

from nsys_tui.model.attention_rules import ATTENTION_RULES
from nsys_tui.model.kernel_rules import RULES, Detail, Named, argument, parts_of, types
from nsys_tui.model.library_rules import LIBRARY_RULES
from nsys_tui.names import last_component

LONGEST: Final = 20_000
"""Characters up to which a name is taken apart; a longer one keeps its plain name."""
_APART: Final = ", "
_KEY: Final = "\n"
"""Between a name and its variant; in no name, for they are escaped."""


def short_names(names: Sequence[tuple[str, str]]) -> list[str]:
    """Short names of the kernels of a report: two that differ are called differently.

    Args:
        names: short and demangled name of each, as recorded.
    """
    full = [demangled or short for short, demangled in names]
    named = {demangled: short_name(demangled, names[n][0]) for n, demangled in enumerate(full)}
    alike = defaultdict[str, list[str]](list)
    for demangled, one in named.items():
        alike[one.name].append(demangled)
    told: dict[str, str] = {}
    for name, group in alike.items():
        told |= {group[0]: name} if len(group) == 1 else _told_apart(name, group, named)
    told = _numbered(told)
    return [told[demangled] for demangled in full]


def _told_apart(name: str, group: Sequence[str], named: Mapping[str, Named]) -> dict[str, str]:
    """What each full name of a group under one short name is called."""
    told = _by_columns(dict.fromkeys(group, name), {full: named[full].details for full in group})
    same = defaultdict[str, list[str]](list)
    for full, said in told.items():
        same[said].append(full)
    for alike in (alike for alike in same.values() if len(alike) > 1):
        arguments = {full: tuple(map(argument, parts_of(full).arguments)) for full in alike}
        told |= _by_columns({full: told[full] for full in alike}, arguments)
    return told


def _by_columns(said: dict[str, str], columns: Mapping[str, Detail]) -> dict[str, str]:
    """Adds words to names that are alike, from the first column in which they differ."""
    width = max(map(len, columns.values()))
    groups = [said] if len(said) > 1 else []
    done = {} if groups else said
    for place in range(width):
        waiting = []
        for group in groups:
            by_word = defaultdict[str, dict[str, str]](dict)
            for full, text in group.items():
                word = columns[full][place] if place < len(columns[full]) else ""
                by_word[word][full] = text
            if len(by_word) == 1:
                waiting.append(group)
                continue
            for word, texts in by_word.items():
                texts = {full: f"{text} {word}".rstrip() for full, text in texts.items()}
                waiting.append(texts)
        groups = [group for group in waiting if len(group) > 1]
        for group in waiting:
            if len(group) == 1:
                done |= group
    for group in groups:
        done |= group
    return done


def _numbered(told: dict[str, str]) -> dict[str, str]:
    """Numbers what nothing else tells apart, in the order of the full names."""
    names: dict[str, str] = {}
    taken = set[str]()
    for full in sorted(told):
        name, number = told[full], 1
        while name in taken:
            number += 1
            name = f"{told[full]} ~{number}"
        taken.add(name)
        names[full] = name
    return names


@lru_cache(maxsize=32768)
def variant(demangled: str) -> str:
    """What template arguments say of a kernel beside its short name, the same in all builds.

    Numbers of lambdas and of fused kernels are left out: they move with any change of the code.
    """
    if demangled.startswith("[") or len(demangled) > LONGEST:
        return ""
    arguments = parts_of(demangled).arguments
    words = (*short_name(demangled).details, *map(argument, arguments), *map(types, arguments))
    told = ["" if word.startswith("#") else word for word in words]
    return _APART.join(told).rstrip(_APART)


def variant_names(name: str, variants: Iterable[str]) -> dict[str, str]:
    """What kernels of one short name are called, by what ``variant`` says of each."""
    columns = {each: tuple(each.split(_APART)) for each in sorted(variants)}
    return _by_columns(dict.fromkeys(columns, name), columns)


def variant_key(name: str, demangled: str) -> str:
    """A short name with its variant, for ``called_by_key`` where all variants are known."""
    return f"{name}{_KEY}{variant(demangled)}".removesuffix(_KEY)


def called_by_key(keys: Iterable[str]) -> dict[str, str]:
    """What kernels are called beside each other, by their ``variant_key``."""
    variants = defaultdict[str, dict[str, str]](dict)
    for key in keys:
        name, _, told = key.partition(_KEY)
        variants[name][told] = key
    return {
        keys_of[told]: called
        for name, keys_of in variants.items()
        for told, called in variant_names(name, keys_of).items()
    }


def answers_to(name: str, demangled: str, recorded: str) -> bool:
    """Whether a kernel has a name: its full, recorded or short one, or more words of the last."""
    short = short_name(demangled or recorded, recorded).name
    if name in (demangled, recorded, short):
        return True
    plain, _, told = name.partition(f"{short} ")
    if plain or not told:
        return False
    for word in filter(None, variant(demangled).split(_APART)):
        told = told.removeprefix(word).lstrip() if f"{told} ".startswith(f"{word} ") else told
    return not told


_LIBRARY: Final = re.compile(r"\bcu(?:blas|dnn|tlass)\w*::")
_ATTENTION: Final = re.compile(r"(?:flash|fmha|sdpa)\b")
_PRODUCT: Final = re.compile(r"((?:gemm|conv)\b[a-z\d ]*?) \d+x\d")


def product_kind(name: str) -> str:
    """``gemm bf16``: which matrix product a kernel is, without its tile; empty for other kernels.

    Args:
        name: its short name or its full one.
    """
    match = _PRODUCT.match(name) or _PRODUCT.match(short_name(name).name)
    return match[1] if match else ""


def of_library(name: str) -> bool:
    """Whether a kernel is a library's, such as products and attention: no program sets its grid."""
    known = product_kind(name) or _LIBRARY.search(name) or _ATTENTION.match(short_name(name).name)
    return bool(known)


@lru_cache(maxsize=32768)
def short_name(demangled: str, recorded: str = "") -> Named:
    """The short name of one kernel; what nothing is known of keeps its plain name.

    Args:
        demangled: the full name; anything in brackets is no kernel and stays.
        recorded: the short name that the report gives, kept where no rule names it better.
    """
    if demangled.startswith("[") or len(demangled) > LONGEST:
        return Named(recorded or demangled)
    parts = parts_of(demangled)
    for rule in (*LIBRARY_RULES, *ATTENTION_RULES, *RULES):
        match = rule.pattern.search(parts.own)
        named = None if match is None else rule.name(parts, match)
        if named is not None:
            return named
    return Named(recorded or last_component(parts.own))
