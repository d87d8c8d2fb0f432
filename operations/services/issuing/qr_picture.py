"""A text as a picture that a phone's camera reads."""

from io import BytesIO
from typing import Literal

MOST = 500  # far more than an activation code has (SGP.22 4.1: 255), and far less than a picture can take


def drawable(text: str) -> bool:
    """Whether there is something to draw, of a length that a phone's camera can read from a screen."""
    return 0 < len(text) <= MOST


def picture(text: str, format: Literal["svg", "png"]) -> bytes:
    """The QR code on white, with the quiet zone that scanners need (ISO/IEC 18004)."""
    import segno  # only where a code is drawn

    buffer = BytesIO()
    segno.make_qr(text, error="m").save(buffer, kind=format, scale=8, border=4, light="white")
    return buffer.getvalue()
