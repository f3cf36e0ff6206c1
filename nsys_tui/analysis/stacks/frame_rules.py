"""Rules that change frames before they are folded: strip, rename, drop; by default none does."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from nsys_tui.errors import UsageError
from nsys_tui.model.arrays import Int64, Integers
from nsys_tui.model.tree import ROOT, Trie, TrieBuilder
from nsys_tui.names import is_layer_number, is_train_step, strip_op_id
from nsys_tui.patterns import compiled

_VALIDATION: Final = re.compile(r"(?i)\bvalidation\b")
DROPPED: Final = -1


@dataclass(frozen=True)
class FrameRules:
    """What happens to the frames of a range or call-chain; leaves (kernels) are never touched."""

    strip: tuple[Callable[[str], object], ...] = ()
    """A frame for which one of these holds is left out; what is below it moves up."""
    rename: tuple[Callable[[str], str], ...] = ()
    """Applied to every frame in order, before the others."""
    drop: tuple[Callable[[str], object], ...] = ()
    """A stack with a frame for which one of these holds is left out altogether."""
    addresses: bool = False
    """Whether addresses without a symbol are told apart; else their library names them."""
    labels: tuple[str, ...] = field(default=())
    """What the rules do, in words, for the note under a result."""

    def with_strip(self, pattern: str) -> FrameRules:
        """Adds a regular expression for frames to leave out."""
        return self._with(
            f"frames that match {pattern} are left out", strip=compiled(pattern).search
        )

    def with_drop(self, pattern: str) -> FrameRules:
        """Adds a regular expression for frames whose whole stacks are left out."""
        return self._with(
            f"stacks with a frame that matches {pattern} are dropped",
            drop=compiled(pattern).search,
        )

    def with_rename(self, pattern: str, replacement: str) -> FrameRules:
        """Adds a regular expression and what its matches become.

        Raises:
            UsageError: one of them cannot be understood.
        """
        test = compiled(pattern)
        try:
            test.sub(replacement, "")
        except (re.error, IndexError) as error:
            raise UsageError(f"{pattern} cannot become {replacement!r}", str(error)) from error
        return self._with(
            f"{pattern} in frames becomes {replacement or 'nothing'}",
            rename=lambda frame: test.sub(replacement, frame),
        )

    def without_layers(self) -> FrameRules:
        """Leaves out ``Layer N``, but not ``LayerNorm``."""
        return self._with("frames Layer N are left out", strip=is_layer_number)

    def without_steps(self) -> FrameRules:
        """Leaves out ``Train step N``."""
        return self._with("frames Train step N are left out", strip=is_train_step)

    def without_op_ids(self) -> FrameRules:
        """Removes running numbers such as ``op_id = N`` from frames."""
        return self._with("op_id = N is removed from frames", rename=strip_op_id)

    def without_validation(self) -> FrameRules:
        """Drops stacks below a range named validation."""
        return self._with("stacks below validation are dropped", drop=_VALIDATION.search)

    def _with(self, label: str, **added: Callable[[str], Any]) -> FrameRules:
        """These rules and one more, by the field that it belongs to."""
        more: dict[str, Any] = {name: (*getattr(self, name), rule) for name, rule in added.items()}
        return replace(self, labels=(*self.labels, label), **more)

    def is_unnamed(self, symbol: str) -> bool:
        """Whether a frame is named by its library."""
        return not self.addresses and symbol.startswith("0x")

    def frame(self, text: str) -> str | None:
        """The frame as it is folded; None if it is left out."""
        for change in self.rename:
            text = change(text)
        return None if any(test(text) for test in self.strip) else text

    def drops(self, text: str) -> bool:
        """Whether stacks with this frame are left out."""
        return any(test(text) for test in self.drop)

    def codes(self, labels: tuple[str, ...], builder: TrieBuilder) -> Int64:
        """Code of each label in ``builder``; 0 where it is left out, -1 where its stacks are."""
        code = np.zeros(len(labels), np.int64)
        for place, text in enumerate(labels):
            kept = self.frame(text) if text else None
            if text and self.drops(text):
                code[place] = DROPPED
            elif kept:
                code[place] = builder.label(kept)
        return code


def library(module: str) -> str:
    """What addresses in a library are called: ``/usr/lib64/libcuda.so.1`` → ``[libcuda.so.1]``."""
    name = module.replace("\\", "/").rpartition("/")[2].strip("[]")
    return f"[{name}]" if name else ""


def rewrite(trie: Trie, builder: TrieBuilder, rules: FrameRules, wanted: Integers) -> Int64:
    """Copies the paths to some nodes of a trie into another one by the rules.

    Returns:
        node in ``builder`` of each node of ``trie``, int64 (len(trie),); -1 where it is dropped, 0
        where it leads to no wanted node.
    """
    codes = rules.codes(trie.labels, builder)
    marks = np.zeros(len(trie), np.int64)
    marks[wanted] = 1
    used = trie.summed(marks) > 0
    nodes = builder.graft(trie.parent, np.where(used, codes[trie.label], 0))
    nodes[~used] = ROOT
    return nodes


NO_RULES: Final = FrameRules()
