"""How many examples a property is tried with: few in every run, so many times as many where TEST_LENGTH says it."""

import os

LENGTH = int(os.environ.get("TEST_LENGTH", "1"))
"""`TEST_LENGTH=10 python3 ./run test tests/invoices tests/storage` tries ten times as many."""


def examples(count: int) -> int:
    """How many of `count` examples of a usual run this one tries."""
    return count * LENGTH
