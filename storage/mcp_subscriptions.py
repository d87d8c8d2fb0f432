"""Subscriptions of MCP clients to events: each has a webhook endpoint of its own, which ends with it."""

from typing import NamedTuple

import sqlalchemy as sa

from storage.engine.sql import BigInt, Connection, Key, Query, StatementBuild, TableDescription, first_row, upsert, writes


class McpSubscription(NamedTuple):
    """A subscription. `id` is what its receiver knows it by; `endpoint` sends for it; `expires`: Unix seconds.

    Its receiver at `url` has said that it wants what `principal` subscribes to.
    """

    endpoint: Key
    id: str
    organisation: str
    principal: str
    url: str
    expires: BigInt


class McpSubscriptionTable(TableDescription, row=McpSubscription, table=True):
    """The subscriptions that have not ended, and those that have and are not removed yet."""

    __table_args__ = (
        sa.Index("mcp_subscription_id", "organisation", "id", unique=True),
        sa.Index("mcp_subscription_expires", "expires"),
    )


MCP_SUBSCRIPTION = McpSubscriptionTable.table

SUBSCRIPTION_COLUMNS = tuple(MCP_SUBSCRIPTION.c[name] for name in McpSubscription._fields)


EXPIRED_SUBSCRIPTIONS = Query(
    McpSubscription,
    sa.select(*SUBSCRIPTION_COLUMNS)
    .where(MCP_SUBSCRIPTION.c.expires <= sa.bindparam("before", type_=sa.BigInteger))
    .order_by(MCP_SUBSCRIPTION.c.expires)
    .limit(sa.bindparam("most")),
)


@writes
def put_subscription(*, row: McpSubscription) -> StatementBuild:
    """Keep a subscription, or its new end."""
    return upsert(MCP_SUBSCRIPTION, key=["endpoint"], **row._asdict())


@writes
def forget_subscription(*, endpoint: str) -> sa.Executable:
    """The endpoint of a subscription is gone, and the subscription with it. Nothing for other endpoints."""
    return sa.delete(MCP_SUBSCRIPTION).where(MCP_SUBSCRIPTION.c.endpoint == endpoint)


@first_row(McpSubscription)
def find_subscription(*, id: str, organisation: str) -> sa.Executable:
    """The subscription with this id, ended or not."""
    return sa.select(*SUBSCRIPTION_COLUMNS).where(MCP_SUBSCRIPTION.c.organisation == organisation, MCP_SUBSCRIPTION.c.id == id)


@first_row(McpSubscription)
def find_subscription_behind(*, endpoint: str) -> sa.Executable:
    """The subscription that an endpoint sends for, if it does for one."""
    return sa.select(*SUBSCRIPTION_COLUMNS).where(MCP_SUBSCRIPTION.c.endpoint == endpoint)


@first_row(str)
def find_proven_callback(*, organisation: str, principal: str, url: str, now: int) -> sa.Executable:
    """A live subscription of `principal` whose receiver is at `url`, if there is one. `now`: Unix seconds."""
    return (
        sa.select(MCP_SUBSCRIPTION.c.id)
        .where(
            MCP_SUBSCRIPTION.c.organisation == organisation,
            MCP_SUBSCRIPTION.c.principal == principal,
            MCP_SUBSCRIPTION.c.url == url,
            MCP_SUBSCRIPTION.c.expires > now,
        )
        .limit(1)
    )


def expired_subscriptions(connection: Connection, *, before: float, most: int) -> list[McpSubscription]:
    """Subscriptions that have ended, those first that ended first. `before`: Unix seconds."""
    return connection.all(EXPIRED_SUBSCRIPTIONS, before=int(before), most=most)
