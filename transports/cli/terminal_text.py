"""Text of others on a terminal: what would command it is shown as an escape instead of sent."""

import json
import re
from typing import TextIO

# C0 but for tab and line feed, DEL, C1, and the marks that turn the direction of text or end a line.
COMMANDING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def harmless(text: str) -> str:
    r"""The text with such characters as \u escapes, which JSON reads as the same characters."""
    return COMMANDING.sub(lambda found: json.dumps(found[0])[1:-1] if found[0] != "\x7f" else r"\u007f", text)


def shown_on(stream: TextIO, text: str) -> str:
    """As it is written there. Choice: a pipe gets the text as it is: programs read it, and no terminal obeys it."""
    return harmless(text) if stream.isatty() else text
