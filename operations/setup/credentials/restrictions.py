"""What a credential may not do although its maker may: how it is asked for, shown and inherited."""

from collections.abc import Container, Iterable
from dataclasses import replace
from typing import Annotated, Literal, TypeVar

from pydantic import AfterValidator, FailFast, Field, JsonValue
from typing_extensions import TypedDict

from operations.vocabulary import Currency, Iccid, LineTag, UpstreamId
from registry.caller import EVERY_TOOL, UNRESTRICTED, Approval, Caller, Money, Restrictions, SpendLimits
from registry.errors import BadRequest, Restricted
from registry.input_bounds import MaxEntries
from registry.operation import Input

RestrictedTo = TypeVar("RestrictedTo", str, int)
_MOST_RESTRICTION_ENTRIES = 100
_MOST_KEY_CALLS = 1_000_000
_RESTRICTIONS_FIELD = "restrictions"
_RESTRICTION_LIST_SCHEMA: dict[str, JsonValue] = {"minItems": 1, "maxItems": _MOST_RESTRICTION_ENTRIES}


def _distinct_entries(values: list[RestrictedTo]) -> list[RestrictedTo]:
    """Each once, in the order given; a list that allows nothing is a mistake."""
    if not values:
        raise ValueError("an empty list would allow nothing; leave it out for no such restriction")
    if len(values) > _MOST_RESTRICTION_ENTRIES:
        raise ValueError(f"must hold at most {_MOST_RESTRICTION_ENTRIES} entries")
    return list(dict.fromkeys(values))


_RestrictionList = Annotated[
    list[RestrictedTo] | None,
    FailFast(),  # five lists of a hundred wrong entries would be five hundred errors
    MaxEntries(_MOST_RESTRICTION_ENTRIES),
    AfterValidator(lambda values: values if values is None else _distinct_entries(values)),
    Field(json_schema_extra=_RESTRICTION_LIST_SCHEMA),
]


_MOST_CALLS_OF_OPERATION = 100_000
_MOST_AMOUNT = 1_000_000_000_00


class SpendLimit(Input):
    """An amount of money in a fixed currency: a call that makes another currency due is refused."""

    amount: Annotated[int, Field(ge=0, le=_MOST_AMOUNT, description="In minor units of the currency: 4000 are 40.00 euros.")]
    currency: Annotated[Currency, Field(description="ISO 4217.")]


class KeyRestrictions(Input):
    """What the key may not do although its maker may. Every member only takes away; without any the key does what its maker does."""

    read_only: Annotated[bool, Field(description="Only what changes nothing.")] = False
    toolsets: Annotated[_RestrictionList[str], Field(description="Only operations of these toolsets, 1-100.")] = None
    iccids: Annotated[_RestrictionList[Iccid], Field(description="Only operations on one line, and only these lines, 1-100.")] = None
    account_ids: Annotated[
        _RestrictionList[UpstreamId], Field(description="Only operations on a line or an account, of these accounts, 1-100.")
    ] = None
    calls_per_day: Annotated[
        int | None, Field(ge=1, le=_MOST_KEY_CALLS, description="Calls per UTC day, 1-1000000, within your organisation's quota.")
    ] = None
    tags: Annotated[_RestrictionList[LineTag], Field(description="Only operations on one line that has one of these tags, 1-100.")] = None
    spend_per_call: Annotated[SpendLimit | None, Field(description="What one call makes due, at most.")] = None
    spend_per_day: Annotated[SpendLimit | None, Field(description="What calls of a UTC day make due together, at most.")] = None
    spend_per_month: Annotated[SpendLimit | None, Field(description="What calls of a UTC month make due together, at most.")] = None
    times: Annotated[
        dict[str, Annotated[int, Field(ge=0, le=_MOST_CALLS_OF_OPERATION)]] | None,
        MaxEntries(_MOST_RESTRICTION_ENTRIES),
        Field(
            min_length=1,
            max_length=_MOST_RESTRICTION_ENTRIES,
            description='Operations with how often each may be called in a UTC day, 0-100000: {"create_connectivity_intent": 10}.',
        ),
    ] = None
    approve_above: Annotated[SpendLimit | None, Field(description="A call that makes more due than this waits for an approval.")] = None
    approval: Annotated[
        Literal["none", "irreversible", "every_write"],
        Field(description="Which calls wait until a person approves them on a page of the service."),
    ] = "none"
    another_person: Annotated[bool, Field(description="Somebody else than whoever made the key has to approve.")] = False


