"""The tables about the session itself: machine, GPUs, processes, settings, program output."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from nsys_tui.demo import schema
from nsys_tui.demo.events import RankInfo
from nsys_tui.demo.tables import HW_VM, Tables, global_tid

STARTED: Final = datetime(2026, 5, 4, 9, 0, 0, tzinfo=UTC)
SYSTEM_CLOCK_NS: Final = 86_311_000_000_000

GPU: Final = {
    "name": "NVIDIA A100 80GB PCIe",
    "isDiscrete": 1,
    "l2CacheSize": 41_943_040,
    "totalMemory": 85_031_714_816,
    "memoryBandwidth": 1_935_000_000_000,
    "clockRate": 1_410_000_000,
    "smCount": 108,
    "luid": 0,
    "chipName": "GA100",
    "ctxswDevPath": "",
    "ctrlDevPath": "",
    "revision": 161,
    "nodeMask": 0,
    "constantMemory": 65_536,
    "maxIPC": 4,
    "maxRegistersPerBlock": 65_536,
    "maxShmemPerBlock": 49_152,
    "maxShmemPerBlockOptin": 166_912,
    "maxShmemPerSm": 167_936,
    "maxRegistersPerSm": 65_536,
    "threadsPerWarp": 32,
    "asyncEngines": 3,
    "maxWarpsPerSm": 64,
    "maxBlocksPerSm": 32,
    "maxThreadsPerBlock": 1024,
    "maxBlockDimX": 1024,
    "maxBlockDimY": 1024,
    "maxBlockDimZ": 64,
    "maxGridDimX": 2_147_483_647,
    "maxGridDimY": 65_535,
    "maxGridDimZ": 65_535,
    "computeMajor": 8,
    "computeMinor": 0,
    "smMajor": 8,
    "smMinor": 0,
}

ENVIRONMENT: Final = {
    "Hostname": "demo-node",
    "OsDescription": "Ubuntu 24.04.2 LTS",
    "KernelVersion": "6.8.0",
    "CpuDescription": "AMD EPYC 7543 32-Core Processor",
    "CpuCores": "64",
    "CpuArchitecture": "x86_64",
    "NvDriverVersion": "595.45.04",
    "CudaDriverVersion": "13020",
}

CAPTURE: Final = (
    ("PROCESS_0:COMMAND", "torchrun"),
    ("PROCESS_0:ARGUMENT_0", "--nproc-per-node={ranks}"),
    ("PROCESS_0:ARGUMENT_1", "train_gpt2.py"),
    ("COLLECT_CUDA_TRACE", "true"),
    ("COLLECT_NVTX_TRACE", "true"),
    ("COLLECT_CPU_TRACE", "true"),
    ("CUDA_GRAPH_TRACE_OPTIONS:MODE", "Graph"),
    ("OS_RUNTIME_OPTIONS:DURATION_THRESHOLD_NS", "0"),
)

_NCCL_SCHEMA: Final = 16_777_223
_NCCL_FIELDS: Final = (
    ("NCCL communicator ID", 18, 0),
    ("Message size [bytes]", 22, 8),
    ("Reduction operation", 5, 16),
)


def describe_process(rows: Tables, info: RankInfo) -> None:
    """Names of a process, its threads and streams, its GPU, and what it printed."""
    rows.add("PROCESSES", globalPid=global_tid(info.pid), pid=info.pid, name="/usr/bin/python3")
    for name, tid in info.threads.items():
        tid_key = global_tid(info.pid, tid)
        rows.add("ThreadNames", nameId=rows.string(name), priority=20, globalTid=tid_key)
    place = {"hwId": HW_VM >> 8, "vmId": HW_VM & 0xFF, "processId": info.pid, "contextId": 1}
    on_gpu = place | {"deviceId": rows.device(info.rank)}
    null_stream = info.streams[""]
    for name, stream in info.streams.items():
        flag = 2 if name else 3
        priority = 2**32 - 5 if name == "nccl stream" else 0
        rows.add("TARGET_INFO_CUDA_STREAM", **place, streamId=stream, priority=priority, flag=flag)
        if name:
            rows.add("TARGET_INFO_NVTX_CUDA_STREAM", **on_gpu, name=name, streamId=stream)
    rows.add("TARGET_INFO_CUDA_NULL_STREAM", **on_gpu, streamId=null_stream)
    rows.add(
        "TARGET_INFO_CUDA_CONTEXT_INFO",
        **on_gpu,
        nullStreamId=null_stream,
        isGreenContext=0,
        numMultiprocessors=GPU["smCount"],
    )
    rows.add(
        "TARGET_INFO_CUDA_DEVICE",
        gpuId=info.gpu,
        cudaId=on_gpu["deviceId"],
        pid=info.pid,
        uuid=_uuid(info.gpu),
        numMultiprocessors=GPU["smCount"],
    )
    rows.add(
        "TARGET_INFO_GPU",
        **GPU,
        vmId=HW_VM << 48,
        id=info.gpu,
        cuDevice=info.gpu,
        pwGpuId=info.gpu,
        uuid=_uuid(info.gpu),
        busLocation=f"0000:{0x17 + 0x11 * info.gpu:02x}:00.0",
    )
    _payload_schema(rows)
    if info.rank == 0:
        rows.add(
            "ProcessStreams",
            globalPid=global_tid(info.pid),
            filenameId=rows.string(f"/tmp/streams/pid_{info.pid}_stdout.log"),
            contentId=rows.string(trainer_lines(rows)),
        )


def describe_machine(rows: Tables) -> None:
    """Session clock, environment, settings, diagnostics."""
    duration = rows.trace.duration
    utc = int(STARTED.timestamp()) * 1_000_000_000
    printed = STARTED.strftime("%Y-%m-%dT%H:%M:%S")
    rows.add(
        "TARGET_INFO_SESSION_START_TIME",
        utcEpochNs=utc,
        utcTime=printed,
        localTime=printed,
        systemClockNs=SYSTEM_CLOCK_NS,
    )
    rows.add(
        "ANALYSIS_DETAILS",
        globalVid=HW_VM << 48,
        duration=duration,
        startTime=SYSTEM_CLOCK_NS,
        stopTime=SYSTEM_CLOCK_NS + duration,
    )
    for number, (name, value) in enumerate(ENVIRONMENT.items()):
        rows.add(
            "TARGET_INFO_SYSTEM_ENV",
            globalVid=HW_VM << 48,
            devStateName="Device",
            name=name,
            nameEnum=number,
            value=value,
        )
    for name, value in CAPTURE:
        rows.add("META_DATA_CAPTURE", name=name, value=value.format(ranks=len(rows.trace.ranks)))
    for table in ("META_DATA_EXPORT", "EXPORT_META_DATA"):
        for name, value in _export_settings(rows.generation):
            rows.add(table, name=name, value=value)
    first = global_tid(rows.trace.ranks[0].pid)
    for text, time in (
        ("Profiling has started.", -240_000),
        ("Common injection library initialized successfully.", 14_100_000),
        (f"Number of CUDA events collected: {len(rows.trace.calls)}.", duration),
    ):
        rows.add(
            "DIAGNOSTIC_EVENT",
            timestamp=time,
            timestampType=1,
            source=3,
            severity=1,
            text=text,
            globalPid=first,
        )
    for number, name in ((0, "Unknown"), (1, "Frame pointer"), (2, "Unwind table"), (6, "DWARF")):
        rows.add("UnwindMethodType", number=number, name=name)


def trainer_lines(rows: Tables) -> str:
    """What rank 0 printed: one line a step, as llm.c does."""
    steps = [r for r in rows.trace.ranges if r.rank == 0 and r.name.startswith("Train step")]
    lines = []
    for number, step in enumerate((s for s in steps if s.end is not None), 1):
        assert step.end is not None
        micros = (step.end - step.start) // 1000
        loss = 11_040_000 - 437_000 * number + 9_000 * number * number
        rate = 2 * 8 * 1024 * 1_000_000 // micros
        lines.append(
            f"step {number:4d}/{rows.trace.steps} | loss {loss // 10**6}.{loss % 10**6:06d} (+nanz)"
            f"| norm 15.3{number:03d} (+nanz)| lr {number}.00e-06 |"
            f" {micros // 1000}.{micros % 1000 // 10:02d} ms | -100.0% bf16 MFU | {rate} tok/s\n"
        )
    return "".join(lines)


def _export_settings(generation: str) -> list[tuple[str, str]]:
    product, version = schema.GENERATIONS[generation]
    exported = (STARTED + timedelta(minutes=3)).strftime("%Y-%m-%dT%H:%M:%S")
    numbers = zip(("MAJOR", "MINOR", "MICRO"), version.split("."), strict=False)
    return [
        ("EXPORT_PRODUCT_NAME", "NVIDIA Nsight Systems"),
        ("EXPORT_PRODUCT_VERSION", product),
        ("EXPORT_PRODUCT_DATE", ".".join(product.split(".")[:2])),
        ("EXPORT_SCHEMA_VERSION", version),
        *((f"EXPORT_SCHEMA_VERSION_{name}", number) for name, number in numbers),
        ("EXPORT_PLATFORM", "linux-desktop"),
        ("EXPORT_ARCH", "x64"),
        ("EXPORT_TIME_UTC", exported),
    ]


def _payload_schema(rows: Tables) -> None:
    """The layout NCCL declares for its ranges; repeated by every process."""
    rows.add(
        "NVTX_PAYLOAD_SCHEMAS",
        domainId=1,
        schemaId=_NCCL_SCHEMA,
        type=1,
        flags=0,
        numEntries=len(_NCCL_FIELDS),
        payloadSize=24,
    )
    for index, (name, kind, offset) in enumerate(_NCCL_FIELDS):
        rows.add(
            "NVTX_PAYLOAD_SCHEMA_ENTRIES",
            domainId=1,
            schemaId=_NCCL_SCHEMA,
            idx=index,
            type=kind,
            name=name,
            offset=offset or None,
        )


def _uuid(gpu: int) -> str:
    return f"6a5f0000-0000-4000-8000-00000000000{gpu}"
