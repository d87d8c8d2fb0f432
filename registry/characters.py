"""The one table of characters that a person does not see, or that change how the text around them is read; and the sets made of it.

Ranges are written as a character class of `re` has them.
"""

import re
import unicodedata

CONTROLS_BUT_LINE_ENDS = "\x00-\x08\x0b\x0c\x0e-\x1f"
"""C0 without tab, line feed and carriage return."""
C1_CONTROLS = "\x80-\x9f"
LINE_SEPARATORS = "\u2028\u2029"
DIRECTION_MARKS = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
"""They turn the direction of what follows (Unicode UAX #9)."""
ZERO_WIDTH_MARKS = "\u200b\u2060-\u2065\u206a-\u206f\ufeff"
JOINERS = "\u200c\u200d"
"""Not seen either, but some scripts and pictures are not written without them."""
SOFT_MARKS = "\u00ad\u180e"
FILLERS = "\u115f\u1160\u3164\uffa0"
"""Letters that look like a space."""
ANNOTATION_MARKS = "\ufff9-\ufffb"
TAGS, TAG_SELECTORS = "\U000e0000-\U000e007f", "\U000e0080-\U000e01ef"
SURROGATES = "\ud800-\udfff"
"""Halves of characters."""

HIDDEN_CHARACTERS = "".join(
    (C1_CONTROLS, SOFT_MARKS, DIRECTION_MARKS, LINE_SEPARATORS, ZERO_WIDTH_MARKS, JOINERS, FILLERS, TAGS, TAG_SELECTORS)
)
"""Beyond ASCII, what a person does not see and a model may obey."""
HIDDEN_CHARACTER = re.compile(f"[{HIDDEN_CHARACTERS}{CONTROLS_BUT_LINE_ENDS}\x7f]")
MISLEADING_CHARACTERS = re.compile(
    f"[\x00-\x1f\x7f{C1_CONTROLS}{DIRECTION_MARKS}{LINE_SEPARATORS}{ZERO_WIDTH_MARKS}{ANNOTATION_MARKS}{TAGS}]"
)
"""What no name that other people are shown may hold."""
UNSPOKEN_CHARACTERS = re.compile(
    f"[{CONTROLS_BUT_LINE_ENDS}\r\x7f{C1_CONTROLS}{SOFT_MARKS}{DIRECTION_MARKS}{ZERO_WIDTH_MARKS}{SURROGATES}{TAGS}{TAG_SELECTORS}]"
)
"""What is taken out of a language model's answer."""
COMMANDING_CHARACTERS = re.compile(f"[{CONTROLS_BUT_LINE_ENDS}\r\x7f{C1_CONTROLS}{DIRECTION_MARKS}{LINE_SEPARATORS}]")
"""What a terminal obeys, or shows as something else."""
JOINER_CHARACTERS = frozenset(JOINERS)
BLANK_CHARACTERS = frozenset(FILLERS + "\u2800")
"""Letters and a symbol that look like a space."""


def is_blank_character(character: str) -> bool:
    """Whether `character` is a space, an end of line or a control, or looks like a space."""
    return character in BLANK_CHARACTERS or unicodedata.category(character) in ("Cc", "Zl", "Zp")


def is_hidden_character(character: str) -> bool:
    """Whether nothing is seen of `character`: formats (direction and zero-width marks), surrogates, private use, unassigned."""
    return unicodedata.category(character) in ("Cf", "Cs", "Co", "Cn")


def printable_text(text: str) -> str:
    """`text` with a question mark in place of each control, direction and zero-width character."""
    return "".join(c if c.isprintable() else "?" for c in text)
