"""Where somebody who was sent to a page of the payment processor comes back to."""

import re
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from operations.deps import Deps

# Letters of any script; no ASCII sign but . - and _, for one program ends a name at it and another does not.
HOST = re.compile(r"[0-9a-f.]*:[0-9a-f:.]+|[^\W_][^\x00-,/:-@\[-^`{-\x7f]*")


def of_the_web(address: str) -> str:
    """An https address of a host, that holds no name and password. A refusal repeats nothing of it."""
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    else:
        if parts.username is not None or parts.password is not None:
            raise ValueError("an address to come back to holds no user name and no password")
    if not host or HOST.fullmatch(host) is None or port == 0 or not address.isprintable():
        raise ValueError("must be an https address such as https://fjord.example/billing")
    return address


ReturnUrl = Annotated[
    str,
    Field(max_length=1000, pattern=r"^https://[^\s\\]+$", description="Page of yours to come back to afterwards; https."),
    AfterValidator(of_the_web),
]


def own_page(deps: Deps) -> str:
    """A page of the service's for whoever named none: the one on payments, where people sign in here, and else the documentation."""
    return f"{deps.site.base_url}/auth/payments" if deps.own_identity else deps.site.docs_url
