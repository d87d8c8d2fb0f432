"""Notifications that were taken, so that a repeated one changes nothing."""

from typing import NamedTuple

import sqlalchemy as sa

from storage.connection import Connection
from storage.network.network_tables import InboundPushTable
from storage.statement import Command, Query, table

PUSH = table(InboundPushTable)
DAY = 86_400
REMEMBERED_SECONDS = 7 * DAY
UNSIGNED_SECONDS = 60
PRUNED_AT_ONCE = 200
AFTER_HEX = "g"


class Taken(NamedTuple):
    """A notification that is new."""

    digest: str


# One that was taken too long ago counts as new: the statement decides, so of two at the same time one is.
TAKE = Query(
    Taken,
    lambda dialect: (
        dialect.insert(PUSH)
        .values(digest=sa.bindparam("digest"), received=sa.bindparam("now"))
        .on_conflict_do_update(
            index_elements=["digest"], set_={"received": sa.bindparam("now")}, where=PUSH.c.received <= sa.bindparam("before")
        )
        .returning(PUSH.c.digest)
    ),
)
# All digests are lower-case letters and digits of one length, so every collation orders them alike.
FORGET_OTHERS = Command(
    sa.delete(PUSH).where(
        PUSH.c.digest >= sa.bindparam("low"), PUSH.c.digest < sa.bindparam("high"), PUSH.c.digest != sa.bindparam("digest")
    )
)
PRUNE = Command(
    sa.delete(PUSH).where(
        PUSH.c.digest.in_(
            sa.select(PUSH.c.digest).where(PUSH.c.received < sa.bindparam("old")).order_by(PUSH.c.received).limit(PRUNED_AT_ONCE)
        )
    )
)


class Push(NamedTuple):
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


def take_push(connection: Connection, *, push: Push, now: float) -> bool:
    """Whether it is new; if so it is remembered."""
    signed = push.signed_id is not None
    before = now - (REMEMBERED_SECONDS if signed else UNSIGNED_SECONDS)
    if connection.first(TAKE, digest=push.digest, now=now, before=before) is None:
        return False
    if not signed and push.subject != push.body:
        low = f"b{push.subject}"
        connection.run(FORGET_OTHERS, low=low, high=low + AFTER_HEX, digest=push.digest)
    connection.run(PRUNE, old=now - REMEMBERED_SECONDS)
    return True
