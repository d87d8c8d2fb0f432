"""What somebody who is signed in is told by mail, in the organisation that they act for: their own choice, and nobody else's."""

from difflib import get_close_matches
from typing import Annotated, Literal, cast

import orjson
from pydantic import Field
from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.ledger.mail_choices import LastMailedAdmin, default_choice, keep_mail_choice
from operations.ledger.mail_kinds import MailTiming, for_admins_alone, mail_timing, mail_types, mail_types_of, read_kinds
from operations.times import check_timezone
from registry.caller import Role
from registry.clock import rfc3339_utc
from registry.errors import BadRequest
from registry.operation import Auth, Example, Input, Nothing, Scope, SpendKind, operation
from registry.redaction import redact
from registry.versions import ObjectVersion, Versioned
from storage.engine.sql import Connection
from storage.mail_subscriptions import MailChoice, find_mail_choice, proved_address
from storage.members import hold_membership, queue_for_members

MOST_MAIL_KINDS = 80
MOST_WILDCARDS = 4
"""Of one glob. Each is compared with every type while events get their places, and one of thirty wildcards takes milliseconds."""
MailLanguage = Literal["en", "de"]


class NewMailSubscriptions(Input):
    """What to be told, and how. It takes the place of what was chosen before."""

    kinds: Annotated[
        dict[Annotated[str, Field(max_length=60)], MailTiming],
        Field(
            max_length=MOST_MAIL_KINDS,
            description="at_once, digest or off by type or glob. A name decides before a glob, the longer glob before others.",
        ),
    ]
    digest_hour: Annotated[int, Field(ge=0, le=23, description="The hour of the day that the digest goes out.")] = 8
    timezone: Annotated[str, Field(max_length=64, description="IANA name, Europe/Berlin.")] = "UTC"
    language: Annotated[MailLanguage, Field(description="The language of the mails.")] = "en"


class MailSubscriptions(TypedDict):
    """What you are told by mail in this organisation. `told` has each type that is not off, by choice or as admins are.

    `address` is where the mails go; null: none goes out, since you have proved no address here. `changed` is RFC 3339, null while nothing
    was chosen.
    """

    object: Literal["mail_subscriptions"]
    address: str | None
    kinds: dict[str, MailTiming]
    told: dict[str, MailTiming]
    digest_hour: int
    timezone: str
    language: MailLanguage
    changed: str | None


MAIL_SUBSCRIPTIONS_EXAMPLE: MailSubscriptions = {
    "object": "mail_subscriptions",
    "address": "ada@fjord.example",
    "kinds": {"esim.*": "digest"},
    "told": {"esim.issued": "digest", "esim.first_attach": "digest"},
    "digest_hour": 7,
    "timezone": "Europe/Berlin",
    "language": "de",
    "changed": "2026-11-20T09:20:00Z",
}


def render_subscriptions(connection: Connection, choice: MailChoice) -> MailSubscriptions:
    """`choice` with what follows from it for this member."""
    kinds = dict(read_kinds(choice.kinds))
    is_admin = hold_membership(connection, person=choice.person, organisation=choice.organisation) == Role.ADMIN
    timings: dict[str, MailTiming] = {type: mail_timing(kinds, type, is_admin=is_admin) for type in mail_types()}
    told: dict[str, MailTiming] = {type: timing for type, timing in timings.items() if timing != "off"}
    return {
        "object": "mail_subscriptions",
        "address": proved_address(connection, person=choice.person),
        "kinds": kinds,
        "told": told,
        "digest_hour": choice.hour,
        "timezone": choice.timezone,
        "language": cast(MailLanguage, choice.language),
        "changed": rfc3339_utc(choice.changed) if choice.changed else None,
    }


def read_mails_version(connection: Connection, ctx: Ctx, params: Input, hold: bool) -> ObjectVersion:
    """The version of what the person has chosen here; the link in a mail changes it, too."""
    del params
    organisation, person = ctx.organisation, ctx.caller.principal
    if hold:
        queue_for_members(connection)
    found = find_mail_choice(connection, organisation=organisation, person=person)
    choice = found or default_choice(organisation, person)
    return ObjectVersion(choice, choice.changed or None, principal=person)


MAILS_VERSION = Versioned("choice of mails", read_mails_version, "get_mail_subscriptions", ("set_mail_subscriptions",))


