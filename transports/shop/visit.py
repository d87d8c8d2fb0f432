"""One request to a page of a shop. Nobody is recognised: an order is opened by the token in its link, or in the cookie of its browser."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

import orjson

from operations.catalogue import CATALOGUE
from operations.deps import Deps
from operations.services.shop.texts import Texts
from registry.answer import answer
from registry.call import Call
from registry.caller import ANONYMOUS
from registry.errors import NotFound, Refusal
from registry.order_numbers import IS_NUMBER
from transports.shop.counter import Counter
from transports.shop.reader import Device


@dataclass(slots=True)
class Visit:
    """A request, read. `slug` and `order` are what its path names: an order by a token, or by its number."""

    counter: Counter
    slug: str
    order: str
    texts: Texts
    device: Device
    client: str
    cookies: Mapping[str, str]
    request_id: str
    now: float
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    form: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def deps(self) -> Deps:
        """The outside world."""
        return self.counter.deps

    @property
    def shop_path(self) -> str:
        """Where the shop is."""
        return f"{self.counter.root}/shop/{self.slug}"

    @property
    def token(self) -> str:
        """What opens the order of the path; a number without its cookie opens nothing, and is asked for all the same: a miss counts."""
        named = self.counter.order_cookies.token(self.cookies, self.order) if IS_NUMBER.fullmatch(self.order) else None
        return self.order if named is None else named

    async def ask(self, operation: str, arguments: Mapping[str, object]) -> object:
        """Call an operation as anybody may; what it refuses is raised."""
        call = Call(
            operation=CATALOGUE.operations[operation],
            surface="web",
            request_id=self.request_id,
            caller=ANONYMOUS,
            arguments=arguments,
            client=self.client,
        )
        reply = await answer(self.counter.pipeline, call, self.counter.report)
        if reply.refusal is not None:
            raise reply.refusal
        return cast(object, orjson.loads(reply.body))


def nothing_here() -> Refusal:
    """Unknown shops, unknown orders and orders of other shops are answered alike."""
    return NotFound("There is nothing at this path")
