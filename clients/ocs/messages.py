"""SMS to a line."""

import re

from clients.ocs.link import OcsLink
from clients.ocs.params import given
from clients.ocs.shape import nothing

READ_AS_ESCAPE = re.compile(r"\\(?=u[0-9A-Fa-f]{4})")


class MessageCalls:
    """What is sent to a line."""

    def __init__(self, link: OcsLink) -> None:
        self._link = link

    async def send_mt_sms(self, text: str, *, sender_id: str, imsi: str | None = None, msisdn: str | None = None) -> None:
        """Send one SMS to the line with this current IMSI or number; delivery is not reported. Never repeat it blindly."""
        params = given(imsi=imsi, msisdn=msisdn, text=escaped(text), senderId=sender_id)
        await self._link.write("sendMtSms", params, nothing)


def escaped(text: str) -> str:
    r"""Every character above U+007F as a literal \uXXXX, surrogate pairs for those above U+FFFF.

    Choice: all of them, since whether the server takes plain UTF-8 is documented both ways. A backslash that the text itself
    has before u and four hexadecimal digits is escaped, too, or the receiver would see another text.
    """
    return "".join(character if character < "\x80" else _units(character) for character in READ_AS_ESCAPE.sub(r"\\u005C", text))


def _units(character: str) -> str:
    pairs = character.encode("utf-16-be", "surrogatepass").hex().upper()
    return "".join(f"\\u{pairs[start : start + 4]}" for start in range(0, len(pairs), 4))
