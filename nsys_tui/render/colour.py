"""Colour arithmetic: sRGB hex to luminance, contrast and mixtures."""

from __future__ import annotations

import re
from typing import Final

READABLE: Final = 4.5
"""Least contrast of words."""
VISIBLE: Final = 3.0
"""Least contrast of lines and marks."""
_LEAST_CONTRAST: Final = 4.0
"""From which a colour of a range can be told from the background."""
_HEX: Final = re.compile(r"#[0-9A-Fa-f]{6}\Z")


def is_hex(text: str) -> bool:
    """Whether a text is a colour such as ``#88CCEE``."""
    return _HEX.match(text) is not None


def channels(colour: str) -> tuple[int, int, int]:
    """Red, green and blue, 0–255."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def luminance(colour: str) -> float:
    """Relative luminance, 0–1 (WCAG 2)."""
    linear = (_linear(channel / 255) for channel in channels(colour))
    return sum(
        weight * value for weight, value in zip((0.2126, 0.7152, 0.0722), linear, strict=True)
    )


def contrast(first: str, second: str) -> float:
    """Contrast ratio of two colours, 1–21 (WCAG 2)."""
    dark, bright = sorted((luminance(first), luminance(second)))
    return (bright + 0.05) / (dark + 0.05)


def mix(colour: str, other: str, share: float) -> str:
    """``colour`` with a share of ``other``, channel by channel."""
    pairs = zip(channels(colour), channels(other), strict=True)
    return "#" + "".join(f"{round(a + (b - a) * share):02X}" for a, b in pairs)


def readable_on(ground: str) -> str:
    """Black or white, whichever has more contrast on ``ground``."""
    return max(("#000000", "#FFFFFF"), key=lambda ink: contrast(ink, ground))


def legible(colour: str, ground: str, words: str, least: float = READABLE) -> str:
    """A colour that can be told from ``ground``: no nearer to ``words`` than that takes."""
    shades = (mix(colour, words, tenth / 10) for tenth in range(10))
    return next((shade for shade in shades if contrast(shade, ground) >= least), words)


def own_colour(argb: int, background: str) -> str | None:
    """The colour that an NVTX range carries, if it can be told from the background.

    Args:
        argb: as recorded, alpha in the top byte; negative for none.
        background: the theme's background.

    Returns:
        A hex colour, or None: then the category's colour serves.
    """
    if argb < 0 or argb >> 24 & 0xFF == 0:
        return None
    colour = f"#{argb & 0xFFFFFF:06X}"
    return colour if contrast(colour, background) >= _LEAST_CONTRAST else None


def _linear(channel: float) -> float:
    return channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4
