"""The kernels of a GPT-2 124M training step (batch 8, 1024 tokens) as an A100 would run them."""

from __future__ import annotations

import re
from typing import Final

from nsys_tui.demo.events import Kernel

_GEMM = "ampere_bf16_s16816gemm_bf16_{}_ldg8_f2f_stages_64x3_{}"


def _gemm(tile: str, layout: str, ns: int, grid: int, shared: int = 98304) -> Kernel:
    name = _GEMM.format(tile, layout)
    return Kernel(name, name, ns, (grid, 4, 1), (128, 1, 1), 230, 0, shared)


def _llmc(signature: str, ns: int, grid: int, registers: int = 32, shared: int = 0) -> Kernel:
    """A kernel of llm.c; ``B`` and ``C`` are buffers of bfloat16, the latter constant."""
    full = re.sub(r"\bB\b", "__nv_bfloat16*", re.sub(r"\bC\b", "const B", signature))
    short = full.partition("(")[0].partition("<")[0].removeprefix("void ")
    return Kernel(full, short, ns, (grid, 1, 1), (512, 1, 1), registers, shared)


def _cudnn(what: str, ns: int, registers: int, shared: int) -> Kernel:
    name = f"cudnn_generated_fort_native_sdpa_sm80_flash_{what}"
    return Kernel(name, name, ns, (16, 12, 8), (128, 1, 1), registers, 0, shared)


ENCODER: Final = _llmc("encoder_forward_kernel3(B, const int*, C, C, int, int, int)", 21_000, 12288)
LAYERNORM: Final = _llmc(
    "layernorm_forward_kernel6(B, float*, float*, C, C, C, int, int)", 22_500, 2048, 40
)
RESIDUAL: Final = _llmc(
    "fused_residual_forward_kernel5(B, B, float*, float*, C, C, C, C, int, int)", 33_000, 2048, 48
)
QKV: Final = _gemm("128x128", "tn", 154_000, 1152)
ATTENTION: Final = _cudnn("fprop_wmma_f16_knob_7_64x64x64_4x1x1_kernel0_0", 126_000, 255, 49152)
PROJECTION: Final = _gemm("128x64", "tn", 56_000, 768, 73728)
FC: Final = _gemm("128x128", "tn", 201_000, 1536)
GELU: Final = _llmc("gelu_forward_kernel2(B, C)", 24_000, 6144, 24)
FC_PROJECTION: Final = _gemm("128x64", "tn", 188_000, 768, 73728)
HEAD: Final = _gemm("256x128", "tn", 3_920_000, 3144, 147456)

CLASSIFIER: Final = _llmc(
    "void fused_classifier_kernel5<__nv_bfloat16, true>(B, float*, const float, const int*, int,"
    " int, int, int, std::integral_constant<bool, true>)",
    1_180_000,
    8192,
    40,
)
HEAD_BACKWARD: Final = _gemm("256x128", "nn", 3_870_000, 1572, 147456)
HEAD_WEIGHTS: Final = _gemm("256x128", "nt", 3_990_000, 1179, 147456)
BIAS: Final = _llmc(
    "void matmul_backward_bias_kernel9<__nv_bfloat16, false>(B, C, int, int,"
    " std::integral_constant<bool, false>)",
    14_000,
    432,
    32,
    4096,
)
REDUCE_SUM: Final = _llmc(
    "reduce_add_sum_kernel(B, const float*, unsigned long, unsigned long)", 3_100, 36, 20
)
LAYERNORM_BACKWARD: Final = _llmc(
    "layernorm_backward_kernel10(B, B, B, float*, C, C, C, const float*, const float*, int, int,"
    " int)",
    71_000,
    216,
    64,
    12288,
)
GELU_BACKWARD: Final = _llmc("gelu_backward_inplace_kernel(B, C)", 38_000, 6144, 28)
GRAD_INPUT: Final = _gemm("128x128", "nn", 168_000, 768)
GRAD_WEIGHT: Final = _gemm("128x64", "nt", 174_000, 576, 73728)
ATTENTION_BACKWARD: Final = (
    _cudnn("bprop_wmma_f16_dot_do_o_kernel0_0", 24_000, 64, 0),
    _cudnn("bprop_wmma_f16_knob_3_64x64x64_kernel0_0", 322_000, 255, 98304),
    _cudnn("bprop_wmma_f16_convert_dq_kernel0_0", 19_000, 48, 0),
)
WPE_BACKWARD: Final = _llmc(
    "wpe_backward_kernel(B, C, const int*, int, int, int, unsigned int)", 31_000, 3072
)
WTE_BACKWARD: Final = _llmc(
    "void wte_backward_kernel<256>(B, const int4*, const int*, C, const int*, unsigned int, int,"
    " int, int)",
    148_000,
    4100,
)
GLOBAL_SUM: Final = _llmc(
    "void global_sum_single_block_kernel<float>(float*, const float*, unsigned long)", 3_400, 1
)
NORM_SQUARED: Final = _llmc(
    "void global_norm_squared_kernel<__nv_bfloat16>(float*, C, unsigned long, long)", 186_000, 216
)
ADAMW: Final = _llmc(
    "void adamw_kernel3<__nv_bfloat16, __nv_bfloat16>(B, float*, B, float*, float*, unsigned"
    " long, long, long, long, float, float, float, float, float, float, float, float, unsigned"
    " int)",
    152_000,
    13824,
    40,
)
COPY_CAST: Final = _llmc(
    "void copy_and_cast_kernel<float, __nv_bfloat16>(float*, C, unsigned long, long, long)",
    61_000,
    4096,
    20,
)
SMALL: Final = tuple(
    _llmc(f"void {name}(float*, const float*, int)", ns, 4, 16)
    for name, ns in (
        ("vectorized_elementwise_kernel<4, at::native::AddFunctor>", 2_300),
        ("hellaswag_gather_kernel", 3_900),
        ("softmax_warp_forward<float, 8>", 4_700),
        ("hellaswag_score_kernel", 3_200),
    )
)


def nccl(operation: str, datatype: str) -> Kernel:
    """The kernel NCCL runs for a collective, such as ``("AllReduce_Sum", "bf16")``."""
    short = f"ncclDevKernel_{operation}_{datatype}_RING_LL"
    full = f"{short}(ncclDevKernelArgsStorage<(unsigned long)4096>)"
    return Kernel(full, short, 0, (8, 1, 1), (544, 1, 1), 96, 0, 82240)
