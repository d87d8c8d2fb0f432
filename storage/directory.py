"""Who a credential belongs to: keys, people, memberships and connections, read at every call."""

import hashlib
from dataclasses import replace
from typing import Literal, NamedTuple, cast

import sqlalchemy as sa

from registry.authentication import is_api_key
from registry.caller import UNRESTRICTED, Caller, CallerKind, Restrictions, Role, Tier
from registry.caller import OrganisationConnection as Upstream
from registry.errors import OrgRef
from registry.ids import base32
from registry.operation import Scope
from registry.policy import quota_period, scopes_of
from registry.ports import SessionClaims
from storage.access_grants import GRANT_PREFIX, MEMBER_BY_GRANT, AccessGrant, find_grant
from storage.api_keys import API_KEY, read_restrictions
from storage.engine.sql import Command, Connection, Query, changes_one, row_exists
from storage.engine.store import Store
from storage.organisations import (
    MEMBERSHIP,
    SELECT_MEMBERSHIPS,
    Membership,
    find_member,
    first_membership,
    list_connected,
    read_change_count,
)
from storage.people import PERSON

CACHED_KEYS = 10_000


class PresentedKey(NamedTuple):
    """A key as it is found by its digest."""

    id: str
    person_id: str
    organisation_id: str | None
    expires_at: int | None
    last_used_day: str | None
    restrictions: str | None


PRESENTED_KEYS = sa.select(*(API_KEY.c[name] for name in PresentedKey._fields))
KEY_BY_DIGEST = Query(PresentedKey, PRESENTED_KEYS.where(API_KEY.c.digest == sa.bindparam("digest"), API_KEY.c.revoked_at.is_(None)))
KEY_IS_LIVE = (
    API_KEY.c.id == sa.bindparam("key_id"),
    API_KEY.c.revoked_at.is_(None),
    API_KEY.c.expires_at.is_(None) | (API_KEY.c.expires_at > sa.bindparam("now")),
)
KEY_BY_ID = Query(PresentedKey, lambda _: PRESENTED_KEYS.where(*KEY_IS_LIVE))
PERSON_BY_SUBJECT = Query(str, lambda _: sa.select(PERSON.c.id).where(PERSON.c.subject == sa.bindparam("subject")))
PERSON_IS_UNLINKED = (PERSON.c.address == sa.bindparam("address"), PERSON.c.subject.is_(None))
# Two tokens of one subject may name two addresses: the subject stays whose it became first.
SUBJECT_IS_NAMED = sa.exists().where(PERSON.alias("named").c.subject == sa.bindparam("subject"))
NOTE_KEY_DAY = Command(lambda _: sa.update(API_KEY).where(API_KEY.c.id == sa.bindparam("key_id")).values(last_used_day=sa.bindparam("day")))
# Rechecked in the transaction of a write that moves a SIM or money.
MEMBER_BY_KEY = Query(
    Membership,
    lambda _: SELECT_MEMBERSHIPS.join_from(
        MEMBERSHIP, API_KEY, (API_KEY.c.person_id == MEMBERSHIP.c.person_id) & (API_KEY.c.organisation_id == MEMBERSHIP.c.organisation_id)
    ).where(*KEY_IS_LIVE),
)


def find_presented_key(connection: Connection, *, digest: bytes) -> tuple[PresentedKey, Membership | None] | None:
    """A live key and, unless it is bound to a person alone, its maker's membership."""
    key = connection.first(KEY_BY_DIGEST, digest=digest)
    if key is None:
        return None
    return key, find_member(connection, person=key.person_id, organisation=key.organisation_id) if key.organisation_id else None


def find_member_again(connection: Connection, *, caller: Caller, now: float) -> Membership | None:
    """The membership of a caller who was found before; None when it, or the credential, has ended since. `now`: Unix seconds."""
    if caller.kind == "key":
        return connection.first(MEMBER_BY_KEY, key_id=caller.key_id, now=now)
    if caller.key_id:
        found = find_grant(connection, grant=caller.key_id, now=now)
        return None if found is None else found[1]
    return find_member(connection, person=caller.principal, organisation=caller.organisation)


