"""Where tests find the real reports and logs: beside the checkout, never committed."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"
REPORTS = SHARED / "reports"
LOGS = SHARED / "logs"

needs_reports = pytest.mark.skipif(
    not REPORTS.is_dir(), reason="needs the real reports in ../shared/reports, which are absent"
)
needs_logs = pytest.mark.skipif(
    not LOGS.is_dir(), reason="needs the real logs in ../shared/logs, which are absent"
)


def report_paths() -> list[Path]:
    """All real reports, sorted by name; empty when the folder is absent."""
    return sorted(REPORTS.glob("*.sqlite"))


@cache
def goldens() -> dict[str, Any]:
    """Exact expected figures for the shared reports and logs."""
    return dict(json.loads((LOGS / "goldens.json").read_text()))
