"""The service's tables as SQLModel classes, for rivals that work with objects of a session: the service itself describes them only."""

from typing import Any

from sqlalchemy import Column
from sqlalchemy.orm import registry
from sqlmodel import Field, SQLModel

from storage import (
    api_keys,
    audit,
    cdr_events,
    cdr_sums,
    claims,
    deliveries,
    events,
    intents,
    invoices,
    organisations,
    quota,
    webhook_endpoints,
)
from storage.engine.sql import TableDescription


class Rows(SQLModel, registry=registry()):
    """Their base."""


def own(given: Any) -> Any:
    """A field with a column of its own: a column belongs to one table."""
    column = getattr(given, "sa_column", None)
    if not isinstance(column, Column):
        return given
    return Field(default=given.default, sa_column=column._copy())


def mapped(description: type[TableDescription]) -> Any:
    """The class whose objects are the rows of a table."""
    fields = {name: own(given) for name, given in vars(description).items() if name in description.__annotations__}
    told = {"__module__": __name__, "__annotations__": description.__annotations__}
    return type(Rows)(description.__name__, (Rows,), {**told, **fields, "__tablename__": description.__tablename__}, table=True)


ApiKeyTable = mapped(api_keys.ApiKeyTable)
AuditTable = mapped(audit.AuditTable)
ClaimTable = mapped(claims.ClaimTable)
DeliveryTable = mapped(deliveries.DeliveryTable)
EventTable = mapped(events.EventTable)
IntentTable = mapped(intents.IntentTable)
MembershipTable = mapped(organisations.MembershipTable)
OrganisationTable = mapped(organisations.OrganisationTable)
QuotaTable = mapped(quota.QuotaTable)
WebhookEndpointTable = mapped(webhook_endpoints.WebhookEndpointTable)
CdrEventTable = mapped(cdr_events.CdrEventTable)
CdrMonthTable = mapped(cdr_sums.CdrMonthTable)
CdrSumTable = mapped(cdr_sums.CdrSumTable)
InvoicePeriodTable = mapped(invoices.InvoicePeriodTable)
