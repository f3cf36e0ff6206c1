"""``nsys-tui demo``: writes the demo report, a made-up training run whose problems are known."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nsys_tui.commands.options import add, add_overwriting, whole
from nsys_tui.commands.printing import refuse_report, say
from nsys_tui.errors import UsageError

if TYPE_CHECKING:
    import argparse

    from nsys_tui.demo.report import Made

EPILOG = """\
problems planted in the run (see --truth for their exact figures):
  step 4    the host waits for the stream after every layer
  step 5    a checkpoint is copied to pageable memory (first GPU)
  step 6    an evaluation of kernels shorter than their launches
  step 7    the gradients are reduced after the backward pass, hidden by nothing
  step 8    the data loader is late
  always    the last GPU is 12% slower, so the others wait in collectives
"""


DESCRIPTION = (
    "Writes a made-up nsys report of a GPT-2 training run on two GPUs, always with the same"
    " figures. In a terminal it goes to the cache folder unless --output says otherwise."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares what the verb takes."""
    from nsys_tui.demo.problems import DEFAULT_STEPS
    from nsys_tui.demo.report import MAX_GPUS, MAX_KERNELS, MAX_STEPS
    from nsys_tui.demo.schema import CURRENT, GENERATIONS

    option = partial(add, parser)
    option("-o, --output FILE", "the SQLite file", type=Path)
    option("--truth FILE", "write the true figures as JSON", type=Path)
    option(
        "--nccl-log PATH", "write the NCCL log: a file, or a folder with one per rank", type=Path
    )
    option(
        "--schema",
        f"generation of nsys to write (default {CURRENT})",
        choices=tuple(GENERATIONS),
        default=CURRENT,
    )
    option(
        "--steps N",
        f"training steps, up to {MAX_STEPS} (default {DEFAULT_STEPS})",
        type=whole(1, MAX_STEPS),
        default=DEFAULT_STEPS,
    )
    option(
        "--gpus N",
        f"GPUs, one process each, 2 to {MAX_GPUS} (default 2)",
        type=whole(2, MAX_GPUS),
        default=2,
    )
    option(
        "--kernels N",
        "repeat the training loop until there are about N kernels, for benchmarks",
        type=whole(1, MAX_KERNELS),
    )
    add_overwriting(parser)


def run(arguments: argparse.Namespace) -> int:
    """Writes the report and prints its path; what else was written goes to stderr.

    Raises:
        UsageError: a file exists, or cannot be written where it was asked for.
    """
    in_cache = arguments.output is None and sys.stdout.isatty()
    output = arguments.output or (_cached() if in_cache else Path("demo.sqlite"))
    for path in (None if in_cache else output, arguments.truth, arguments.nccl_log):
        if path is not None:
            _require_free(path, overwrite=arguments.force_overwrite)
            if path is not output:
                refuse_report(path)
    made = _write(
        output,
        truth_path=arguments.truth,
        log_path=arguments.nccl_log,
        generation=arguments.schema,
        steps=arguments.steps,
        kernels=arguments.kernels,
        gpus=arguments.gpus,
    )
    print(made.report)
    for path in (made.truth, *made.logs):
        if path is not None:
            say(f"also written: {path}")
    return 0


def _write(output: Path, **options: Any) -> Made:
    from nsys_tui.demo.report import make_report

    try:
        return make_report(output, **options)
    except OSError as error:
        raise UsageError(
            f"cannot write the demo report: {output}",
            error.strerror or str(error),
            "choose another place with --output",
        ) from error


def _require_free(path: Path, *, overwrite: bool) -> None:
    if path.is_dir() or not path.exists():  # logs in a folder have names of their own
        return
    if not path.is_file():
        raise UsageError(f"{path} is no regular file", hint="name a file")
    if not overwrite:
        raise UsageError(f"{path} exists already", hint="--force-overwrite replaces it")


def cached_demo() -> Path:
    """The demo report in the cache folder, written if it is not there.

    Raises:
        UsageError: it cannot be written there.
    """
    path = _cached()
    if not path.exists():
        _write(path)
    return path


def _cached() -> Path:
    from nsys_tui.config import load_config
    from nsys_tui.reader.cache import cache_at

    return cache_at(load_config().cache.dir).root / "demo.sqlite"
