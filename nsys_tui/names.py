"""Names of kernels, API calls and ranges: shortened, compared, fitted to cells, made safe to show.

Names come from reports and are untrusted: they may be 100 000 characters long or hold control
characters. Every function here takes linear time and none fails on odd text.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from enum import StrEnum
from functools import lru_cache
from typing import Final

from nsys_tui.redaction import may_hold_secret, redacted


class NameStyle(StrEnum):
    """How kernel names are shown."""

    SHORT = "short"
    NORMALISED = "normalised"
    FULL = "full"


ACROSS: Final = "across"
"""The short style without what tells two kernels of one report apart: the same in all reports."""


def across(style: str) -> str:
    """The style in which names of several reports are compared."""
    return ACROSS if style == NameStyle.SHORT else style


def kernel_name(short: str, demangled: str, style: str) -> str:
    """One kernel's name in the style asked for; the other name stands in for an empty one."""
    if style == NameStyle.SHORT:
        return short or normalise_kernel(demangled)
    full = demangled or short
    return full if style == NameStyle.FULL else normalise_kernel(full)


_ANONYMOUS: Final = re.compile(
    r"(?:\(anonymous namespace\)|<unnamed>|\{anonymous\}|`anonymous[ -]namespace'"
    r"|\b_NV_ANON_NAMESPACE|\b_GLOBAL__N_\w*+|\b_INTERNAL_\w*+)::"
)
_OPERATOR: Final = r"\boperator\s*(?:\(\)|\[\]|<=>|<<=?|>>=?|->\*?|<=?|>=?)"
_TOKEN: Final = re.compile(rf"{_OPERATOR}|->|[<>()\[\]{{}} ]")
_CONVERSION: Final = re.compile(r"\boperator (?=\w)")
_CLONE_WORDS: Final = frozenset(
    ("isra", "constprop", "part", "cold", "kd", "llvm", "lto_priv", "clone")
)
_CLOSES: Final = {")": "(", ">": "<", "]": "[", "}": "{"}


@lru_cache(maxsize=32768)
def normalise_kernel(demangled: str) -> str:
    """The part of a demangled name that tells kernels apart whatever their types.

    Return type, arguments, template arguments, anonymous namespaces and clone suffixes go; digit
    runs stay, because they tell ``gemm_128x256`` from ``gemm_64x64``. A name that is no function
    (``[CUDA memcpy HtoD]``) is returned as it is.
    """
    if demangled.startswith("["):
        return demangled
    text = demangled.partition(" [clone ")[0]
    name, is_code = _without_groups(_ANONYMOUS.sub("", text))
    if is_code:
        name = _without_return_type(name)
    return _without_clone_suffix(name.strip()).lstrip("*& ") or demangled


class _Groups:
    """The brackets open at one place of a name, innermost last."""

    def __init__(self) -> None:
        self.stack: list[str] = []
        self.open = dict.fromkeys("<([{", 0)

    @property
    def dropped(self) -> bool:
        """Whether the place lies in template arguments or parentheses, which are left out."""
        return bool(self.open["<"] or self.open["("])

    def enter(self, opener: str) -> None:
        self.stack.append(opener)
        self.open[opener] += 1

    def leave(self, opener: str) -> None:
        """Pops to the last ``opener``; a ``>`` inside parentheses compares, so it pops nothing."""
        if not self.open[opener] or (opener == "<" and self.stack[-1] != "<"):
            return
        top = ""
        while top != opener:
            top = self.stack.pop()
            self.open[top] -= 1


