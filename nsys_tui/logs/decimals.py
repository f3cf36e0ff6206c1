"""Figures of logs as they are written: exact, never by way of a binary fraction."""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Decimal, localcontext
from fractions import Fraction


def decimals(value: Fraction | None, digits: int = 6) -> str | None:
    """A value with fixed decimals, rounded half to even from the exact value."""
    if value is None:
        return None
    with localcontext() as context:
        context.prec = 60
        exact = Decimal(value.numerator) / Decimal(value.denominator)
        return str(exact.quantize(Decimal(1).scaleb(-digits), rounding=ROUND_HALF_EVEN))


def seconds(ns: Fraction | int | None) -> str | None:
    """Nanoseconds as seconds with six decimals, as the AWK kit prints them."""
    return None if ns is None else decimals(Fraction(ns) / 10**9)


def known(value: int) -> int | None:
    """None for -1."""
    return None if value < 0 else value
