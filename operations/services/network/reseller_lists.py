"""The lists of a reseller, a minute old at most, kept where `require_visible` looks for what a call names."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from operations.services.network.reached import Upstream
from operations.services.network.resellers import of_reseller
from operations.services.network.upstream import reseller_for

T = TypeVar("T")


async def reseller_rows(upstream: Upstream, name: str, requested: int | None, load: Callable[[int], Awaitable[list[T]]]) -> list[T]:
    """A list of the reseller that a call names, or of the caller's own. The rows are shared: copy what you change."""
    reseller = await reseller_for(upstream, requested)
    key = (upstream.identity, await kept_name(upstream, name, reseller))
    return await of_reseller(requested, upstream.reads.get(key, lambda: load(reseller)))


async def kept_name(upstream: Upstream, name: str, reseller: int) -> str:
    """What a list is kept under: the own reseller's by its plain name."""
    return name if reseller == await upstream.reseller_id() else f"{name} of {reseller}"