def _without_groups(text: str) -> tuple[str, bool]:
    """Drops template arguments, parentheses, and all that follows the last argument list.

    Returns:
        The text, and whether it read like C++: without template arguments or an argument list
        (which follows the name without a space) words at the front are no return type.
    """
    groups, kept = _Groups(), list[str]()
    end: int | None = None
    position, is_code = 0, False
    for match in _TOKEN.finditer(text):
        token = match.group()
        if not groups.dropped:
            kept.append(text[position : match.start()])
        position = match.end()
        if token in _CLOSES:
            groups.leave(_CLOSES[token])
        elif token in groups.open:
            is_call = token == "(" and not groups.stack and text[match.start() - 1] != " "
            end = len(kept) if is_call else end
            is_code = is_code or is_call or token == "<"
            groups.enter(token)
        if not groups.dropped and token not in "<>()":
            inside = token == " " and groups.stack
            kept.append("_" if inside else token.replace("operator ", "operator"))
    if not groups.dropped:
        kept.append(text[position:])
    return "".join(kept[:end]).replace("_]", "]").replace("_}", "}"), is_code


def _without_return_type(name: str) -> str:
    name = name.strip()
    conversion = _CONVERSION.search(name)
    begin = len(name) if conversion is None else conversion.start()
    return name[:begin].rpartition(" ")[2] + name[begin:]


def _without_clone_suffix(name: str) -> str:
    parts = name.split(".")
    keep = len(parts)
    for number in range(len(parts) - 1, 0, -1):
        if parts[number] in _CLONE_WORDS:
            keep = number
        elif not parts[number].isdigit():
            break
    return ".".join(parts[:keep])


_DIGITS: Final = re.compile(r"[0-9]+")
_LAYER: Final = re.compile(r"(?i)layer[ _.:#-]?\d+\s*:?")
_TRAIN_STEP: Final = re.compile(r"(?i)train[ _-]?step[ _.:#-]?\d+\s*:?")
_OP_ID: Final = re.compile(r",? ?\b(?:seq|op_id) = [\d#]+")
_API_VERSION: Final = re.compile(r"_v[0-9]{4,5}\Z")
_API_VERSION_NSYS: Final = re.compile(r"_v[0-9]{4}\Z")


def normalise_nvtx(name: str) -> str:
    """A range name with each run of digits as ``#``, so that ``step 1`` and ``step 2`` are one.

    Tokens and passwords go first: without their digits nothing would tell them any more.
    """
    short = _DIGITS.sub("#", name)
    return _DIGITS.sub("#", redacted(name)) if may_hold_secret(short) else short


def numbered_alike(names: Iterable[str]) -> dict[str, str]:
    """Names with digits as ``#`` where several differ in them only; ``3D_conv`` keeps its own."""
    short = {name: normalise_nvtx(name) for name in names}
    times = Counter(short.values())
    return {name: one if times[one] > 1 else name for name, one in short.items()}


def is_layer_number(name: str) -> bool:
    """Whether a range is a numbered layer (``Layer 3``), and not, say, ``LayerNorm fwd``."""
    return _LAYER.fullmatch(name) is not None


def is_train_step(name: str) -> bool:
    """Whether a range is a numbered training step (``Train step 12``)."""
    return _TRAIN_STEP.fullmatch(name) is not None


def strip_op_id(name: str) -> str:
    """A PyTorch range without running numbers: ``aten::mm, seq = 5, op_id = 7`` → ``aten::mm``."""
    return _OP_ID.sub("", name) if "= " in name else name


def similar_name(name: str) -> str:
    """What a range shares with those that differ in numbers only: ``aten::mm``, ``step #``."""
    return normalise_nvtx(strip_op_id(name))


def api_name(name: str, nsys_compatible: bool = False) -> str:
    """An API call without its version: ``cudaLaunchKernel_v7000`` → ``cudaLaunchKernel``.

    Args:
        name: as recorded; driver entry points such as ``cuMemAlloc_v2`` keep their suffix.
        nsys_compatible: strip exactly four digits, as NVIDIA's reports do, so that
            ``cudaGraphLaunch_v10000`` keeps them.
    """
    return (_API_VERSION_NSYS if nsys_compatible else _API_VERSION).sub("", name)


def char_cells(char: str) -> int:
    """Terminal cells of one character: 2 for East Asian wide, 0 for combining marks, else 1."""
    if unicodedata.category(char) in ("Mn", "Me", "Cf") or "\u1160" <= char <= "\u11ff":
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def cell_len(text: str) -> int:
    """Terminal cells that a text takes."""
    return len(text) if text.isascii() else sum(map(char_cells, text))


