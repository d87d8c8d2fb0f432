"""What a key may be restricted to, as its maker asks for it; and what that comes to, since no key can do more than its maker."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Annotated, TypeVar

from pydantic import AfterValidator, Field, JsonValue
from typing_extensions import TypedDict

from operations.services.network.accounts import UpstreamId
from operations.vocabulary import Iccid
from registry.caller import Caller
from registry.errors import BadRequest, Restricted
from registry.input_shape import MaxEntries
from registry.model import Input
from registry.restrictions import EVERY_TOOL, UNRESTRICTED, Restrictions

T = TypeVar("T", str, int)
MOST = 100
MOST_CALLS = 1_000_000
FIELD = "restrictions"
LISTED: dict[str, JsonValue] = {"minItems": 1, "maxItems": MOST}


def some(values: list[T]) -> list[T]:
    """Each once, in the order given; a list that allows nothing is a mistake."""
    if not values:
        raise ValueError("an empty list would allow nothing; leave it out for no such restriction")
    if len(values) > MOST:
        raise ValueError(f"must hold at most {MOST} entries")
    return list(dict.fromkeys(values))


class KeyRestrictions(Input):
    """What the key may not do although its maker may. Every member only takes away; without any the key does what its maker does."""

    read_only: Annotated[bool, Field(description="Only what changes nothing.")] = False
    toolsets: Annotated[
        list[str] | None,
        MaxEntries(MOST),
        AfterValidator(lambda values: values if values is None else some(values)),
        Field(description="Only operations of these toolsets, 1-100.", json_schema_extra=LISTED),
    ] = None
    iccids: Annotated[
        list[Iccid] | None,
        MaxEntries(MOST),
        AfterValidator(lambda values: values if values is None else some(values)),
        Field(description="Only operations on one line, and only these lines, 1-100.", json_schema_extra=LISTED),
    ] = None
    account_ids: Annotated[
        list[UpstreamId] | None,
        MaxEntries(MOST),
        AfterValidator(lambda values: values if values is None else some(values)),
        Field(description="Only operations on a line or an account, of these accounts, 1-100.", json_schema_extra=LISTED),
    ] = None
    calls_per_day: Annotated[
        int | None, Field(ge=1, le=MOST_CALLS, description="Calls per UTC day, 1-1000000, within your organisation's quota.")
    ] = None


class ShownRestrictions(TypedDict):
    """What a key may not do although its maker may; null: not restricted in this respect."""

    read_only: bool
    no_admin: bool
    toolsets: list[str] | None
    iccids: list[str] | None
    account_ids: list[int] | None
    calls_per_day: int | None


def shown_restrictions(held: Restrictions) -> ShownRestrictions | None:
    """As they are answered."""
    if held == UNRESTRICTED:
        return None
    return {
        "read_only": held.read_only,
        "no_admin": held.no_admin,
        "toolsets": listed(held.toolsets),
        "iccids": listed(held.iccids),
        "account_ids": listed(held.account_ids),
        "calls_per_day": held.calls_per_day,
    }


def listed(values: tuple[T, ...] | None) -> list[T] | None:
    """As JSON has it."""
    return None if values is None else list(values)


def wanted(asked: KeyRestrictions | None) -> Restrictions:
    """What was asked for."""
    if asked is None:
        return UNRESTRICTED
    return Restrictions(
        read_only=asked.read_only,
        toolsets=None if asked.toolsets is None else tuple(asked.toolsets),
        iccids=None if asked.iccids is None else tuple(asked.iccids),
        account_ids=None if asked.account_ids is None else tuple(asked.account_ids),
        calls_per_day=asked.calls_per_day,
    )


def effective(asked: KeyRestrictions | None, maker: Caller, toolsets: Iterable[str]) -> Restrictions:
    """What a new key is held to: what was asked for, and what its maker is held to.

    Choice: asking by name for what the maker lacks is refused; a key that silently could do less than it was made for would fail later,
    and elsewhere. What is not asked for is inherited.
    """
    own, outer = wanted(asked), maker.restrictions
    require_known(own.toolsets, tuple(toolsets))
    held_toolsets = None if outer.toolsets is not None and EVERY_TOOL in outer.toolsets else outer.toolsets
    require_part("toolsets", own.toolsets, held_toolsets)
    require_part("iccids", own.iccids, outer.iccids)
    require_part("account_ids", own.account_ids, outer.account_ids)
    if own.calls_per_day is not None and outer.calls_per_day is not None and own.calls_per_day > outer.calls_per_day:
        raise beyond("calls_per_day", str(own.calls_per_day), f"{outer.calls_per_day} a day")
    both = own.within(outer)
    return both if outer.calls_per_day is None else replace(both, counted_as=maker.counter)


def require_known(names: tuple[str, ...] | None, known: tuple[str, ...]) -> None:
    """Refuse toolsets that there are not."""
    unknown = [name for name in names or () if name not in known]
    if unknown:
        raise BadRequest(
            f"{FIELD}.toolsets: got {', '.join(name[:40] for name in unknown[:5])}; there is no such toolset",
            param=f"{FIELD}.toolsets",
            hint=f"Known are {', '.join(known)}",
        )


def require_part(member: str, asked: tuple[T, ...] | None, held: tuple[T, ...] | None) -> None:
    """Refuse what is not among what the maker is restricted to."""
    if asked is None or held is None:
        return
    more = [name for name in asked if name not in held]
    if more:
        raise beyond(member, ", ".join(str(name) for name in more[:5]), ", ".join(str(name) for name in held[:5]))


def beyond(member: str, asked: str, held: str) -> Restricted:
    """A key can do no more than its maker."""
    name = f"{FIELD}.{member}"
    return Restricted(
        f"{name}: got {asked}; the credential you make the key with is restricted to {held}, and a key can do no more than its maker",
        param=name,
        hint=f"Leave {name} out to give the key what you have, ask for a part of it, or make the key with another credential",
    )
