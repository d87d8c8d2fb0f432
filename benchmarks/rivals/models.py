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


def field_of(column: Column[Any]) -> Any:
    """A field with a column of its own: a column belongs to one table."""
    if column.nullable or column is column.table.autoincrement_column:
        return Field(default=None, sa_column=column._copy())
    if column.default is not None and column.default.is_scalar:
        return Field(default=column.default.arg, sa_column=column._copy())
    return Field(sa_column=column._copy())


def mapped(description: type[TableDescription]) -> Any:
    """The class whose objects are the rows of a table."""
    columns = list(description.table.columns)
    kinds = {column.name: column.type.python_type | None if column.nullable else column.type.python_type for column in columns}
    told = {"__module__": __name__, "__annotations__": kinds, "__tablename__": description.__tablename__}
    return type(Rows)(description.__name__, (Rows,), told | {column.name: field_of(column) for column in columns}, table=True)


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
