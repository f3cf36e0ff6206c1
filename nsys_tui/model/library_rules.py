"""Rules that name kernels of libraries and compilers; ``kernel_rules`` names those of all code.

Tried before the others. A running number, which each build gives anew, only tells two apart.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from nsys_tui.model.attention_rules import of_code
from nsys_tui.model.kernel_rules import TYPES, Named, Parts, Rule, argument, flags, of_number, rules

_FLOATS: Final = frozenset(word for word in TYPES.values() if word[:1] in "bfet" and word != "bool")
_WHOLE: Final = re.compile(r"-?\d+")
_KERNEL: Final = re.compile(r"_?(?:kernel|Kernel)(?=_|\Z)")


def _types(parts: Parts) -> list[str]:
    """The types of data among the template arguments; integers are mostly those of indices."""
    return [word for text in parts.arguments if (word := argument(text)) in _FLOATS]


def _numbers(parts: Parts) -> list[str]:
    return [size for text in parts.arguments if (size := of_number(text))]


def _spoken(text: str) -> str:
    """``rms norm`` of ``rms_norm_kernel``."""
    return " ".join(_KERNEL.sub("", text).replace("_", " ").split()) or text


def _words(parts: Parts, _: re.Match[str]) -> Named | None:
    """``reshape and cache bf16``: the name in words, and its type."""
    return Named.of(_spoken(parts.base), *_types(parts)[:1])


def _attention(parts: Parts, _: re.Match[str]) -> Named | None:
    """``paged attention v2 bf16 hd128``: the first number is the size of a head."""
    heads = [f"hd{size}" for size in _numbers(parts)[:1]]
    return Named.of(_spoken(parts.base), *_types(parts)[:1], *heads)


def _called(label: str, counted: str = "") -> Callable[[Parts, re.Match[str]], Named | None]:
    """``cat bf16``: words in which groups of the pattern stand; ``how`` only tells two apart.

    Args:
        label: the words.
        counted: what the first number is of, ``d`` of dimensions: it tells two apart, too.
    """

    def named(parts: Parts, match: re.Match[str]) -> Named | None:
        told = {key: _spoken(text or "") for key, text in match.groupdict().items()}
        words = (*label.format_map(told).split(), *_types(parts)[:1])
        numbers = filter(_WHOLE.fullmatch, map(argument, parts.arguments))
        count = [f"{number}{counted}" for number in [*numbers][:1] if counted and number > "0"]
        return Named.of(*words, details=(told.get("how", "").lower(), *count))

    return named


def _torch(parts: Parts, match: re.Match[str]) -> Named | None:
    """``vectorized layer norm bf16``: kernels of PyTorch that carry no lambda."""
    return None if "lambda" in "".join(parts.arguments) else _words(parts, match)


def _softmax(parts: Parts, match: re.Match[str]) -> Named | None:
    """``log softmax fwd f32``: the fifth argument of the warp's kernel makes it a logarithm."""
    log = "LogSoftMax" in parts.whole or flags(parts.arguments[4:5], ("log",)) == ("log",)
    what = match.groupdict().get("what") or ("log softmax" if log else "softmax")
    way = "fwd" if match["way"].lower() == "forward" else "bwd"
    how = match.groupdict().get("how") or ""
    up_to = [f"n{2 ** int(size)}" for size in _numbers(parts)[:1] if "_warp_" in match.group()]
    return Named.of(_spoken(what), way, *_types(parts)[:1], details=(how.lower(), *up_to))


_SCATTER: Final = re.compile(
    r"_cuda_scatter_(gather|fill)_internal_kernel<(?:\(bool\))?(\w+)(?:, (?:\w+::)*(\w+)\b)?"
)


def _scatter(parts: Parts, _: re.Match[str]) -> Named | None:
    """``scatter add f32``: which way, and what is done to what is there."""
    inner = _SCATTER.search(parts.whole)
    if inner is None:
        return None
    way = "gather" if inner[1] == "gather" and inner[2] in ("0", "false") else "scatter"
    done = re.search(r"\bReduce(\w+)", parts.whole)
    what = "fill" if inner[1] == "fill" else done[1].lower() if done else ""
    return Named.of(way, what, TYPES.get(inner[3], ""), details=tuple(_numbers(parts)))


