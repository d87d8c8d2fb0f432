"""For whom a session token must have been made, by door."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, cast


class AudienceRule(Protocol):
    """Decides on the verified claims of a token whether it was made for this door."""

    def accepts(self, claims: Mapping[str, object]) -> bool:
        """Whether the token may be used at this door."""
        ...


@dataclass(frozen=True, slots=True)
class HttpAudience:
    """The HTTP door: `aud` is the configured audience, or `azp` is on the list when there is no `aud` at all."""

    audience: str | None = None
    authorized_parties: frozenset[str] = frozenset()

    def accepts(self, claims: Mapping[str, object]) -> bool:
        """Sessions of common providers carry no `aud`; then the application they were made for must be ours."""
        if "aud" not in claims:
            party = claims.get("azp")
            return isinstance(party, str) and party in self.authorized_parties
        return bool(self.audience) and self.audience in _audiences(claims["aud"])


@dataclass(frozen=True, slots=True)
class McpAudience:
    """The MCP door: `aud` has the MCP resource URL, character for character."""

    resource: str

    def accepts(self, claims: Mapping[str, object]) -> bool:
        """A trailing slash, a prefix or another resource is a token for someone else."""
        return bool(self.resource) and self.resource in _audiences(claims.get("aud"))


def _audiences(value: object) -> list[str]:
    """RFC 7519: one string or a list of strings. Anything else names nobody."""
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list):
        return []
    members = cast("list[object]", value)
    names = [member for member in members if isinstance(member, str)]
    return names if len(names) == len(members) else []
