"""Whether something of the reseller's (a list, a plan, a profile) is there for the caller to name."""

from collections.abc import Awaitable, Callable, Mapping, Sequence

from operations.services.upstream import Upstream
from registry.errors import NotFound

Rows = Sequence[Mapping[str, object]]


async def require_visible(
    upstream: Upstream, name: str, load: Callable[[], Awaitable[Rows]], wanted: int, *, id: str, param: str, hint: str
) -> Mapping[str, object]:
    """The row with this number. One that a kept list does not have may be new, so the list is read afresh before it is not found."""
    key = (upstream.identity, name)
    for _ in range(2):
        rows = await upstream.reads.get(key, load)
        found = next((row for row in rows if row.get(id) == wanted), None)
        if found is not None:
            return found
        upstream.reads.forget(*key)
    raise NotFound(f"Your reseller has nothing with this {param}", param=param, hint=hint)


async def require_steering_list(upstream: Upstream, list_id: int, param: str) -> Mapping[str, object]:
    """A steering list by its number."""
    reseller = await upstream.reseller_id()
    return await require_visible(
        upstream,
        "steering",
        lambda: upstream.ocs.reseller.list_steering_list(reseller),
        list_id,
        id="id",
        param=param,
        hint="list_steering_lists names yours",
    )
