"""The service's tables as SQLModel classes, for rivals that work with objects of a session: the service itself describes them only."""

from typing import Any

from sqlalchemy import Column
from sqlalchemy.orm import registry
from sqlmodel import Field, SQLModel

from storage import schema
from storage.money import money_tables
from storage.named import Named


class Rows(SQLModel, registry=registry()):
    """Their base."""


def own(given: Any) -> Any:
    """A field with a column of its own: a column belongs to one table."""
    column = getattr(given, "sa_column", None)
    if not isinstance(column, Column):
        return given
    return Field(default=given.default, sa_column=column._copy())


def mapped(description: type[Named]) -> Any:
    """The class whose objects are the rows of a table."""
    fields = {name: own(given) for name, given in vars(description).items() if name in description.__annotations__}
    told = {"__module__": __name__, "__annotations__": description.__annotations__}
    return type(Rows)(description.__name__, (Rows,), {**told, **fields, "__tablename__": description.__tablename__}, table=True)


ApiKeyTable = mapped(schema.ApiKeyTable)
AuditTable = mapped(schema.AuditTable)
ClaimTable = mapped(schema.ClaimTable)
DeliveryTable = mapped(schema.DeliveryTable)
EventTable = mapped(schema.EventTable)
IntentTable = mapped(schema.IntentTable)
MembershipTable = mapped(schema.MembershipTable)
OrganisationTable = mapped(schema.OrganisationTable)
QuotaTable = mapped(schema.QuotaTable)
WebhookEndpointTable = mapped(schema.WebhookEndpointTable)
CdrEventTable = mapped(money_tables.CdrEventTable)
CdrMonthTable = mapped(money_tables.CdrMonthTable)
CdrSumTable = mapped(money_tables.CdrSumTable)
InvoicePeriodTable = mapped(money_tables.InvoicePeriodTable)
