"""Who is calling, as our own store knows them at this moment."""

from dataclasses import dataclass
from typing import Literal

from registry.limits import Role, Scope, Tier
from registry.restrictions import NO_ADMIN, UNRESTRICTED, Restrictions

Kind = Literal["key", "session", "local", "internal", "storefront", "public"]


@dataclass(frozen=True, slots=True)
class Connection:
    """The active organisation's way to the upstream."""

    mode: Literal["managed", "own"]
    account_id: int | None


@dataclass(frozen=True, slots=True)
class Caller:
    """One authenticated principal acting for at most one organisation."""

    kind: Kind
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
    connection: Connection | None = None
    expires_at: int | None = None
    """When the key that was presented, or the login's grant, ends: Unix seconds."""

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
        held = self.restrictions
        if held is UNRESTRICTED or held == UNRESTRICTED:
            return False
        return self.role is Role.ADMIN or held != NO_ADMIN

    def has(self, scope: Scope) -> bool:
        """Every bit of the scope."""
        return not int(scope) & ~self.scopes


ANONYMOUS = Caller(kind="public", principal="public")
BRIDGE = Caller(kind="internal", principal="internal", scopes=int(Scope.READ | Scope.ANY))
STOREFRONT = Caller(kind="storefront", principal="storefront", scopes=int(Scope.READ | Scope.ANY))
