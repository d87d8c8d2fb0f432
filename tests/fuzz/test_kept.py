"""What generated calls have found once, each as a case of its own."""

import re
from collections.abc import Iterator
from typing import Any

from tests.fuzz.stand import whole

ALSO = r"\x1f\x85\ufeff"
"""Python calls U+001C a space, Rust U+0085, JavaScript U+FEFF: with these beside it, `\\s` is the same to all."""


def patterns(value: Any) -> Iterator[str]:
    """Every pattern of a document."""
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    if isinstance(value, dict) and isinstance(value.get("pattern"), str):
        yield value["pattern"]
    for child in children:
        yield from patterns(child)


def test_a_documented_pattern_means_the_same_in_every_language() -> None:
    """An address with U+0085 in it was right by the document, and refused: operator_billing_connect_begin, seed 1."""
    found = set(patterns(whole()))
    assert not [pattern for pattern in found if re.search(r"\\[dDwWbBS]", pattern)]
    with_spaces = {pattern for pattern in found if r"\s" in pattern}
    assert len(with_spaces) >= 3
    assert all(pattern.count(ALSO) == pattern.count(r"\s") for pattern in with_spaces), with_spaces
