"""Notifications that were taken, so that a repeated one changes nothing."""

from typing import NamedTuple

import sqlalchemy as sa
from sqlmodel import Field

from storage.engine.sql import Command, Connection, TableDescription, upsert


class InboundPushTable(TableDescription, table=True):
    """A notification that was taken: its id or the SHA-256 of its body, so that a repeat changes nothing."""

    digest: str = Field(primary_key=True)
    received: float = Field(index=True)


INBOUND_PUSH = InboundPushTable.table

PUSH_DAY = 86_400

PUSH_REMEMBERED_SECONDS = 7 * PUSH_DAY

UNSIGNED_PUSH_SECONDS = 60

PUSHES_PRUNED_AT_ONCE = 200

AFTER_HEX = "g"

# One that was taken too long ago counts as new: the statement decides, so of two at the same time one is.
TAKE_PUSH = Command(upsert(INBOUND_PUSH, ["digest", "received"], key=["digest"], where=INBOUND_PUSH.c.received <= sa.bindparam("before")))

# All digests are lower-case letters and digits of one length, so every collation orders them alike.
FORGET_OTHER_PUSHES = Command(
    lambda _: sa.delete(INBOUND_PUSH).where(
        INBOUND_PUSH.c.digest >= sa.bindparam("low"),
        INBOUND_PUSH.c.digest < sa.bindparam("high"),
        INBOUND_PUSH.c.digest != sa.bindparam("digest"),
    )
)

PRUNE_PUSHES = Command(
    lambda _: sa.delete(INBOUND_PUSH).where(
        INBOUND_PUSH.c.digest.in_(
            sa.select(INBOUND_PUSH.c.digest)
            .where(INBOUND_PUSH.c.received < sa.bindparam("old"))
            .order_by(INBOUND_PUSH.c.received)
            .limit(PUSHES_PRUNED_AT_ONCE)
        )
    )
)


class InboundPush(NamedTuple):
    """What makes a notification the same as another: hexadecimal digests of its id, or of its subject and its body.

    An unsigned one is a repeat when it is the very last body of its subject, within a minute: Enable, Disable, Enable are three.
    Where a body tells repetitions by itself, since it holds a time or a count, it is its own subject.
    """

    signed_id: str | None
    subject: str
    body: str

    @property
    def digest(self) -> str:
        """Its name in the table."""
        return f"b{self.subject}{self.body}" if self.signed_id is None else f"a{self.signed_id}"


def take_push(connection: Connection, *, push: InboundPush, now: float) -> bool:
    """Whether a notification is new; a new one is remembered for a week, an unsigned one for a minute. `now`: Unix seconds."""
    signed = push.signed_id is not None
    before = now - (PUSH_REMEMBERED_SECONDS if signed else UNSIGNED_PUSH_SECONDS)
    if connection.run(TAKE_PUSH, digest=push.digest, received=now, before=before) == 0:
        return False
    if not signed and push.subject != push.body:
        low = f"b{push.subject}"
        connection.run(FORGET_OTHER_PUSHES, low=low, high=low + AFTER_HEX, digest=push.digest)
    connection.run(PRUNE_PUSHES, old=now - PUSH_REMEMBERED_SECONDS)
    return True
