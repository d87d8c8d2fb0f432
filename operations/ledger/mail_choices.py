"""What a member chooses to be told by mail: kept with the rule that one admin is always told, and ended by the link in a mail."""

from collections.abc import Mapping
from typing import NamedTuple

import orjson

from operations.deps import Deps
from operations.languages import DEFAULT_LANGUAGE
from operations.ledger.mail_kinds import (
    DEFAULT_DIGEST_HOUR,
    DEFAULT_MAIL_ZONE,
    DIGEST,
    MAIL_OFF,
    REPORT_MAIL_TYPE,
    SECURITY_AND_MONEY_TYPES,
    MailTiming,
    mail_timing,
    next_digest,
    read_kinds,
    reader_timing,
)
from registry.caller import Role
from registry.errors import Conflict, KeyUnknown, NotFound
from storage.engine.sql import Connection
from storage.mail_notices import last_digest_day, move_digest
from storage.mail_subscriptions import MailChoice, find_mail_choice, mail_readers, put_mail_choice
from storage.members import hold_membership, queue_for_members
from storage.schedule_mails import forget_schedule_mail
from storage.sealing import SERVICE_OWNER, UNSUBSCRIBE_FIELD, WrongSeal

UNSUBSCRIBE_PATH = "/auth/unsubscribe/"
DIGEST_KIND = "digest"


class LastMailedAdmin(Conflict):
    """Nobody else would be told of security and money."""

    code = "last_mailed_admin"


def default_choice(organisation: str, person: str) -> MailChoice:
    """What counts for a member who has chosen nothing."""
    return MailChoice(organisation, person, "{}", DEFAULT_DIGEST_HOUR, DEFAULT_MAIL_ZONE, DEFAULT_LANGUAGE, 0)


def check_admin_told(connection: Connection, *, organisation: str, person: str, kinds: Mapping[str, MailTiming]) -> None:
    """Raises LastMailedAdmin where, with these kinds of `person`, no admin would be told of some security or money type."""
    if hold_membership(connection, person=person, organisation=organisation) != Role.ADMIN:
        return
    silent = [type for type in SECURITY_AND_MONEY_TYPES if mail_timing(kinds, type, is_admin=True) == MAIL_OFF]
    others = [
        reader
        for reader in (mail_readers(connection, organisations=[organisation]) if silent else [])
        if reader.role == Role.ADMIN and reader.person != person
    ]
    untold = [type for type in silent if not any(reader_timing(reader, type) != MAIL_OFF for reader in others)]
    if untold:
        raise LastMailedAdmin(
            f"kinds: no admin would be mailed {', '.join(untold)}; one admin is always told of security and money",
            param="kinds",
            hint="Choose digest instead of off, or have another admin choose them first",
        )


def keep_mail_choice(connection: Connection, *, choice: MailChoice, now: float) -> None:
    """Keeps what a member chose, and moves the digest that waits for them. Raises LastMailedAdmin. `now`: Unix seconds.

    Call queue_for_members first in the transaction: of two admins who switch the same off at once one is refused.
    """
    organisation, person = choice.organisation, choice.person
    check_admin_told(connection, organisation=organisation, person=person, kinds=read_kinds(choice.kinds))
    put_mail_choice(connection, choice=choice)
    last = last_digest_day(connection, organisation=organisation, person=person)
    due_ms, day = next_digest(choice.hour, choice.timezone, now, after_day=last)
    move_digest(connection, organisation=organisation, person=person, due_ms=due_ms, day=day)


class Unsubscription(NamedTuple):
    """What the link in a mail ends. `kind` is a type of events, `digest`, or the schedule whose reports are mailed."""

    organisation: str
    person: str
    kind: str


def unsubscribe_address(deps: Deps, what: Unsubscription) -> str | None:
    """The address that ends `what`, for the mail alone; None where people do not sign in here, so that there are no pages."""
    if not deps.own_identity:
        return None
    token = deps.keyring.seal(orjson.dumps([*what]).decode(), org_id=SERVICE_OWNER, field=UNSUBSCRIBE_FIELD)
    return f"{deps.site.base_url}{UNSUBSCRIBE_PATH}{token}"


def read_unsubscription(deps: Deps, token: str) -> Unsubscription:
    """What a link ends. Raises NotFound for one that is none of ours, or whose key is gone."""
    try:
        organisation, person, kind = orjson.loads(deps.keyring.open(token, org_id=SERVICE_OWNER, field=UNSUBSCRIBE_FIELD))
    except (KeyUnknown, ValueError, WrongSeal):
        raise NotFound(
            "There is nothing behind this link",
            hint="It may have been cut off when it was copied. Sign in and change what you are told by mail",
        ) from None
    return Unsubscription(organisation, person, kind)


def end_mails(connection: Connection, *, what: Unsubscription, now: float) -> None:
    """Ends that person's mails of that kind, and nothing else; where they are no member any more there are none. Raises LastMailedAdmin."""
    organisation, person, kind = what
    queue_for_members(connection)  # what is read here is changed: two links that are used at once both count
    if hold_membership(connection, person=person, organisation=organisation) is None:
        return
    if kind.startswith(f"{REPORT_MAIL_TYPE}:"):
        forget_schedule_mail(connection, schedule=kind.partition(":")[2], person=person)
        return
    found = find_mail_choice(connection, organisation=organisation, person=person) or default_choice(organisation, person)
    kinds = read_kinds(found.kinds)
    ended = {name: MAIL_OFF for name, timing in kinds.items() if timing == DIGEST} if kind == DIGEST_KIND else {kind: MAIL_OFF}
    text = orjson.dumps({**kinds, **ended}).decode()
    keep_mail_choice(connection, choice=found._replace(kinds=text, changed=int(now)), now=now)