def _random(parts: Parts, _: re.Match[str]) -> Named | None:
    """``random normal f32``: from which distribution."""
    drawn = re.search(r"\b(\w{1,40}?)_kernel<at::\w*Generator", parts.whole)
    return Named.of("random", *(drawn.groups() if drawn else ()), *_types(parts)[:1])


def _gemm(_: Parts, match: re.Match[str]) -> Named | None:
    """``bmm e2m1 128x8x512 TN``: the type of what is multiplied, tile and layout."""
    tile = re.search(r"_t(\d+x\d+x\d+)", match["rest"])
    layout = re.search(r"_([TN]{2})_", match["rest"])
    if tile is None or layout is None:
        return None
    words = (match["what"], of_code(match["type"]), tile[1], layout[1])
    return Named.of(*words, details=tuple(f"{match['out']}{match['rest']}".split("_")))


def _marlin(parts: Parts, match: re.Match[str]) -> Named | None:
    """``marlin f16 u4b8``: the types of activations and weights."""
    told = map(_scalar_type, parts.arguments[:2])
    moe = "moe" if "moe" in match.group() else ""
    sizes = [int(size) for size in _numbers(parts) if len(size) < 5]
    tile = "x".join(str(16 * blocks) for blocks in sizes[1:4])
    return Named.of("marlin", moe, *told, details=(tile, *map(str, sizes)))


def _scalar_type(text: str) -> str:
    """A type of vLLM from the bits of its number: exponent, mantissa, sign, bias."""
    number = int(of_number(text) or 0)
    exponent, mantissa, signed = number & 255, number >> 8 & 255, number >> 16 & 1
    bias = number >> 17 & 0xFFFFFFFF
    if number < 256:
        return "" if of_number(text) else argument(text)
    if exponent:
        return _SCALARS.get((exponent, mantissa), f"e{exponent}m{mantissa}")
    return f"{'i' if signed else 'u'}{mantissa + signed}" + (f"b{bias}" if bias else "")


_SCALARS: Final = {(5, 10): "f16", (8, 7): "bf16", (8, 23): "f32"}


def _ggml(parts: Parts, match: re.Match[str]) -> Named | None:
    """``mul mat vec q4_K``: the type of the weights by its number."""
    weights = [_GGML.get(number, "") for number in _numbers(parts)[:1]]
    return Named.of(_spoken(match["what"]), *weights)


_GGML: Final = {
    "0": "f32",
    "1": "f16",
    "2": "q4_0",
    "3": "q4_1",
    "6": "q5_0",
    "7": "q5_1",
    "8": "q8_0",
    "10": "q2_K",
    "11": "q3_K",
    "12": "q4_K",
    "13": "q5_K",
    "14": "q6_K",
    "30": "bf16",
}


def _activation(parts: Parts, match: re.Match[str]) -> Named | None:
    """``silu and mul bf16``: the function that a kernel of activations is given."""
    functions = re.findall(r"&(?:\w+::)*(\w+?)(?:_kernel)?\b", " ".join(parts.arguments))
    if not functions:
        return None
    return Named.of(functions[0], _spoken(match["what"]), *_types(parts)[:1])


def _fft(parts: Parts, match: re.Match[str]) -> Named | None:
    """``fft vector 4096 f64``: its size stands first where elements per thread come second."""
    sized = len(parts.arguments) > 1 and "EPT" in parts.arguments[1]
    size = _numbers(parts)[:1] if sized else []
    kind = match["kind"].replace("_fft", "").strip("_").replace("_", " ")
    return Named.of("fft", kind, *size, *_types(parts)[:1], details=tuple(_numbers(parts)))


def _compiled(_: Parts, match: re.Match[str]) -> Named | None:
    """``loop add fusion`` of ``loop_add_fusion_12``."""
    number = match["number"].strip("_").replace("_", ".")
    return Named(_spoken(match["what"]), (number and f"#{number}",))


