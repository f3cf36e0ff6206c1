"""Two commands a verb for ``--help``, of verbs whose own text shows none."""

from __future__ import annotations

from typing import Final

EXAMPLES: Final[dict[str, tuple[str, ...]]] = {
    "open": ("report.sqlite", "rank0.sqlite rank1.sqlite --theme light"),
    "overview": ("report.sqlite --section kernels --top 5", "report.sqlite --format json"),
    "stats": (
        "report.sqlite -r cuda_gpu_kern_sum,nvtx_sum --format csv",
        "report.sqlite -r cuda_gpu_kern_sum --window 0.4s/0.5s",
    ),
    "analyze": (
        "report.sqlite --fail-on high",
        "report.sqlite --rule gpu_gaps,gpu_time_util --format json",
    ),
    "stalls": ("report.sqlite --threshold 50us", "report.sqlite --group-by cause --device 0"),
    "iterations": ("report.sqlite", "report.sqlite --critical-path slowest"),
    "sql": (
        'report.sqlite "select name, sum(duration_ns) from kernels group by 1 order by 2 desc"',
        'report.sqlite "select cause, sum(idle_ns) from stalls group by 1" --format csv',
    ),
    "stacks": (
        "report.sqlite --format svg -o gpu.svg",
        "report.sqlite | flamegraph.pl --countname ns > gpu.svg",
    ),
    "compare": (
        "before.sqlite after.sqlite",
        "main-*.sqlite --against branch-*.sqlite --gate 'kernel:gemm.*:5%'",
        "report.sqlite --iteration-a 3 --iteration-b 7",
        "new.sqlite --baseline-file perf/base.json --gate 3% --junit gate.xml",
        "before.sqlite after.sqlite --folded | flamegraph.pl > difference.svg",
    ),
    "fleet": (
        "reports/ --section stragglers",
        "rank*.sqlite --pace softmax --section pace-ranks",
        "reports/ --step 5 --section ranks --section calls",
        "reports/ --format csv -o figures/",
        "/shared/reports --scheduler tcp://node1:8786",
    ),
    "logs": (
        "nccl.log --steps 45-49",
        "rank*.log --section hangs --fail-on mismatch",
        "nccl.log --section calls --format csv > calls.csv",
        "rank0.log --report report.sqlite",
    ),
    "keys": ("--keys vim", "--format svg > keys.svg"),
    "baseline": ("save main report.sqlite", "add --file perf/base.json report.sqlite"),
    "collectives": ("report.sqlite", "report.sqlite --nccl-log rank0.log --format csv"),
    "capture": (
        "--trace cuda,nvtx -- python train.py --steps 20",
        "gpu-box --print -- python train.py",
    ),
    "targets": ("list", "check gpu-box"),
    "captures": ("list", "open 12"),
    "report": (
        "report.sqlite -o page.html",
        "report.sqlite -o slow.html --window 0.9s/1s",
        "before.sqlite after.sqlite --compare -o change.html",
        "rank0.sqlite rank1.sqlite --fleet -o fleet.md",
    ),
    "export": (
        "report.sqlite --table kernels -o kernels.csv",
        "report.sqlite --perfetto trace.json --window 0.4s/0.5s",
    ),
    "demo": ("-o demo.sqlite", "-o small.sqlite --steps 3 --truth figures.json"),
    "tour": ("", "--theme light"),
    "explain": ("exposed communication", "65"),
    "doctor": ("", "report.sqlite"),
    "completion": ("bash", "fish"),
}
"""Arguments by verb. Every line is run, or at least parsed, by a test."""


def with_examples(verb: str, epilog: str | None) -> str | None:
    """What stands below the options of a verb.

    Args:
        verb: its name.
        epilog: what it says itself.
    """
    lines = [f"  nsys-tui {verb} {words}".rstrip() for words in EXAMPLES.get(verb, ())]
    return (
        "\n".join([*([epilog.rstrip(), ""] if epilog else []), "examples:", *lines])
        if lines
        else epilog
    )