def recheck_member(connection: Connection, *, person: str, organisation: str, credential: str, now: float) -> Membership | None:
    """The membership that a call acts in, in the transaction that moves a SIM or money; None when it, or the key or grant, has ended."""
    if credential.startswith(GRANT_PREFIX):
        return connection.first(MEMBER_BY_GRANT, grant=credential, now=now)
    if credential:
        return connection.first(MEMBER_BY_KEY, key_id=credential, now=now)
    return find_member(connection, person=person, organisation=organisation)


def find_subject(connection: Connection, *, subject: str, organisation: str | None) -> tuple[str | None, Membership | None]:
    """The person an identity provider names, and the membership they act in."""
    person = connection.first(PERSON_BY_SUBJECT, subject=subject)
    if person is None:
        return None, None
    if organisation is None:
        return person, first_membership(connection, person=person)
    # A token that names an organisation its person has left acts for none: never silently for another.
    return person, find_member(connection, person=person, organisation=organisation)


@row_exists
def awaits_subject(*, address: str) -> sa.Executable:
    """Whether somebody signed up here with the address whom no external provider has named yet."""
    return sa.select(PERSON.c.id).where(*PERSON_IS_UNLINKED)


@changes_one
def link_subject(*, subject: str, address: str) -> sa.Executable:
    """A person who signed up here comes with an external provider's name for the first time: from now on it is theirs."""
    return sa.update(PERSON).where(*PERSON_IS_UNLINKED, ~SUBJECT_IS_NAMED).values(subject=subject)


def note_key_days(connection: Connection, *, days: dict[str, str]) -> None:
    """Note the day on which keys were last used."""
    connection.run_many(NOTE_KEY_DAY, [{"key_id": key, "day": day} for key, day in sorted(days.items())])


def caller_of(kind: CallerKind, person: str, member: Membership | None, key_id: str = "") -> Caller:
    """A caller with the scopes of a membership; without one, only what needs no organisation."""
    if member is None:
        return Caller(kind=kind, principal=person, scopes=int(scopes_of(Tier.FREE, Role.MEMBER)), key_id=key_id)
    tier, role = Tier(member.tier), Role(member.role)
    upstream = None if member.mode is None else Upstream(cast(Literal["managed", "own"], member.mode), member.account_id)
    return Caller(
        kind=kind,
        principal=person,
        organisation=member.organisation_id,
        organisation_name=member.name,
        tier=tier,
        role=role,
        scopes=int(scopes_of(tier, role)),
        key_id=key_id,
        connection=upstream,
    )


def reader_for(
    connection: Connection, *, principal: str, organisation: str, person: str, made_with: str | None, now: float
) -> Caller | None:
    """The caller of a schedule's runs: no person, a member at most, who only reads, counts for the key or login that made the schedule
    and is held to its restrictions. None when that has ended, or the person has left. `now`: Unix seconds."""
    member = find_member(connection, person=person, organisation=organisation)
    held = UNRESTRICTED if made_with is None else restrictions_of(connection, credential=made_with, now=now)
    if member is None or held is None:
        return None
    caller = caller_of("local", principal, member._replace(role=Role.MEMBER), made_with or "")
    return restricted_caller(caller, replace(held, read_only=True))


class CallerRecord(NamedTuple):
    """Who made a call that is carried out later: what is kept of a caller."""

    kind: CallerKind
    principal: str
    organisation: str
    credential: str


def acting_caller(connection: Connection, *, record: CallerRecord, now: float) -> Caller | None:
    """Who made the call, as they are at `now` (Unix seconds), with every restriction of their credential; None when it has ended, or the
    person has left the organisation."""
    if record.credential:
        return find_asker(connection, credential=record.credential, owner=record.organisation, now=now)
    member = find_member(connection, person=record.principal, organisation=record.organisation)
    return None if member is None else caller_of(record.kind, record.principal, member)


