"""Who is calling, as our own store knows them at this moment, and what the credential may not do although its maker may."""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal, NamedTuple, TypeVar

RestrictedT = TypeVar("RestrictedT", str, int)


class Money(NamedTuple):
    """An amount in minor units of its currency (ISO 4217, capital letters): 4000 EUR are 40 euros."""

    amount: int
    currency: str


class Approval(StrEnum):
    """Which calls of a credential wait for a person's approval."""

    NONE = "none"
    IRREVERSIBLE = "irreversible"
    EVERY_WRITE = "every_write"


APPROVALS = tuple(Approval)
"""From the laxest to the strictest."""


@dataclass(frozen=True, slots=True)
class SpendLimits:
    """What a credential may make due, and how often it may call what, by UTC day and month.

    `counted_as`: the key under whose name it is counted, empty for the credential itself. `times`: operations with the calls a day.
    """

    counted_as: str = ""
    per_call: Money | None = None
    per_day: Money | None = None
    per_month: Money | None = None
    times: tuple[tuple[str, int], ...] = ()
    approve_above: Money | None = None

    @property
    def of_money(self) -> bool:
        """Whether money is limited at all: then what makes an amount due that nobody knows needs an approval."""
        return any(limit is not None for limit in (self.per_call, self.per_day, self.per_month))

    def counted_by(self, key: str) -> "SpendLimits":
        """The same limits, counted under the name of `key` where they have none."""
        return self if self.counted_as else replace(self, counted_as=key)


@dataclass(frozen=True, slots=True)
class Restrictions:
    """The narrowing of a key. None means: not narrowed in this respect."""

    read_only: bool = False
    no_admin: bool = False
    """Nothing that needs the role admin; a key made with a login that was not granted it has this."""
    toolsets: tuple[str, ...] | None = None
    iccids: tuple[str, ...] | None = None
    account_ids: tuple[int, ...] | None = None
    calls_per_day: int | None = None
    counted_as: str | None = None
    """The key whose calls are counted: a key made with a limited one shares its count, else two keys could make twice the calls."""
    tags: tuple[str, ...] | None = None
    """Only lines that have one of these tags."""
    limits: tuple[SpendLimits, ...] = ()
    """The key's own limits, and those of each key that it was made with: all of them hold, each with a count of its own."""
    approval: Approval = Approval.NONE
    another_person: bool = False
    """Whoever made the credential does not approve its calls."""

    def within(self, outer: "Restrictions") -> "Restrictions":
        """Both together: what a key made with a restricted key is held to."""
        limits = [limit for limit in (self.calls_per_day, outer.calls_per_day) if limit is not None]
        return Restrictions(
            read_only=self.read_only or outer.read_only,
            no_admin=self.no_admin or outer.no_admin,
            toolsets=toolsets_in_both(self.toolsets, outer.toolsets),
            iccids=in_both(self.iccids, outer.iccids),
            account_ids=in_both(self.account_ids, outer.account_ids),
            calls_per_day=min(limits, default=None),
            counted_as=outer.counted_as or self.counted_as,
            tags=in_both(self.tags, outer.tags),
            limits=(*self.limits, *outer.limits),
            approval=max(self.approval, outer.approval, key=APPROVALS.index),
            another_person=self.another_person or outer.another_person,
        )


UNRESTRICTED = Restrictions()

NO_ADMIN = Restrictions(no_admin=True)
"""What a login that was not granted admin is held to; it takes nothing from somebody who is no admin."""

EVERY_TOOL = "all"
"""The preset that holds every toolset."""


def toolsets_in_both(one: tuple[str, ...] | None, other: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """The names in both lists of toolsets; the preset of all tools contains every name. Names are compared, not the operations in them."""
    if one is not None and other is not None and (EVERY_TOOL in one or EVERY_TOOL in other):
        return one if EVERY_TOOL in other else other
    return in_both(one, other)


def in_both(one: tuple[RestrictedT, ...] | None, other: tuple[RestrictedT, ...] | None) -> tuple[RestrictedT, ...] | None:
    """What stands in both lists; a list that is not there holds everything."""
    if one is None or other is None:
        return other if one is None else one
    return tuple(name for name in one if name in other)


CallerKind = Literal["key", "session", "local", "internal", "storefront", "public"]


@dataclass(frozen=True, slots=True)
class OrganisationConnection:
    """The active organisation's way to the upstream."""

    mode: Literal["managed", "own"]
    account_id: int | None


class Tier(StrEnum):
    """What an organisation pays for."""

    FREE = "free"
    PRO = "pro"
    ENTERPRISE = "enterprise"


class Role(StrEnum):
    """What a member is in an organisation."""

    ADMIN = "admin"
    MEMBER = "member"


@dataclass(frozen=True, slots=True)
class Caller:
    """One authenticated principal acting for at most one organisation."""

    kind: CallerKind
    principal: str
    organisation: str = ""
    organisation_name: str = ""
    tier: Tier = Tier.FREE
    role: Role = Role.MEMBER
    scopes: int = 0
    key_id: str = ""
    """The key that was presented, or the grant (gnt_) of a login at the built-in identity provider."""
    withheld: int = 0
    """Scopes that the membership carries and this credential does not."""
    restrictions: Restrictions = UNRESTRICTED
    connection: OrganisationConnection | None = None
    expires_at: int | None = None
    """When the key that was presented, or the login's grant, ends: Unix seconds."""
    signed_in: float | None = None
    """When this person signed in at the service's own pages, whose session makes the call: Unix seconds. None for all other credentials."""

    @property
    def owner(self) -> str:
        """Whose quota and keys these are: the organisation's, or the person's own where there is none."""
        return self.organisation or self.principal

    @property
    def counter(self) -> str:
        """Under which name the calls of a key with a limit of its own are counted."""
        return self.restrictions.counted_as or self.key_id

    @property
    def is_admin(self) -> bool:
        """Whether this credential may do what needs the role admin."""
        return self.role is Role.ADMIN and not self.restrictions.no_admin

    @property
    def restricted(self) -> bool:
        """Whether this credential may do less than its person may at this moment: a key with any restriction, one that was made with
        such a key, a login that was granted less than its person has."""
        own = self.restrictions
        if own is UNRESTRICTED or own == UNRESTRICTED:
            return False
        return self.role is Role.ADMIN or own != NO_ADMIN

    def has(self, scope: int) -> bool:
        """Every bit of the `Scope`."""
        return not int(scope) & ~self.scopes  # of two flags Python would look up a third


ANONYMOUS_CALLER = Caller(kind="public", principal="public")
