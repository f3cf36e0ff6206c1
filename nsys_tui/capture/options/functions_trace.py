"""The JSON file of ``--python-functions-trace``: made from a short list, and checked.

nsys skips silently what it cannot find, so whatever can be seen beforehand is refused here: most
of all functions of ``__main__``, which nsys cannot trace because the script has no importable name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from nsys_tui.errors import UsageError

_NAME: Final = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
_COLOUR: Final = re.compile(r"0x[0-9A-Fa-f]{6}|[A-Za-z]+")
_KEYS: Final = ("domain", "category", "color", "module", "functions")


def make(functions: Iterable[str], *, domain: str = "functions", color: str = "0x008000") -> str:
    """Writes the JSON text for functions given as ``module:function``.

    Raises:
        UsageError: a name has no module, or is one that nsys cannot trace.
    """
    by_module: dict[str, list[str]] = {}
    for item in functions:
        module, colon, function = item.partition(":")
        if not colon:
            raise UsageError(f"{item!r} names no module", hint="write package.module:function")
        by_module.setdefault(module, []).append(function)
    document = [
        {"domain": domain, "color": color, "module": module, "functions": names}
        for module, names in by_module.items()
    ]
    text = json.dumps(document, indent=1)
    check(text, "functions trace")
    return text


def names(text: str) -> list[str]:
    """The functions of a checked file as ``module:function``."""
    dotted = []
    for entry in json.loads(text):
        for item in entry["functions"]:
            whole = item if isinstance(item, Mapping) else {"function": item}
            dotted.append(f"{whole.get('module', entry.get('module'))}:{whole.get('function')}")
    return dotted


def modules(text: str) -> set[str]:
    """The modules of a checked file."""
    return {name.partition(":")[0] for name in names(text)}


def check(text: str, where: str) -> list[str]:
    """Checks the content of a functions-trace file.

    Args:
        text: the file's content.
        where: the file's name, for messages.

    Returns:
        Remarks on what nsys may ignore.

    Raises:
        UsageError: it is no JSON, has the wrong shape, or names what cannot be traced.
    """
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise UsageError(f"{where}: is not JSON", str(error)) from error
    if not isinstance(document, list) or not document:
        raise UsageError(
            f"{where}: must be a list of objects", hint='[{"module": …, "functions": […]}]'
        )
    remarks: list[str] = []
    for number, entry in enumerate(document, 1):
        remarks += _check_entry(entry, f"{where}: entry {number}")
    return remarks


def _check_entry(entry: object, where: str) -> list[str]:
    if not isinstance(entry, Mapping):
        raise UsageError(f"{where}: must be an object with module and functions")
    functions = entry.get("functions")
    if not isinstance(functions, list) or not functions:
        raise UsageError(f"{where}: functions must be a list with at least one name")
    for item in functions:
        _check_function(item, entry.get("module"), where)
    colour = entry.get("color")
    if colour is not None and not (isinstance(colour, str) and _COLOUR.fullmatch(colour)):
        raise UsageError(f"{where}: color {colour!r}", hint="write 0xRRGGBB or a name")
    unknown = [key for key in entry if key not in _KEYS and not key.startswith("_")]
    return [f"{where}: nsys does not know the key {key!r}" for key in unknown]


def _check_function(item: Any, default_module: object, where: str) -> None:
    if isinstance(item, Mapping):
        module, function = item.get("module", default_module), item.get("function")
    else:
        module, function = default_module, item
    if module == "__main__":
        raise UsageError(
            f"{where}: {function!r} belongs to __main__",
            "nsys hooks functions when their module is imported, and the script itself never is",
            "move the function to a module of its own and name that",
        )
    for name, what in ((module, "module"), (function, "function")):
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise UsageError(f"{where}: {what} {name!r} is no Python name")
