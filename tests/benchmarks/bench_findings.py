"""Precision and recall of the rules over the runs whose truth is planted.

    .venv/bin/python tests/benchmarks/bench_findings.py

A finding counts from 1 % of the run on. A rule is right on a run that must trigger it, and wrong
on one that nearly does.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from planted import PLANTED, told

from nsys_tui.analysis.rules.case import Case
from nsys_tui.reader import open_report


def main() -> int:
    """Prints a line for each rule; the exit code is 1 where one is wrong."""
    with tempfile.TemporaryDirectory() as folder:
        runs = {run for planted in PLANTED.values() for run in (*planted.triggers, *planted.near)}
        found: dict[str, set[str]] = {}
        for run in sorted(runs, key=lambda run: run.__name__):
            path = run(Path(folder) / f"{run.__name__}.sqlite").write()
            report = open_report(path, use_cache=False)
            found[run.__name__] = told(Case(report))
            report.close()
    print(f"{'rule':24}{'precision':>10}{'recall':>8}  wrong")
    all_right = True
    for rule, planted in PLANTED.items():
        hit = [run.__name__ for run in planted.triggers if rule in found[run.__name__]]
        false = [run.__name__ for run in planted.near if rule in found[run.__name__]]
        missed = [run.__name__ for run in planted.triggers if rule not in found[run.__name__]]
        precision = len(hit) / (len(hit) + len(false)) if hit or false else 0.0
        recall = len(hit) / len(planted.triggers)
        wrong = ", ".join([*(f"missed {name}" for name in missed), *(f"false {n}" for n in false)])
        all_right &= not wrong
        print(f"{rule:24}{precision:>10.2f}{recall:>8.2f}  {wrong}")
    return 0 if all_right else 1


if __name__ == "__main__":
    sys.exit(main())
