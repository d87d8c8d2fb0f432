"""A composite's figures, kept for a minute so that all pages show one state."""

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from operations.intelligence.finding import Incomplete
from operations.services.network.reached import Upstream


class Figures(Protocol):
    """Figures that may be of a part of the fleet."""

    @property
    def incomplete(self) -> Incomplete | None:
        """What is missing, which may be there when it is asked for again."""
        ...


F = TypeVar("F", bound=Figures)


async def kept_finding(upstream: Upstream, key: tuple[object, ...], load: Callable[[], Awaitable[F]], *, further: bool) -> F:
    """The kept figures, or new ones. Who asks for the first page again gets what is missing; `further` pages go on with what there is."""
    whole, fresh = (upstream.identity, upstream.account_id, *key), False  # an organisation may be connected to another account

    async def made() -> F:
        nonlocal fresh
        fresh = True
        return await load()

    found = await upstream.reads.get(whole, made)
    if found.incomplete is not None and not fresh and not further:
        upstream.reads.forget(*whole)
        return await upstream.reads.get(whole, made)
    return found
