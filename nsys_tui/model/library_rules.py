"""Rules that name kernels of libraries and compilers; ``kernel_rules`` names those of all code.

Tried before the others. A running number, which each build gives anew, only tells two apart.
"""

from __future__ import annotations

import re
from typing import Final

from nsys_tui.model.kernel_rules import (
    TYPES,
    Named,
    Parts,
    Rule,
    argument,
    of_number,
    rules,
)

_FLOATS: Final = frozenset(word for word in TYPES.values() if word[:1] in "bfet" and word != "bool")
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
    return Named(" ".join((_spoken(parts.base), *_types(parts)[:1])))


def _attention(parts: Parts, _: re.Match[str]) -> Named | None:
    """``paged attention v2 bf16 hd128``: the first number is the size of a head."""
    heads = [f"hd{size}" for size in _numbers(parts)[:1]]
    return Named(" ".join((_spoken(parts.base), *_types(parts)[:1], *heads)))


def _activation(parts: Parts, match: re.Match[str]) -> Named | None:
    """``silu and mul bf16``: the function that a kernel of activations is given."""
    functions = re.findall(r"(\w+?)_kernel\b", " ".join(parts.arguments))
    if not functions:
        return None
    return Named(" ".join((*functions[:1], _spoken(match["what"]), *_types(parts)[:1])))


def _fft(parts: Parts, match: re.Match[str]) -> Named | None:
    """``fft vector 4096 f64``: its size stands first where elements per thread come second."""
    sized = len(parts.arguments) > 1 and "EPT" in parts.arguments[1]
    size = _numbers(parts)[:1] if sized else []
    kind = match["kind"].replace("_fft", "").strip("_").replace("_", " ")
    return Named(" ".join(("fft", kind, *size, *_types(parts)[:1])), tuple(_numbers(parts)))


def _compiled(_: Parts, match: re.Match[str]) -> Named | None:
    """``loop add fusion`` of ``loop_add_fusion_12``."""
    return Named(_spoken(match["what"]), (f"#{match['number']}",))


def _lambda_of(parts: Parts, match: re.Match[str]) -> Named | None:
    """``Stencil::run``: the function in which a lambda stands that is a kernel itself, in SYCL."""
    *above, word = match["what"].split("::")
    name = "::".join((*above[-1:], word)) if word in ("run", "operator()", "submit") else word
    numbers = ".".join(re.findall(r"\)#(\d+)", parts.whole))
    return Named(name, (f"#{numbers}",)) if re.search(r"\w", name) else None


_NUMBERED: Final = r"(?P<number>(?:_\d+)*)\Z"

LIBRARY_RULES: Final[tuple[Rule, ...]] = rules(
    (
        (r"\bpaged_attention_v\d(?:_reduce)?_kernel\Z|\bmasked_multihead_attention", _attention),
        (r"\bvllm::act_(?P<what>and_mul)_kernel\Z", _activation),
        (r"\b(?:vllm|tensorrt_llm|flashinfer|transformer_engine|layer_norm|cusparse)::", _words),
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
)
"""What is tried first, from top to bottom."""
