"""Application fees on the wire."""

from clients.payments.fields import Json, count, currency, id_of
from clients.payments.records import ApplicationFee


def fee_of(found: Json) -> ApplicationFee:
    """What the service kept of a connected account's charge."""
    return ApplicationFee(
        id=id_of(found),
        account=id_of(found, "account"),
        amount=count(found, "amount"),
        amount_refunded=count(found, "amount_refunded"),
        currency=currency(found),
        charge=id_of(found, "charge"),
        created=count(found, "created"),
    )