class ShownAmount(TypedDict):
    """An amount in minor units of its currency."""

    amount: int
    currency: str


class InheritedLimits(TypedDict):
    """Limits of a key that this one was made with: `key` and all that were made with it are counted together."""

    key: str
    spend_per_call: ShownAmount | None
    spend_per_day: ShownAmount | None
    spend_per_month: ShownAmount | None
    times: dict[str, int] | None
    approve_above: ShownAmount | None


class ShownRestrictions(TypedDict):
    """What a key may not do although its maker may; null: not restricted in this respect."""

    read_only: bool
    no_admin: bool
    toolsets: list[str] | None
    iccids: list[str] | None
    account_ids: list[int] | None
    calls_per_day: int | None
    tags: list[str] | None
    spend_per_call: ShownAmount | None
    spend_per_day: ShownAmount | None
    spend_per_month: ShownAmount | None
    times: dict[str, int] | None
    approve_above: ShownAmount | None
    approval: Literal["none", "irreversible", "every_write"]
    another_person: bool
    inherited: Annotated[list[InheritedLimits], Field(description="Limits of the keys that it was made with, which hold beside its own")]


def shown_restrictions(held: Restrictions) -> ShownRestrictions | None:
    if held == UNRESTRICTED:
        return None
    own = next((each for each in held.limits if not each.counted_as), SpendLimits())
    return {
        "read_only": held.read_only,
        "no_admin": held.no_admin,
        "toolsets": _restriction_list(held.toolsets),
        "iccids": _restriction_list(held.iccids),
        "account_ids": _restriction_list(held.account_ids),
        "calls_per_day": held.calls_per_day,
        "tags": _restriction_list(held.tags),
        **_shown_limits(own),
        "approval": held.approval.value,
        "another_person": held.another_person,
        "inherited": [{"key": each.counted_as, **_shown_limits(each)} for each in held.limits if each.counted_as],
    }


class _ShownLimits(TypedDict):
    spend_per_call: ShownAmount | None
    spend_per_day: ShownAmount | None
    spend_per_month: ShownAmount | None
    times: dict[str, int] | None
    approve_above: ShownAmount | None


def _shown_limits(limits: SpendLimits) -> _ShownLimits:
    return {
        "spend_per_call": _shown_amount(limits.per_call),
        "spend_per_day": _shown_amount(limits.per_day),
        "spend_per_month": _shown_amount(limits.per_month),
        "times": dict(limits.times) or None,
        "approve_above": _shown_amount(limits.approve_above),
    }


def _shown_amount(money: Money | None) -> ShownAmount | None:
    return None if money is None else {"amount": money.amount, "currency": money.currency}


def _restriction_list(values: tuple[RestrictedTo, ...] | None) -> list[RestrictedTo] | None:
    return None if values is None else list(values)


def _requested_restrictions(asked: KeyRestrictions | None) -> Restrictions:
    if asked is None:
        return UNRESTRICTED
    return Restrictions(
        read_only=asked.read_only,
        toolsets=None if asked.toolsets is None else tuple(asked.toolsets),
        iccids=None if asked.iccids is None else tuple(asked.iccids),
        account_ids=None if asked.account_ids is None else tuple(asked.account_ids),
        calls_per_day=asked.calls_per_day,
        tags=None if asked.tags is None else tuple(asked.tags),
        limits=_requested_limits(asked),
        approval=Approval(asked.approval),
        another_person=asked.another_person,
    )