def find_asker(connection: Connection, *, credential: str, owner: str, now: float) -> Caller | None:
    """Who asked with a key or a login (gnt_), as they are now; None when it, or their place in the organisation, has ended.

    `owner`: the organisation that they asked for, the person's own id where it was none. `now`: Unix seconds.
    """
    if credential.startswith(GRANT_PREFIX):
        found = find_grant(connection, grant=credential, now=now)
        if found is None:
            return None
        grant, member = found
        caller, held = caller_of("session", grant.person_id, member, grant.id), grant_restrictions(grant)
    else:
        key = connection.first(KEY_BY_ID, key_id=credential, now=now)
        if key is None:
            return None
        member = find_member(connection, person=key.person_id, organisation=key.organisation_id) if key.organisation_id else None
        caller = replace(caller_of("key", key.person_id, member, key.id), expires_at=key.expires_at)
        held = read_restrictions(key.restrictions)
    return restricted_caller(caller, held) if caller.owner == owner else None


def find_approver(connection: Connection, *, person: str, owner: str) -> Caller:
    """Somebody who has approved a call of `owner` (an organisation, or their own id), with what they may do there now."""
    return caller_of("session", person, find_member(connection, person=person, organisation=owner))


def restrictions_of(connection: Connection, *, credential: str, now: float) -> Restrictions | None:
    """What a key or a login is held to; None when it has ended. `now`: Unix seconds."""
    if credential.startswith(GRANT_PREFIX):
        found = find_grant(connection, grant=credential, now=now)
        return None if found is None else grant_restrictions(found[0])
    key = connection.first(KEY_BY_ID, key_id=credential, now=now)
    return None if key is None else read_restrictions(key.restrictions)


def restricted_caller(caller: Caller, restrictions: Restrictions) -> Caller:
    """The caller with what the credential was made to do less."""
    scopes = caller.scopes & int(scopes_left(restrictions))
    return replace(caller, scopes=scopes, withheld=caller.scopes & ~scopes, restrictions=restrictions)


def scopes_left(restrictions: Restrictions) -> Scope:
    if restrictions.read_only:
        return Scope.READ
    every = Scope.READ | Scope.ANY | Scope.WRITE | Scope.ADMIN
    return every & ~Scope.ADMIN if restrictions.no_admin else every


def grant_restrictions(grant: AccessGrant) -> Restrictions:
    """A login's scopes as restrictions: who was granted less than everything may do less than everything."""
    scopes = grant.scopes.split()
    return Restrictions(read_only="write" not in scopes, no_admin="admin" not in scopes)


class CachedCaller(NamedTuple):
    """A caller as it was when the change counter stood at `counter`."""

    counter: int
    caller: Caller


class CountOfSnapshot(NamedTuple):
    """How many changes a snapshot has seen; a snapshot of None is none."""

    snapshot: int | None
    changes: int


