"""Whole micro-euros as the euros that answers show."""

from operations.intelligence.lines.use import MICRO


def euros(micro: int) -> float:
    """The nearest number to the exact amount, which has six decimals at most."""
    return micro / MICRO