def _requested_limits(asked: KeyRestrictions) -> tuple[SpendLimits, ...]:
    own = SpendLimits(
        per_call=_amount_of(asked.spend_per_call),
        per_day=_amount_of(asked.spend_per_day),
        per_month=_amount_of(asked.spend_per_month),
        times=tuple(sorted((asked.times or {}).items())),
        approve_above=_amount_of(asked.approve_above),
    )
    return () if own == SpendLimits() else (own,)


def _amount_of(limit: SpendLimit | None) -> Money | None:
    return None if limit is None else Money(limit.amount, limit.currency)


def effective_restrictions(
    asked: KeyRestrictions | None, maker: Caller, toolsets: Iterable[str], operations: Container[str]
) -> Restrictions:
    """What a new key is held to: what was asked for, and what its maker is held to.

    Choice: asking by name for what the maker lacks is refused; a key that silently could do less than it was made for would fail later,
    and elsewhere. What is not asked for is inherited.
    """
    own, outer = _requested_restrictions(asked), maker.restrictions
    _require_known_toolsets(own.toolsets, tuple(toolsets))
    _require_known_operations(own.limits, operations)
    held_toolsets = None if outer.toolsets is not None and EVERY_TOOL in outer.toolsets else outer.toolsets
    _require_part_of_makers("toolsets", own.toolsets, held_toolsets)
    _require_part_of_makers("iccids", own.iccids, outer.iccids)
    _require_part_of_makers("account_ids", own.account_ids, outer.account_ids)
    _require_part_of_makers("tags", own.tags, outer.tags)
    if own.calls_per_day is not None and outer.calls_per_day is not None and own.calls_per_day > outer.calls_per_day:
        raise _more_than_maker("calls_per_day", str(own.calls_per_day), f"{outer.calls_per_day} a day")
    both = own.within(replace(outer, limits=tuple(limits.counted_by(maker.key_id) for limits in outer.limits)))
    return both if outer.calls_per_day is None else replace(both, counted_as=maker.counter)


def _require_known_toolsets(names: tuple[str, ...] | None, known: tuple[str, ...]) -> None:
    unknown = [name for name in names or () if name not in known]
    if unknown:
        raise BadRequest(
            f"{_RESTRICTIONS_FIELD}.toolsets: got {', '.join(name[:40] for name in unknown[:5])}; there is no such toolset",
            param=f"{_RESTRICTIONS_FIELD}.toolsets",
            hint=f"Known are {', '.join(known)}",
        )


def _require_known_operations(limits: tuple[SpendLimits, ...], operations: Container[str]) -> None:
    unknown = [name for each in limits for name, _ in each.times if name not in operations]
    if unknown:
        raise BadRequest(
            f"{_RESTRICTIONS_FIELD}.times: got {', '.join(name[:40] for name in unknown[:5])}; there is no such operation",
            param=f"{_RESTRICTIONS_FIELD}.times",
            hint="Name operations as the reference and tools/list do, for example create_connectivity_intent",
        )


def _require_part_of_makers(member: str, asked: tuple[RestrictedTo, ...] | None, held: tuple[RestrictedTo, ...] | None) -> None:
    if asked is None or held is None:
        return
    more = [name for name in asked if name not in held]
    if more:
        raise _more_than_maker(member, ", ".join(str(name) for name in more[:5]), ", ".join(str(name) for name in held[:5]))


def _more_than_maker(member: str, asked: str, held: str) -> Restricted:
    name = f"{_RESTRICTIONS_FIELD}.{member}"
    return Restricted(
        f"{name}: got {asked}; the credential you make the key with is restricted to {held}, and a key can do no more than its maker",
        param=name,
        hint=f"Leave {name} out to give the key what you have, ask for a part of it, or make the key with another credential",
    )