def _lambda_of(parts: Parts, match: re.Match[str]) -> Named | None:
    """``Stencil::run``: the function in which a lambda stands that is a kernel itself, in SYCL."""
    *above, word = match["what"].split("::")
    name = "::".join((*above[-1:], word)) if word in ("run", "operator()", "submit") else word
    numbers = ".".join(re.findall(r"\)#(\d+)", parts.whole))
    return Named(name, (f"#{numbers}",)) if re.search(r"\w", name) else None


_NUMBERED: Final = r"(?P<number>(?:_\d+)*)\Z"

LIBRARY_RULES: Final[tuple[Rule, ...]] = rules(
    (r"\bpaged_attention_v\d(?:_reduce)?_kernel\Z|\bmasked_multihead_attention", _attention),
    (r"\b(?:vllm|flashinfer|sglang)::(?:\w+::)*act_(?P<what>and_mul)_kernel\Z", _activation),
    (r"\bmarlin\w*::Marlin\Z", _marlin),
    (r"\bdeep_gemm::(?:sm\d+_)?(?P<what>\w+?)(?:_impl|_kernel)?\Z", _called("deepgemm {what}")),
    (r"\bdeep_ep::(?P<how>\w+)::(?P<what>\w+)", _called("deepep {what}")),
    (
        r"\b(?:vllm|sglang|tensorrt_llm|flashinfer|transformer_engine|layer_norm|cusparse)::",
        _words,
    ),
    (r"\A(?P<what>mul_mat(?:_vec)?)_q\Z", _ggml),
    (r"\bgemvx::kernel\Z", _called("gemv")),
    (r"\A__myl_(?P<what>[A-Za-z]+)(?P<how>_\w+)?\Z", _called("myelin {what}")),
    (r"\Akernel_cutlass_\w*?(?P<what>[A-Z][A-Za-z0-9]{0,80})_object_at_", _called("{what}")),
    (
        r"\A(?P<what>bmm|gemm)_(?P<out>[A-Za-z\d]+)_(?P<type>(?:Bf|F)[a-z]+\d+|(?:Mx)?E\dm\d)"
        r"(?P<rest>\w+)",
        _gemm,
    ),
    (r"\bcunn_(?:Spatial)?SoftMax(?P<way>Forward|Backward)(?P<how>\w*)\Z", _softmax),
    (r"\b(?P<what>scaled_\w*softmax)_warp_(?P<way>forward|backward)\Z", _softmax),
    (r"\bsoftmax_warp_(?P<way>forward|backward)\Z", _softmax),
    (r"\bvectorized_gather_kernel\Z", _called("gather")),
    (r"\b_scatter_gather_elementwise_kernel\Z", _scatter),
    (r"\bindexSelect(?P<how>Large|Small)Index\Z", _called("index select", "d")),
    (r"\bindexFunc(?P<how>Large|Small)Index\Z", _called("index reduce", "d")),
    (r"\bCatArrayBatchedCopy_?(?P<how>\w*)\Z", _called("cat", "d")),
    (r"\b(?P<how>radix|bitonic|warpMerge)SortKVInPlace\Z", _called("sort {how}", "d")),
    (r"\bsbtopk::gatherTopK\Z", _called("topk", "d")),
    (r"\bmbtopk::(?P<what>\w+)\Z", _called("topk {what}")),
    (r"\bdistribution_elementwise_grid_stride_kernel\Z", _random),
    (r"\bat::native::(?!(?:\w+::)*\w*(?:elementwise|reduce|tensor_apply)_kernel\w*\Z)", _torch),
    (r"\breshape_and_cache\w*_kernel\w*\Z", _words),
    (
        r"\A(?:\w+::)*(?P<kind>(?:regular|vector|prime|composite_\dway|multi_\w+)_fft\w*)\Z",
        _fft,
    ),
    (r"\A(?P<what>(?:[a-z]+_)*fusion(?:_[a-z]+)*)" + _NUMBERED, _compiled),
    (r"\A(?P<what>wrapped_[a-z]+(?:_[a-z]+)*)" + _NUMBERED, _compiled),
    (r"\A(?P<what>triton_(?:softmax|mm|bmm|gemm|gemm_dot|dot))" + _NUMBERED, _compiled),
    (r"\A(?P<what>[^{]+?)::\{lambda", _lambda_of),
)
"""What is tried first, from top to bottom."""
