"""Names that other people are shown: one line, and no character that changes how the text around it reads."""

import re

# Controls, line and paragraph separators, the marks that turn the direction of what follows (Unicode UAX #9), and what nobody sees: the
# zero-width space, invisible operators and tags. Joiners stay: some scripts are not written without them.
MISLEADING = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)


def plain_line(text: str) -> str:
    """The text without the space around it; ValueError with the rule where it is empty or misleading."""
    if MISLEADING.search(text):
        raise ValueError("must be one line without control characters and without marks that change the direction of text or are not seen")
    if not any(c.isprintable() and not c.isspace() for c in text):
        raise ValueError("must hold more than space")
    return text.strip()
