"""Events of the organisation itself, which admins alone see."""

from typing import Literal

from typing_extensions import TypedDict

from operations.event_types.declaration import EventType


class ConnectedUpstream(TypedDict):
    """How the charging system is reached from now on. `account_id` is null with a token of one's own; `replaced`: another way before."""

    mode: Literal["managed", "own"]
    account_id: int | None
    replaced: bool


class DisconnectedUpstream(TypedDict):
    """How the charging system was reached until now."""

    mode: Literal["managed", "own"]
    account_id: int | None


class CreatedKey(TypedDict):
    """`prefix`: the first characters of the secret. `made_by`: a person's id; `made_with`: the key or login it was made with, if any."""

    key: str
    prefix: str
    made_by: str
    made_with: str | None
    restricted: bool


class RevokedKey(TypedDict):
    """`prefix`: the first characters of the secret. `made_with`: the key or login it was made with, whose end may have ended it."""

    key: str
    prefix: str
    made_with: str | None


class AddedMember(TypedDict):
    """Who has joined. `person` is an id; names and addresses are in the list of members."""

    person: str
    role: Literal["admin", "member"]


class SyncedFleet(TypedDict):
    """How many lines are known; not `complete`: the charging system has more, and no list shows them.

    `reason`: they were read by this connection for the `first` time, or again after a `gap` in which nobody could read them.
    """

    lines: int
    complete: bool
    reason: Literal["first", "gap"]


ORGANISATION_UPSTREAM_CONNECTED = EventType(
    "organisation.upstream_connected",
    "The organisation was connected to the charging system, or its connection was replaced by another one.",
    ConnectedUpstream,
    {"mode": "managed", "account_id": 8101, "replaced": False},
    read_with="get_onboarding_state",
    admin=True,
)

ORGANISATION_UPSTREAM_DISCONNECTED = EventType(
    "organisation.upstream_disconnected",
    "The organisation is not connected to the charging system any more.",
    DisconnectedUpstream,
    {"mode": "managed", "account_id": 8101},
    read_with="get_onboarding_state",
    admin=True,
)

ORGANISATION_KEY_CREATED = EventType(
    "organisation.key_created",
    "An API key of the organisation was made.",
    CreatedKey,
    {
        "key": "key_01k0a8w7zv6q4k3m2n1p0r9s8t",
        "prefix": "ak_7Gk2mQ9xT",
        "made_by": "usr_01k0a8w7zv6q4k3m2n1p0r9s8t",
        "made_with": None,
        "restricted": True,
    },
    read_with="list_api_keys",
    admin=True,
)

ORGANISATION_KEY_REVOKED = EventType(
    "organisation.key_revoked",
    "An API key of the organisation was revoked: by somebody, with what it was made with, or with its maker's membership.",
    RevokedKey,
    {"key": "key_01k0a8w7zv6q4k3m2n1p0r9s8t", "prefix": "ak_7Gk2mQ9xT", "made_with": None},
    read_with="list_api_keys",
    admin=True,
)

ORGANISATION_MEMBER_ADDED = EventType(
    "organisation.member_added",
    "Somebody has become a member of the organisation.",
    AddedMember,
    {"person": "usr_01k0a8w7zv6q4k3m2n1p0r9s8t", "role": "member"},
    read_with="list_members",
    admin=True,
)

ORGANISATION_FLEET_SYNCED = EventType(
    "organisation.fleet_synced",
    "The lines of the organisation were listed by a new connection, or after a long gap; what changed before is told by no event.",
    SyncedFleet,
    {"lines": 1204, "complete": True, "reason": "first"},
    read_with="query_fleet",
    admin=True,
)
