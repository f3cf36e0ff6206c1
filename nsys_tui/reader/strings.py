"""StringIds: the table that nearly every name of an export points into."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import numpy as np

from nsys_tui.reader.columns import read_text
from nsys_tui.reader.encode import Int32, Int64, codes

if TYPE_CHECKING:
    from nsys_tui.reader.sqlite import Database

UNNAMED = "[unnamed]"


class Strings:
    """Names by id, read once on first use.

    An id without a row (trimmed files) reads as ``[string N]``, a NULL id as ``[unnamed]``.
    """

    def __init__(self, db: Database) -> None:
        self._db = db
        self._lock = threading.Lock()
        self._values: dict[int, str] | None = None

    def _load(self) -> dict[int, str]:
        with self._lock:
            if self._values is None:
                if "StringIds" in self._db.tables:
                    ids, values = read_text(self._db, "StringIds", "id", "value")
                    self._values = dict(zip(ids.tolist(), values, strict=True))
                else:
                    self._values = {}
            return self._values

    def get(self, string_id: int) -> str:
        """The name of one id; -1 stands for NULL."""
        if string_id == -1:
            return UNNAMED
        return self._load().get(string_id, f"[string {string_id}]")

    def encode(self, ids: Int64) -> tuple[tuple[str, ...], Int32]:
        """Dictionary-encodes a column of ids: the names that occur and the code of each row."""
        distinct, code = codes(ids)
        return tuple(self.get(int(i)) for i in distinct), code

    def merge(
        self, ids: Int64, texts: list[str], text_codes: Int32
    ) -> tuple[tuple[str, ...], Int32]:
        """Encodes rows whose name is inline text (code >= 0) or else a string id."""
        names, code = self.encode(np.where(text_codes >= 0, -1, ids))
        merged = (*names, *texts)
        code = np.where(text_codes >= 0, text_codes + len(names), code)
        used, final = codes(code.astype(np.int64))
        return tuple(merged[i] for i in used), final
