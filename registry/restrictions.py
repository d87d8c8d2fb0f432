"""What a credential may not do although its maker may: restrictions only ever take away."""

from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T", str, int)


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

    def within(self, outer: "Restrictions") -> "Restrictions":
        """Both together: what a key made with a restricted key is held to."""
        limits = [limit for limit in (self.calls_per_day, outer.calls_per_day) if limit is not None]
        return Restrictions(
            read_only=self.read_only or outer.read_only,
            no_admin=self.no_admin or outer.no_admin,
            toolsets=tools_in_both(self.toolsets, outer.toolsets),
            iccids=both(self.iccids, outer.iccids),
            account_ids=both(self.account_ids, outer.account_ids),
            calls_per_day=min(limits, default=None),
            counted_as=outer.counted_as or self.counted_as,
        )


UNRESTRICTED = Restrictions()
NO_ADMIN = Restrictions(no_admin=True)
"""What a login that was not granted admin is held to; it takes nothing from somebody who is no admin."""
EVERY_TOOL = "all"
"""The preset that holds every toolset."""


def tools_in_both(one: tuple[str, ...] | None, other: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """What stands in both lists of toolsets; the preset for all of them holds every name. Names are compared, not what they hold."""
    if one is not None and other is not None and (EVERY_TOOL in one or EVERY_TOOL in other):
        return one if EVERY_TOOL in other else other
    return both(one, other)


def both(one: tuple[T, ...] | None, other: tuple[T, ...] | None) -> tuple[T, ...] | None:
    """What stands in both lists; a list that is not there holds everything."""
    if one is None or other is None:
        return other if one is None else one
    return tuple(name for name in one if name in other)