@operation(
    "GET",
    "/v1/me/mail-subscriptions",
    versioned=MAILS_VERSION,
    auth=Auth.SESSION,
    title="Get mail subscriptions",
    examples=[Example("What am I told by mail?", {}, MAIL_SUBSCRIPTIONS_EXAMPLE)],
)
async def get_mail_subscriptions(ctx: Ctx, _params: Nothing) -> MailSubscriptions:
    """Get what you are told by mail in the organisation that you act for.

    For a person who is signed in: an API key is refused. `told` lists the types that are mailed to you, and when.

    Who has chosen nothing is told nothing; admins are told of trouble with security and money at once. Mails go to the address that you
    sign in with, and end with your membership.
    """
    return await ctx.deps.store.read(read_subscriptions, organisation=ctx.organisation, person=ctx.caller.principal)


def read_subscriptions(connection: Connection, *, organisation: str, person: str) -> MailSubscriptions:
    found = find_mail_choice(connection, organisation=organisation, person=person)
    return render_subscriptions(connection, found or default_choice(organisation, person))


@operation(
    "PUT",
    "/v1/me/mail-subscriptions",
    auth=Auth.SESSION,
    scope=Scope.ANY,
    spends=SpendKind.NOTHING,
    versioned=MAILS_VERSION,
    title="Set mail subscriptions",
    raises=[BadRequest, LastMailedAdmin],
    examples=[
        Example(
            "All about eSIMs in one mail, every morning",
            {"kinds": {"esim.*": "digest"}, "digest_hour": 7, "timezone": "Europe/Berlin", "language": "de"},
            MAIL_SUBSCRIPTIONS_EXAMPLE,
        )
    ],
)
async def set_mail_subscriptions(ctx: Ctx, params: NewMailSubscriptions) -> MailSubscriptions:
    """Choose what you are told by mail in the organisation that you act for.

    For a person who is signed in: an API key is refused. What `kinds` do not name is as for somebody who has chosen nothing.

    At once is one mail for each event, at most 20 in an hour for one person; what is more comes in one mail. The digest is one mail a
    day, at `digest_hour` in `timezone`, also on days of 23 and 25 hours. organisation.* and work.approval_* are for admins alone.
    One admin is always told of security and money: whoever is the last to switch them off is refused (409 `last_mailed_admin`), and
    where that admin leaves, the others are told again. Each mail has a link that ends its kind.
    """
    check_timezone(params.timezone)
    organisation, person, now = ctx.organisation, ctx.caller.principal, ctx.now
    kinds = orjson.dumps(params.kinds).decode()
    choice = MailChoice(organisation, person, kinds, params.digest_hour, params.timezone, params.language, int(now))

    def keep(connection: Connection) -> MailSubscriptions:
        queue_for_members(connection)
        role = hold_membership(connection, person=person, organisation=organisation)
        check_mail_kinds(params.kinds, is_admin=role == Role.ADMIN)
        keep_mail_choice(connection, choice=choice, now=now)
        return render_subscriptions(connection, choice)

    return await ctx.settle_result(keep)


def check_mail_kinds(kinds: dict[str, MailTiming], *, is_admin: bool) -> None:
    """Raises BadRequest for a pattern that stands for nothing or has many wildcards, or for what a member may not read."""
    for pattern, timing in kinds.items():
        wild = sum(pattern.count(letter) for letter in "*?[")
        if wild > MOST_WILDCARDS:
            raise BadRequest(
                f"kinds: {redact(pattern)[:60]!r} has {wild} wildcards; a glob has at most {MOST_WILDCARDS}",
                param="kinds",
                hint="Name the types, or a family such as order.*",
            )
        types = mail_types_of(pattern)
        if not types:
            near = get_close_matches(pattern[:60], mail_types(), n=1)
            raise BadRequest(
                f"kinds: {redact(pattern)[:60]!r} stands for no type of events; name one, or use * for any part of a name",
                param="kinds",
                hint=f"Did you mean {near[0]}?" if near else "order.* stands for all about orders; `told` of your answer names types",
            )
        if not is_admin and timing != "off" and all(for_admins_alone(type) for type in types):
            raise BadRequest(
                f"kinds: {redact(pattern)[:60]!r} is {timing}, and only admins are told of {types[0]}",
                param="kinds",
                hint="Leave it out, or ask an admin of your organisation to give you that role",
            )
