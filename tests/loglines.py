"""Lines of logs as the programs write them, for tests to put together."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from nsys_tui.logs import LogResult, read_logs
from nsys_tui.logs.answer import DOCUMENT
from nsys_tui.logs.nccl.hangs import find_hangs
from nsys_tui.logs.sections.section import LogAnswer
from nsys_tui.text.documents import document_text

if TYPE_CHECKING:
    from pathlib import Path


def body(
    op: str = "AllReduce",
    op_count: int = 5,
    *,
    count: int = 1024,
    datatype: int = 7,
    reduction: int = 0,
    root: int = 0,
    comm: str = "0x5500a0",
    nranks: int = 8,
    stream: str = "0x6600b0",
    buffers: tuple[str, str] = ("0x7f00", "0x7f10"),
    acc: str = "",
) -> str:
    return (
        f"{op}: opCount {op_count:x} sendbuff {buffers[0]} recvbuff {buffers[1]} {acc}"
        f"count {count} datatype {datatype} op {reduction} root {root} comm {comm} "
        f"[nranks={nranks}] stream {stream}"
    )


def info(text: str, *, host: str = "node01", pid: int = 1000, tid: int = 2000, dev: int = 0) -> str:
    return f"{host}:{pid}:{tid} [{dev}] NCCL INFO {text}"


def nemo(step: int, seconds: str = "6.043", tflops: str = "1.243e+03") -> str:
    return (
        f"Training epoch 0, iteration {step}/99 | lr: 6.897e-06 | global_step: {step} | "
        f"reduced_train_loss: 11.96 | train_step_timing in s: {seconds} | "
        f"TFLOPS_per_GPU: {tflops} | consumed_samples: 5632"
    )


def init(
    comm: str,
    rank: int,
    nranks: int,
    *,
    device: int = 0,
    comm_id: str = "0xabc",
    phase: str = "COMPLETE",
    rest: str = "",
) -> str:
    return (
        f"ncclCommInitRank comm {comm} rank {rank} nranks {nranks} cudaDev {device} "
        f"nvmlDev {device} busId {device + 1}7000 commId {comm_id}{rest} - Init {phase}"
    )


def read(folder: Path, *files: str | bytes | list[str], **options: object) -> LogResult:
    """Writes texts (or lists of lines) as log files and reads them as one run."""
    paths = []
    for number, text in enumerate(files):
        path = folder / f"rank{number}.log"
        if isinstance(text, list):
            text = "".join(f"{line}\n" for line in text)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        paths.append(path)
    return read_logs(paths, **options)  # type: ignore[arg-type]


def logs_json(result: LogResult, *lists: str) -> dict[str, Any]:
    """What ``nsys-tui logs --format json`` prints, with the call lists that are named."""
    answer = LogAnswer(result, find_hangs(result), lists=frozenset(lists))
    found: dict[str, Any] = json.loads("".join(document_text(DOCUMENT, answer, result)))
    return found
