"""Whether something of the reseller's (a list, a plan, a profile) is there for the caller to name."""

from collections.abc import Awaitable, Callable, Mapping, Sequence

from operations.services.network.reached import Upstream
from registry.errors import NotFound

VOIP_PLANS = "voip_tariffs"
"""The list of these plans, as it is kept."""
VOIP_HINT = "list_subscriber_voip_tariff names them"
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


async def require_voip_plan(upstream: Upstream, plan_id: int, param: str) -> None:
    """A plan for calls over IP that is not deleted."""
    reseller = await upstream.reseller_id()
    found = await require_visible(
        upstream,
        VOIP_PLANS,
        lambda: upstream.ocs.tariffs.list_voip_tariffs(reseller_id=reseller),
        plan_id,
        id="id",
        param=param,
        hint=VOIP_HINT,
    )
    if found.get("deleted"):
        raise no_such_voip_plan(param)


def no_such_voip_plan(param: str) -> NotFound:
    """Unknown, foreign and deleted plans are answered alike."""
    return NotFound(f"Your reseller has nothing with this {param}", param=param, hint=VOIP_HINT)
