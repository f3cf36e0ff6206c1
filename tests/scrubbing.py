"""Copies of real reports without what tells of people, machines and folders.

Frames of these copies may be committed; the reports themselves may not.
"""

from __future__ import annotations

import re
import shutil
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

PRIVATE_FACT: Final = re.compile(
    r"COMMAND|ARGUMENT|WORKING_DIR|USER|HOST|DISPLAY_NAME|PATH|DIR$|DeviceEnvironment|Hostname|UUID"
)
"""Rows of the name and value tables whose value is replaced; environments are deleted."""

PUBLIC: Final = frozenset({"nvidia"})
"""Names of folders that are in the names of libraries too."""


def scrubbed(report: Path, target: Path) -> Path:
    """A copy whose host, user, command, environment and folders are stand-ins."""
    shutil.copyfile(report, target)
    target.chmod(0o600)
    with closing(sqlite3.connect(target)) as database:
        database.execute("PRAGMA journal_mode = OFF")
        database.create_function("scrub", 1, _scrub, deterministic=True)
        database.create_function("private", 1, _is_private, deterministic=True)
        tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
        for table in tables & {"META_DATA_CAPTURE", "META_DATA_EXPORT", "TARGET_INFO_SYSTEM_ENV"}:
            database.execute(f"DELETE FROM {table} WHERE name LIKE '%ENVIRONMENT_VARIABLE%'")
            database.execute(f"UPDATE {table} SET value = 'masked' WHERE private(name)")
        for table, column in (("StringIds", "value"), ("PROCESSES", "name")):
            if table in tables:
                database.execute(f"UPDATE {table} SET {column} = scrub({column})")
        if "ANALYSIS_FILE" in tables:
            database.execute("DELETE FROM ANALYSIS_FILE")
        database.commit()
    return target


def private_words(report: Path) -> set[str]:
    """What no frame may hold: the report's host, user, arguments, folders and environment."""
    words: set[str] = set()
    with closing(sqlite3.connect(f"file:{report}?immutable=1", uri=True)) as database:
        for table in ("META_DATA_CAPTURE", "META_DATA_EXPORT", "TARGET_INFO_SYSTEM_ENV"):
            for name, value in database.execute(f"SELECT name, value FROM {table}"):
                if "ENVIRONMENT_VARIABLE" in name:
                    words |= _of_variable(value)
                elif name == "DeviceEnvironment":
                    words = words.union(*map(_of_variable, value.split(";")))
                elif _is_private(name) and "COMMAND" not in name:  # the process is called so
                    words |= {value, *re.split(r"[\s/:=]+", value)}
    return {word for word in words if len(word) > 5 and not word.isdigit()} - PUBLIC


def _of_variable(assignment: str) -> set[str]:
    """Its value, and the parts of one that names a person, a machine or a folder."""
    name, _, value = assignment.partition("=")
    value = value.strip().strip('"')
    if re.search("USER|LOGNAME|HOST|HOME|NODE", name):
        return {value, *value.split("/")}
    return {value} - {value.lower() if value.isalpha() else ""}


def _is_private(name: str) -> bool:
    return PRIVATE_FACT.search(name) is not None


def _scrub(text: str | None) -> str | None:
    """A path keeps its last part; a text with line ends or NUL was an environment or a log."""
    if text is None or "\0" in text or "\n" in text:
        return None if text is None else ""
    return text.rpartition("/")[2] if text.startswith(("/", "~", "./", "../")) else text
