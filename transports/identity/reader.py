"""Whether an answer is for somebody before a browser or for a program."""

import re

from transports.http.asgi import Headers

QUALITY = re.compile(rb";\s*q\s*=\s*([01](?:\.[0-9]{0,3})?)\s*(?:;|$)", re.IGNORECASE)
PAGE, JSON = b"text/html", b"application/json"


def reads_pages(headers: Headers) -> bool:
    """Browsers ask for HTML by its name when somebody goes to an address or sends a form; programs do not.

    Choice: who names JSON as well is a program unless it likes HTML better (RFC 9110 section 12.5.1).
    """
    liked = {PAGE: 0.0, JSON: 0.0}
    for part in b",".join(value for name, value in headers if name == b"accept").lower().split(b","):
        named = part.partition(b";")[0].strip()
        if named in liked:
            found = QUALITY.search(part)
            liked[named] = max(liked[named], 1.0 if found is None else float(found[1]))
    return liked[PAGE] > liked[JSON]