def cut(text: str, cells: int) -> str:
    """The longest beginning of a text that takes at most ``cells`` cells."""
    if text.isascii():
        return text[: max(cells, 0)]
    used = 0
    for position, char in enumerate(text):
        used += char_cells(char)
        if used > cells:
            return text[:position]
    return text


def pad(text: str, cells: int) -> str:
    """A text of exactly ``cells`` cells: shortened with ``~`` or filled with spaces.

    What is shortened loses its secrets first: the beginning of one is not known as such any more.
    """
    if cell_len(text) > cells and cell_len(text := redacted(text)) > cells:
        text = cut(text, cells - 1) + "~" if cells > 0 else ""
    return text + " " * (cells - cell_len(text))


_SHORTEST_ENDS: Final = 12


def both_ends(text: str, cells: int) -> str:
    """Beginning and end of a text: what tells long kernel names apart often stands at their end."""
    if cells < _SHORTEST_ENDS or cell_len(text) <= cells:
        return text
    if cell_len(text := redacted(text)) <= cells:
        return text
    tail = text[-(cells * 2 // 5) :]
    return f"{cut(text, cells - 1 - cell_len(tail))}~{tail}"


def told_apart(names: Sequence[str], cells: int) -> list[str]:
    """Names cut to some cells; those that would look the same lose what they begin with alike.

    ``gemm bf16 96x64x64 TN bias`` and ``gemm bf16 192x64x64 TN bias`` are ``gem~96x64x64 TN bias``
    and ``gem~192x64x64 TN bias``.
    """
    shown = [both_ends(name, cells) for name in names]
    alike: dict[str, list[int]] = {}
    for index, text in enumerate(shown):
        alike.setdefault(text, []).append(index)
    for places in alike.values():
        own = [names[index] for index in places]
        pairs = enumerate(zip(min(own), max(own), strict=False))
        common = next((at for at, (one, other) in pairs if one != other), 0)
        for index in places if common > _KEPT else ():
            rest = names[index][common:]
            head = names[index][: max(_KEPT, cells - 1 - cell_len(rest))]
            shown[index] = pad(f"{head}~{rest}", cells).rstrip()
    return shown


_KEPT: Final = 3
"""Characters that stay of what names begin with alike."""
_SMALLEST_CUT: Final = 3
_GAPS: Final = " _,;/|"
_WORD: Final = re.compile("[ ,;|]+")

_TELLING: Final = re.compile(
    r"(?i)\b(?:step|iteration|iter|epoch|batch|layer|repeat|tid|pid|rank) (\d+)$"
    r"|^\w+\((\w+)\)(?=#[a-z_])"
)
"""The part of a name that tells it: its number, or what it is done to, before whose code it is."""


@lru_cache(maxsize=65536)
def fit(name: str, cells: int) -> str:
    """The longest readable form of a name that fits, or nothing.

    The ladder: the name, without template arguments and the like, without its namespace, its first
    words, its first characters and ``~``. What is cut keeps at least three cells. Of steps, layers
    and threads the number stays. Of a token or password nothing does.
    """
    if cells < _SMALLEST_CUT:
        return name if cell_len(name) <= cells else ""
    whole, base = _shortened(name, cells)
    beginning = "" if whole else cut(base, cells + 1)
    for gap in reversed(list(_WORD.finditer(beginning))):
        words = beginning[: gap.start()]
        told = len(words) >= _SMALLEST_CUT or not gap[0].isspace()
        if told and cell_len(words) <= cells:
            return words
    return whole if whole or not name else f"{cut(base, cells - 1).rstrip(_GAPS)}~"


def brief(name: str, cells: int) -> str:
    """A name in a sentence: as ``fit``, but what is cut says so, for it may be another's name.

    A method keeps its class, where that fits.
    """
    whole, base = _shortened(name, cells)
    if whole == base != name:
        method = "::".join(normalise_kernel(name).split("::")[-2:])
        whole = method if method.endswith(f"::{base}") and cell_len(method) <= cells else whole
    return whole if whole or not name else f"{cut(base, cells - 1).rstrip(_GAPS)}~"


def _shortened(name: str, cells: int) -> tuple[str, str]:
    """The longest form of a name that fits uncut, maybe none, and the shortest there is."""
    if cell_len(name) <= cells:
        return name, name
    name = redacted(name)
    telling = _TELLING.search(name)
    plain = normalise_kernel(name)
    base = last_component(plain)
    forms = (*((telling[0], telling[1] or telling[2]) if telling else ()), plain, base)
    return next((form for form in forms if cell_len(form) <= cells), ""), base


def last_component(name: str) -> str:
    """A qualified name without its namespaces and classes."""
    head, _, last = name.rpartition("::")
    while head and last.startswith(("operator", "{", "[")):
        head, _, previous = head.rpartition("::")
        last = f"{previous}::{last}"
    return last or name


_UNSAFE: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u115f\u1160\u200b-\u200f\u2028-\u202e\u2060-\u2069\u3164\ufeff\uffa0"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
_OF_UNKNOWN_WIDTH: Final = re.compile("(?<=.)[\ufe0e\ufe0f\U0001f3fb-\U0001f3ff]")
"""What makes the character before it a picture, or colours it: terminals differ in its cells."""
_OF_INDIA: Final = re.compile("[\u0900-\u1cff\u302e\u302f\ua800-\uabff\U00011000-\U0001d1ff]")
"""Where scripts have marks with a width: one cell for most terminals, none for Textual."""


def _shown(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else _escaped(match)


def _without_width(match: re.Match[str]) -> str:
    """A dot for a mark with a width, so that all agree on the cells of a row."""
    return "·" if unicodedata.category(match[0]) == "Mc" else match[0]


def _printable(char: str) -> str:
    """A character, or its number where it steers or no font can have it."""
    return f"\\u{ord(char):04x}" if unicodedata.category(char) in ("Cn", "Cf") else char


def _escaped(match: re.Match[str]) -> str:
    code = ord(match.group())
    if 0xDC80 <= code <= 0xDCFF:
        code -= 0xDC00
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def visible(text: str, ascii_only: bool = False) -> str:
    r"""A text that a terminal can be sent: control characters and invisible ones become visible.

    Args:
        text: anything, lone surrogates included.
        ascii_only: escape as ``\x1b`` instead of with control pictures, and bring other characters
            to ASCII: accents go, an estimate's ``≈`` becomes ``~``, the rest ``?``.
    """
    if text.isascii() and text.isprintable():
        return text
    if not ascii_only:
        shown = _OF_UNKNOWN_WIDTH.sub("", _UNSAFE.sub(_shown, text))
        shown = _OF_INDIA.sub(_without_width, shown)
        return shown if shown.isprintable() else "".join(map(_printable, shown))
    plain = unicodedata.normalize("NFKD", _UNSAFE.sub(_escaped, text.replace("≈", "~")))
    kept = "".join(char for char in plain if not unicodedata.combining(char))
    return kept.encode("ascii", "replace").decode("ascii")


def visible_in_place(text: str) -> str:
    """As ``visible``, but one character for each, so that a cursor keeps its place."""
    if text.isprintable() and visible(text) == text:
        return text
    shown = map(visible, text)
    return "".join(char if len(char) == 1 else "\ufffd" for char in shown)


_STEERING: Final = re.compile(rf"(?![\n\t]|\r\n){_UNSAFE.pattern}")


def escaped(text: str) -> str:
    r"""A text for a file or a pipe: as ``visible``, but line breaks and tabs stay.

    What a terminal would obey or not show becomes ``\x1b`` or ``\u202e``; so does a lone carriage
    return.
    """
    if text.isascii() and text.isprintable():
        return text
    return _STEERING.sub(_escaped, text)


def visible_lines(text: str) -> str:
    """A text of several lines that a terminal can be sent; see :func:`visible`."""
    return "\n".join(visible(line) for line in text.split("\n"))
