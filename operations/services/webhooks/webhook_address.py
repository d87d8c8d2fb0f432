"""Which addresses may receive deliveries, and how a refusal teaches; for webhook endpoints and for reports of schedules."""

from clients.webhooks.url import BadUrl, check_url
from operations.deps import Ctx
from registry.errors import BadRequest
from storage.people.accounts import may_receive_privately

HINT = (
    "Give an https address that the internet can reach. Receivers in the operator's own network are opened by whoever runs the service, "
    "with SERVICE_WEBHOOK_PRIVATE and `reseller org allow-private`; outside production SERVICE_WEBHOOK_ALLOW_NETS=127.0.0.0/8 opens "
    "this machine"
)


async def check_address(ctx: Ctx, url: str, *, param: str = "url") -> None:
    """Refuse what deliveries of the caller's organisation could not or must not reach; the refusal never repeats path or query."""
    deps = ctx.deps
    try:
        check_url(url, deps.webhook_exempt)
    except BadUrl as error:
        if not (deps.webhook_private and await deps.store.read(may_receive_privately, organisation=ctx.organisation)):
            raise refusal(error, param) from None
        try:
            check_url(url, deps.webhook_exempt, deps.webhook_private)
        except BadUrl as still:
            raise refusal(still, param) from None


def refusal(error: BadUrl, param: str) -> BadRequest:
    """What is wrong with the address, and what would be accepted."""
    return BadRequest(f"{param}: {error.reason}", param=param, hint=HINT)