class StoreDirectory:
    """The pipeline's Directory. A cached key is used only while the change counter read in the same call stands still."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._cache: dict[bytes, CachedCaller] = {}
        self._counted = CountOfSnapshot(None, 0)
        self._used: dict[str, str] = {}
        self._noted: dict[str, str] = {}

    async def by_key(self, secret: str, now: float) -> Caller | None:
        """The caller of a live API key."""
        digest = hashlib.sha256(secret.encode()).digest()
        if digest not in self._cache and not is_api_key(secret):
            return None  # mistyped: not worth a look-up
        counter = await self._change_count()
        cached = self._cache.get(digest)
        if cached is None or cached.counter != counter:
            cached = await self._load(digest, counter)
        if cached is None or (cached.caller.expires_at is not None and cached.caller.expires_at <= now):
            return None
        self._note_use(cached.caller.key_id, now)
        return cached.caller

    async def _change_count(self) -> int:
        """The change counter, as a read of this moment would find it: of a snapshot that reads share it is read once."""
        snapshot = self._store.snapshot
        if snapshot is not None and snapshot == self._counted.snapshot:
            return self._counted.changes
        count = await self._store.read(read_change_count)
        self._counted = CountOfSnapshot(self._store.snapshot, count)
        return count

    async def by_session(self, claims: SessionClaims, now: float) -> Caller | None:
        """The caller of a verified session. A login here is its grant; an external one is who our store knows by the provider's name."""
        if claims.grant is not None:
            found = await self._store.read(find_grant, grant=claims.grant, now=now)
            if found is None:
                return None
            grant, member = found
            if claims.subject != grant.person_id:
                return None  # signed with our key for somebody whom this login is not of: nothing of ours makes such a token
            caller = replace(caller_of("session", grant.person_id, member, grant.id), expires_at=int(grant.expires_at))
            return restricted_caller(caller, grant_restrictions(grant))
        subject, organisation = claims.subject, claims.organisation
        person, member = await self._store.read(find_subject, subject=subject, organisation=organisation)
        if person is None and claims.email is not None:
            await self._link(subject, claims.email.lower())
            # Whoever linked them: somebody's first calls come several at once.
            person, member = await self._store.read(find_subject, subject=subject, organisation=organisation)
        return caller_of("session", person or stranger_principal(subject), member)

    async def again(self, caller: Caller, now: float) -> Caller | None:
        """Who called a while ago, as they are now. A login that acts for another organisation since then is another caller."""
        member = await self._store.read(find_member_again, caller=caller, now=now)
        if member is None or member.organisation_id != caller.organisation:
            return None
        found = replace(caller_of(caller.kind, caller.principal, member, caller.key_id), expires_at=caller.expires_at)
        return restricted_caller(found, caller.restrictions)

    async def signed_in(self, person: str, organisation: str | None, since: float | None = None) -> Caller:
        """The caller of a browser session, at the service's own pages; `since`: when the session began, Unix seconds."""
        member = None if organisation is None else await self._store.read(find_member, person=person, organisation=organisation)
        return replace(caller_of("session", person, member), signed_in=since)

    async def member(self, person: str, organisation: str) -> Caller | None:
        """The local caller of stdio and the command line."""
        member = await self._store.read(find_member, person=person, organisation=organisation)
        return None if member is None else caller_of("local", person, member)

    async def connected(self, principal: str) -> list[OrgRef]:
        """The principal's organisations that have an upstream account."""
        return [{"id": row.id, "name": row.name} for row in await self._store.read(list_connected, person=principal)]

    async def flush(self) -> None:
        """Write the days on which keys were last used."""
        if self._used:
            used = dict(self._used)
            await self._store.write(note_key_days, days=used)
            self._used = {key: day for key, day in self._used.items() if used.get(key) != day}

    async def _link(self, subject: str, address: str) -> None:
        """Looks first: most who come for the first time are nobody's acquaintance, and come more than once."""
        if await self._store.read(awaits_subject, address=address):
            await self._store.write(link_subject, subject=subject, address=address)

    async def _load(self, digest: bytes, counter: int) -> CachedCaller | None:
        found = await self._store.read(find_presented_key, digest=digest)
        if found is None:
            self._cache.pop(digest, None)
            return None
        key, member = found
        if key.organisation_id is not None and member is None:
            return None  # its maker has left the organisation
        if len(self._cache) >= CACHED_KEYS:
            self._cache.clear()
        caller = replace(caller_of("key", key.person_id, member, key.id), expires_at=key.expires_at)
        if key.restrictions is not None:
            caller = restricted_caller(caller, read_restrictions(key.restrictions))
        cached = self._cache[digest] = CachedCaller(counter, caller)
        if key.last_used_day is not None:
            self._noted.setdefault(key.id, key.last_used_day)
        return cached

    def _note_use(self, key_id: str, now: float) -> None:
        day = quota_period(now).name
        if self._noted.get(key_id) != day:
            self._noted[key_id] = self._used[key_id] = day


def stranger_principal(subject: str) -> str:
    """A stable principal for a person of an external identity provider whom we have no row for yet."""
    return "usr_" + base32(int.from_bytes(hashlib.sha256(subject.encode()).digest()) >> 126)
