"""A small machine: host threads that call, GPU streams that work in order; writes what happens.

Unlike rows written by hand, waits end when the work does and kernels start when their stream is
free: a run is told by what the program does, and its report follows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from synth import Synth

if TYPE_CHECKING:
    from pathlib import Path

US, MS = 1_000, 1_000_000
FULL = (1080, 1, 1)


class Machine:
    """One process on some GPUs; every thread and stream has a clock of its own."""

    def __init__(self, path: Path, gpus: int = 1) -> None:
        self.report = Synth(path).process(10, "train")
        for gpu in range(gpus):
            self.report.gpu(gpu)
        self.now = 0
        self.free: dict[tuple[int, int], int] = {}

    def call(self, name: str, ns: int, corr: int | None = None) -> None:
        self.report.api(name, self.now, self.now + ns, corr=corr)
        self.now += ns

    def _next(self, device: int, stream: int) -> int:
        return max(self.now + 2 * US, self.free.get((device, stream), 0) + US)

    def launch(
        self, name: str, ns: int, device: int = 0, grid: tuple[int, int, int] = FULL
    ) -> None:
        corr = self.report.next_correlation()
        self.call("cudaLaunchKernel_v7000", 5 * US, corr)
        start = self._next(device, 7)
        self.report.kernel(name, start, start + ns, device=device, corr=corr, grid=grid)
        self.free[device, 7] = start + ns

    def copy(self, size: int, rate: int, kind: str, memory: str = "pinned") -> None:
        """A blocking copy at a rate in GB/s."""
        corr, start = self.report.next_correlation(), self._next(0, 7)
        end = start + max(size // rate, 1200)
        src, dst = (memory, "device") if kind == "HtoD" else ("device", memory)
        self.report.memcpy(start, end, bytes=size, kind=kind, corr=corr, src=src, dst=dst)
        self.free[0, 7] = end
        self.call("cudaMemcpy_v3020", end + 4 * US - self.now, corr)

    def upload(self, ns: int) -> None:
        """An asynchronous copy of pinned memory."""
        corr = self.report.next_correlation()
        self.call("cudaMemcpyAsync_v3020", 5 * US, corr)
        start = self._next(0, 7)
        self.report.memcpy(start, start + ns, bytes=20 * ns, corr=corr, src="pinned")
        self.free[0, 7] = start + ns

    def clear(self, ns: int) -> None:
        """A memset."""
        corr = self.report.next_correlation()
        self.call("cudaMemsetAsync_v3020", 5 * US, corr)
        start = self._next(0, 7)
        self.report.memset(start, start + ns, bytes=1000 * ns, corr=corr)
        self.free[0, 7] = start + ns

    def faults(self, name: str, ns: int, pages: int) -> None:
        """A kernel that waits for so many ns for pages, which come as it touches them."""
        self.launch(name, ns + pages)
        start = self.free[0, 7] - ns - pages
        self.report.memcpy(
            start, start + pages, bytes=65536, kind="UVM HtoD", dst="managed", migrationCause=2
        )

    def wait(self) -> None:
        end = max(self.free.values()) + 4 * US
        self.call("cudaDeviceSynchronize_v3020", max(end - self.now, 3 * US))

    def off(self, name: str, ns: int) -> None:
        """The thread sits in a call of the operating system."""
        self.report.osrt(name, self.now, self.now + ns)
        self.now += ns

    def layers(self, count: int = 8, ns: int = 400 * US, tag: str = "") -> None:
        for _ in range(count):
            self.launch(f"{tag}gemm", ns)
            for name in ("softmax", "norm", "gelu"):
                self.launch(f"{tag}{name}", ns // 4)

    def named(self, name: str, since: int) -> None:
        self.report.nvtx(name, since, self.now)
