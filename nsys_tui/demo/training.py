"""The program each rank runs: GPT-2 training steps with llm.c's ranges and kernels.

A rank is a generator that stops at every collective, so that the ranks can be joined there; see
``report.simulate``. As in PyTorch, the backward pass is launched by an autograd thread and batches
come from a data-loader thread.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Final, TypeAlias

from nsys_tui.demo import kernels as k
from nsys_tui.demo import problems
from nsys_tui.demo.events import Collective, Kernel, Operation, Phase, Range
from nsys_tui.demo.machine import DTOD, DTOH, HTOD, PAGEABLE, Rank

LAYERS: Final = 12
TOKENS: Final = 8 * 1024
LAYER_PARAMETERS: Final = 7_087_872
EMBEDDING_PARAMETERS: Final = 39_424_512
BF16, FP32, SUM = 9, 7, 0

LOADER_CATEGORY: Final = 1
GENERATED_TOKENS: Final = 16
NCCL_DOMAIN: Final = 1
COMMUNICATOR: Final = 0x5F3759DF00C0FFEE

SYNC_FRAMES: Final = ("cudaStreamSynchronize", "gpt2_forward", "train_step", "main")
WAIT_FRAMES: Final = ("pthread_cond_wait", "queue_get", "next_batch", "train_step", "main")

Steps: TypeAlias = "Generator[tuple[Rank, Collective, Operation], None, None]"


def program(rank: Rank, steps: int, functions: bool = True) -> Steps:
    """The whole run of one rank; yields (rank, collective, its kernel) to be joined.

    Args:
        rank: the process to run it on.
        steps: number of training steps.
        functions: whether the ranges inside a layer are annotated too.
    """
    training = Training(rank, functions)
    training.setup()
    rank.phase = Phase.LOOP
    for step in range(steps):
        yield from training.step(step, steps)
    rank.phase = Phase.EPILOGUE
    if rank.rank == 0:
        training.generate()
    training.cut_off(steps)


class Training:
    """The program's functions, bound to one rank."""

    def __init__(self, rank: Rank, functions: bool) -> None:
        self.rank = rank
        self._functions = functions
        self._batch: Range | None = None
        self._batch_ready = 0

    def setup(self) -> None:
        """Start of the process: driver, modules, memory, weights, communicator."""
        r = self.rank
        r.main.clock = 182_000_000 + 1_700_000 * r.rank
        r.overhead("CUDA profiling initialization", 41_000_000, 1)
        r.call("cuInit", 62_000_000, driver=True)
        with r.range("load model"):
            for _ in range(6):
                r.os_call("open64", 21_000)
                r.os_call("read", 1_900_000)
            r.overhead("cuLibraryLoadData", 17_000_000, 6)
            for size in (248_952_832, 248_952_832, 497_905_664, 497_905_664, 497_905_664):
                r.allocate(size, 310_000)
            r.copy(HTOD, 248_952_832, r.null, PAGEABLE)
        self._open_communicator()
        r.think(2_000_000)
        self._prefetch(0, late=False)

    def step(self, step: int, steps: int) -> Steps:
        """One training step, with what its number brings."""
        r = self.rank
        with r.range(f"Train step {step}"):
            if step == 0 or step == steps - 1:
                self._validate()
            self._next_batch(step, steps)
            self._forward(step)
            yield from self._backward(step)
            yield from self._gradient_norm()
            self._update(step)
            if step == problems.PAGEABLE_STEP and r.rank == 0:
                self._save_checkpoint()
            if step == problems.LAUNCH_BOUND_STEP:
                self._evaluate()

    def generate(self) -> None:
        """Inference with a CUDA graph, on one rank only."""
        r = self.rank
        with r.range("generation"):
            self._capture_graph()
            for token in range(1, GENERATED_TOKENS):
                with r.range(f"Generation step {token}"):
                    r.launch_graph(410_000)
                    r.copy(DTOH, 4)
                    r.synchronize(r.compute)
                    r.think(11_000)

    def cut_off(self, step: int) -> None:
        """A step that the end of the capture cuts off: its ranges never end."""
        r = self.rank
        r.free_last()
        r.think(400_000)
        r.open_range(f"Train step {step}")
        r.open_range("gpt2_forward")
        with self._function("encoder_forward"):
            r.launch(k.ENCODER)
        r.open_range("Layer 0")
        with self._function("matmul_cublaslt"):
            r.launch(k.QKV)
        r.call("cudaProfilerStop_v4000", 30_000)
        r.thread.clock = max(r.thread.clock, r.compute.ready) + 900_000

    @contextmanager
    def _function(self, name: str) -> Iterator[None]:
        if not self._functions:
            yield
            return
        with self.rank.range(name):
            yield

    def _run(self, function: str, *launched: Kernel) -> None:
        with self._function(function):
            for kernel in launched:
                self.rank.launch(kernel)

    def _prefetch(self, step: int, late: bool) -> None:
        """The data-loader thread reads a batch and copies it to the GPU."""
        r, loader = self.rank, self.rank.loader
        hang = problems.LOADER_HANG_NS if late else 0
        with r.on(loader):
            loader.clock = max(loader.clock, r.main.clock) + 30_000
            self._batch = r.open_range(f"prefetch {step}")
            loader.open_ranges.pop()
            self._batch.event_type, self._batch.category = 60, LOADER_CATEGORY
            with r.range("read shard"):
                for block in range(96):
                    r.os_call(
                        "pread64", r.noise.around(240_000, 300) + (hang if block == 20 else 0)
                    )
                    r.think(9_000)
            for _ in range(6):
                r.copy(HTOD, TOKENS * 4, r.copies)
            r.synchronize(r.copies)
            r.os_call("pthread_cond_signal", 2_100)
            self._batch_ready = loader.clock

    def _next_batch(self, step: int, steps: int) -> None:
        """Waits for the loader, then lets it go on with the following batch."""
        r = self.rank
        with r.range("load tokens"):
            r.os_call("pthread_mutex_lock", 900)
            waiting = self._batch_ready + 14_000 - r.main.clock
            if waiting > 0:
                r.os_call("pthread_cond_wait", waiting, WAIT_FRAMES)
            r.think(6_000)
        assert self._batch is not None
        self._batch.end, self._batch.end_tid = r.main.clock, r.main.tid
        if step + 1 < steps:
            self._prefetch(step + 1, late=step + 1 == problems.SLOW_STEP)

    def _forward(self, step: int = -1) -> None:
        r = self.rank
        r.copy(HTOD, TOKENS * 4)
        with r.range("gpt2_forward"):
            self._run("encoder_forward", k.ENCODER)
            self._run("layernorm_forward", k.LAYERNORM)
            for layer in range(LAYERS):
                with r.range(f"Layer {layer}"):
                    self._layer_forward()
                    if step == problems.SYNC_STALL_STEP:
                        r.synchronize(r.compute, problems.SYNC_WAKE_NS, SYNC_FRAMES)
                    if step == problems.MODULE_LOAD_STEP and layer < 3:
                        r.synchronize(r.compute)
                        r.overhead("cuLibraryGetKernel", 780_000, 7)
                    if step == problems.ALLOCATION_STEP and layer == 6:
                        r.synchronize(r.compute)
                        r.allocate(402_653_184, 640_000)
            self._run("matmul_cublaslt", k.HEAD)
        r.synchronize()

    def _layer_forward(self) -> None:
        r = self.rank
        self._run("matmul_cublaslt", k.QKV)
        self._run("attention_forward_cudnn", k.ATTENTION)
        self._run("matmul_cublaslt", k.PROJECTION)
        r.launch(k.RESIDUAL)
        self._run("matmul_cublaslt", k.FC)
        self._run("gelu_forward", k.GELU)
        self._run("matmul_cublaslt", k.FC_PROJECTION)
        r.launch(k.RESIDUAL)

    def _backward(self, step: int) -> Steps:
        """Hands over to the autograd thread and sleeps until it is done."""
        r = self.rank
        overlapped = step != problems.EXPOSED_STEP
        with r.range("gpt2_backward_and_reduce"):
            r.think(12_000)
            handed_over = r.main.clock
            with r.on(r.autograd):
                idle_since = max(r.autograd.clock, handed_over - 40_000_000)
                r.autograd.clock = idle_since
                r.os_call("pthread_cond_wait", handed_over + 19_000 - idle_since)
                r.memset(TOKENS * 4)
                r.memset(248_952_832)
                r.copy(HTOD, TOKENS * 4)
                with r.range("classifier_and_loss"):
                    yield from self._layers_backward(overlapped)
                r.os_call("pthread_cond_signal", 1_900)
            sleep = r.autograd.clock + 22_000 - handed_over
            r.os_call("pthread_cond_wait", sleep, ("pthread_cond_wait", "backward", "main"))
        r.wait_event(r.compute, r.nccl)

    def _layers_backward(self, overlapped: bool) -> Steps:
        r = self.rank
        r.launch(k.CLASSIFIER)
        r.memset(4)
        self._run("matmul_backward", k.HEAD_BACKWARD, k.HEAD_WEIGHTS)
        self._layernorm_backward()
        for layer in reversed(range(LAYERS)):
            with r.range(f"Layer {layer}"):
                self._layer_backward()
                if overlapped:
                    r.copy(DTOD, LAYER_PARAMETERS * 2)
                    yield from self._all_reduce(LAYER_PARAMETERS)
        with self._function("encoder_backward"):
            r.launch(k.WPE_BACKWARD)
            r.copy(HTOD, TOKENS * 4)
            r.copy(HTOD, 4_096)
            r.launch(k.WTE_BACKWARD)
        rest = (
            EMBEDDING_PARAMETERS if overlapped else EMBEDDING_PARAMETERS + LAYERS * LAYER_PARAMETERS
        )
        yield from self._all_reduce(rest)

    def _layer_backward(self) -> None:
        weights = (k.GRAD_INPUT, k.BIAS, k.REDUCE_SUM, k.GRAD_WEIGHT)
        self._run("gelu_forward", k.GELU)
        with self._function("matmul_backward"):
            self._run("matmul_cublaslt", k.GRAD_INPUT)
            self._run("gelu_backward_inplace", k.GELU_BACKWARD)
            self._run("matmul_cublaslt", k.BIAS, k.REDUCE_SUM, k.GRAD_WEIGHT)
        self._run("matmul_backward", *weights)
        self._layernorm_backward()
        self._run("matmul_backward", *weights)
        self._run("attention_backward_cudnn", *k.ATTENTION_BACKWARD)
        self._run("matmul_backward", *weights)
        self._layernorm_backward()

    def _layernorm_backward(self) -> None:
        self.rank.memset(4)
        self._run("layernorm_backward", k.LAYERNORM_BACKWARD)

    def _all_reduce(self, count: int) -> Steps:
        """Launches an all-reduce on the communication stream, behind the compute so far."""
        r = self.rank
        with r.range("multi_gpu_async_reduce_gradient"):
            r.wait_event(r.nccl, r.compute)
            yield from self._collective(count, BF16)

    def _collective(self, count: int, datatype: int) -> Steps:
        r = self.rank
        size = count * (2 if datatype == BF16 else 4)
        fields = {"NCCL communicator ID": COMMUNICATOR, "Message size [bytes]": size}
        payload = json.dumps(fields | {"Reduction operation": "Sum"})
        with r.range("ncclAllReduce", NCCL_DOMAIN, registered=True, payload=payload):
            called = r.thread.clock
            r.think(3_000)
            call = r.call("cuLaunchKernelEx", 5_600, driver=True)
            done = r.enqueue_at_least(call, r.nccl, r.nccl.ready)
            done.kernel = k.nccl("AllReduce_Sum", "bf16" if datatype == BF16 else "f32")
            part = Collective(
                "AllReduce", r.rank, r.thread.tid, count, datatype, SUM, r.op_count, called
            )
            r.op_count += 1
        yield r, part, done

    def _gradient_norm(self) -> Steps:
        r = self.rank
        with r.range("gpt2_calculate_grad_norm"):
            r.launch(k.NORM_SQUARED)
            r.launch(k.GLOBAL_SUM)
            r.wait_event(r.nccl, r.compute)
            yield from self._collective(1, FP32)
            r.wait_event(r.compute, r.nccl)
            r.copy(DTOH, 4)
            r.synchronize(r.compute)

    def _update(self, step: int) -> None:
        r = self.rank
        with r.range("gpt2_update"):
            if step == 0:
                with self._function("InitOpt"):
                    r.memset(497_905_664)
                    r.memset(497_905_664)
                    for _ in range(16):
                        r.launch(k.COPY_CAST)
            for _ in range(16):
                r.launch(k.ADAMW)
        r.copy(DTOH, 4)
        r.synchronize(r.compute)

    def _validate(self) -> None:
        with self.rank.range("validation"):
            self._forward()
            with self.rank.range("classifier_and_loss"):
                self.rank.launch(k.CLASSIFIER)
                self.rank.synchronize()

    def _save_checkpoint(self) -> None:
        """A copy to unpinned memory: it blocks, and staging goes on after the GPU is done."""
        r = self.rank
        with r.range("save checkpoint"):
            r.mark("checkpoint started")
            done = r.copy(DTOH, problems.CHECKPOINT_BYTES, host_kind=PAGEABLE)
            call = r.trace.calls[-1]
            call.end = r.thread.clock = done.end + problems.UNSTAGE_NS

    def _evaluate(self) -> None:
        """Many tiny kernels: the host cannot launch them as fast as the GPU runs them."""
        r = self.rank
        with r.range("evaluation"):
            r.think(80_000)
            for index in range(problems.SMALL_KERNELS):
                r.launch(k.SMALL[index % len(k.SMALL)], host_ns=problems.SMALL_LAUNCH_NS)
            r.synchronize()
            r.think(70_000)

    def _capture_graph(self) -> None:
        r = self.rank
        r.call("cudaStreamBeginCapture_v10000", 9_000)
        r.think(900_000)
        made = r.call("cudaStreamEndCapture_v10000", 40_000)
        r.trace.graph_nodes.append((r.rank, made.end - 500, 95, 1))
        made = r.call("cudaGraphInstantiateWithFlags_v11040", 1_200_000)
        r.trace.graph_nodes.append((r.rank, made.end - 500, 94, 2))

    def _open_communicator(self) -> None:
        """Opens NCCL's NVTX domain and initialises the communicator."""
        r = self.rank
        r.trace.ranges.append(
            Range("data loader", r.rank, r.main.tid, 12_000_000, None, r.phase, 33,
                  category=LOADER_CATEGORY)
        )  # fmt: skip
        r.trace.ranges.append(
            Range("NCCL", r.rank, r.main.tid, -3_000_000, None, r.phase, 75, NCCL_DOMAIN)
        )
        payload = json.dumps(
            {
                "NCCL communicator ID": COMMUNICATOR,
                "No. of ranks": r.world,
                "Rank": r.rank,
                "CUDA device": 0,
            }
        )
        with r.range("ncclCommInitRank", NCCL_DOMAIN, registered=True, payload=payload):
            r.os_call("connect", 210_000)
            r.think(38_000_000)
