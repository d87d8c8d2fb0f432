"""Reproducible chance: the same seed and the same words give the same numbers, whatever was drawn elsewhere."""

from random import Random


def seeded_random(*words: object) -> Random:
    """A source of its own for one question, such as dice(seed, "life", line, day)."""
    return Random("|".join(map(str, words)))
