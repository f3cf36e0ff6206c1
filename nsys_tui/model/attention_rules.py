"""Rules that name kernels of attention: direction, type, size of a head, mask."""

from __future__ import annotations

import re
from typing import Final

from nsys_tui.model.kernel_rules import ON, Named, Parts, dtype_in, flags, of_number, rules

_FLAGS: Final = {
    "": "dropout causal local alibi even_mn even_k softcap softmax",
    "splitkv": "causal local alibi even_mn even_k softcap split append",
    "dq_dk_dv": "dropout causal local alibi even_mn even_k softcap",
}
"""Flags of kernels of flash attention 2; older ones lack, in this order, those of ``_LATER``."""
_LATER: Final = ("softcap", "alibi", "local")


def _flash(parts: Parts, match: re.Match[str]) -> Named | None:
    """``flash fwd hd128``: direction and size of a head."""
    head = next(iter(re.findall(r"traits\w*<(?:\(int\))?(\d+)", parts.whole)), "")
    kind = re.sub(r"_?(kernel|loop|seqk|parallel)", "", match["kind"] or "").strip("_")
    words = ("flash", match["way"], kind, f"hd{head}" if head else "")
    values = [text for text in parts.arguments if ON.fullmatch(text)]
    known = _FLAGS.get(kind, "").split()
    for word in _LATER[: max(len(known) - len(values), 0)]:
        known.remove(word)
    details = flags(values, known) if len(known) == len(values) else ()
    if kind == "splitkv_combine" and (most := of_number("".join(parts.arguments[2:3]))):
        details = (f"up to {2 ** int(most)} splits",)
    return Named.of(*words, details=details)


def _sdpa(parts: Parts, _: re.Match[str]) -> Named | None:
    """Attention that cuDNN generates."""
    text = parts.base
    way = "bwd" if "bprop" in text else "fwd"
    step = next(iter(re.findall(r"convert_dq|dot_do_o", text)), "")
    tile = next(iter(re.findall(r"\d+x\d+x\d+", text)), "")
    return Named.of("sdpa", way, step, dtype_in(text), tile, details=tuple(text.split("_")))


def _fmha(_: Parts, match: re.Match[str]) -> Named | None:
    """``fmha bf16 hd128 causal context``: type, head, mask and phase as TensorRT writes them."""
    told = match.groupdict()
    way, rest = _WAYS.get(told.get("way") or "", ""), match["rest"]
    tile = (told.get("tile") or "").replace("_", "x")
    mask = next((word for word in ("sliding", "causal", "dense") if word in rest.lower()), "")
    phase = next((word for text, word in _PHASES.items() if text in rest), "")
    head = told.get("head")
    words = ("fmha", way, of_code(match["type"]), f"hd{head}" if head else tile, mask, phase)
    details = (tile, *re.findall(r"[A-Z]?[a-z]+\d*|\d+", rest))
    return Named.of(*words, details=details)


_WAYS: Final = {"F": "fwd", "B": "bwd"}
_PHASES: Final = {"ForGen": "gen", "Context": "context"}
_CODES: Final = {"bfloat16": "bf16", "fp16": "f16", "fp32": "f32", "int8": "i8"}


def of_code(code: str) -> str:
    """What a type is called here that TensorRT writes as ``Bfloat16`` or ``fp16``."""
    return _CODES.get(code.lower(), code.lower())


ATTENTION_RULES: Final = rules(
    (r"\Acudnn_generated\w*sdpa", _sdpa),
    (r"\bflash_(?P<way>fwd|bwd)(?P<kind>\w*)\Z", _flash),
    (
        r"\AfmhaSm\d+\w?Kernel_Q(?:kv)?(?P<type>(?:Bf|F)[a-z]+\d+|E\dm\d)\w*?H(?:Qk)?(?P<head>\d+)"
        r"(?P<rest>\w*)",
        _fmha,
    ),
    (
        r"\Afmha_v2_(?:flash_attention_)?(?P<type>bf16|fp16|fp32|e4m3|int8)_(?:fp\d+_)?"
        r"(?P<tile>\d+_\d+)_S_(?:[a-z_]+_)?(?P<head>\d+)(?P<rest>\w*)",
        _fmha,
    ),
    (
        r"\Afmha_v2_(?P<type>bf16|fp16|fp32|e4m3|int8)_(?P<tile>\d+)_(?P<head>\d+)(?P<rest>\w*)",
        _fmha,
    ),
    (
        r"\Afmha_cutlass(?P<way>[FB])_(?P<type>[a-z]+\d+)_\w*?aligned_(?P<tile>\d+x\d+)_"
        r"(?P<rest>\w+)",
        _fmha,
    ),
)
