"""Which addresses webhooks may be sent to: one check, whatever is sent there."""

from collections.abc import Sequence

from clients.webhooks.addresses import Network
from clients.webhooks.url import BadUrl, check_url
from registry.errors import BadRequest


def check_address(url: str, exempt: Sequence[Network], *, param: str = "url") -> None:
    """Refuse what deliveries could not or must not reach; the refusal never repeats path or query."""
    try:
        check_url(url, exempt)
    except BadUrl as error:
        raise BadRequest(
            f"{param}: {error.reason}",
            param=param,
            hint="To try it on one machine, start the service with SERVICE_WEBHOOK_ALLOW_NETS=127.0.0.0/8",
        ) from None
