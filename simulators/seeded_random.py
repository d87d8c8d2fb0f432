"""Reproducible chance: the same seed and the same words give the same numbers, whatever was drawn elsewhere."""

from random import Random


def seeded_random(*words: object) -> Random:
    """A generator of its own for one question, such as `seeded_random(seed, "trip", line, block)`."""
    return Random("|".join(map(str, words)))
