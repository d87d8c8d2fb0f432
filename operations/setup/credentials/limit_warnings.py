"""What of a new key's restrictions has no effect, or another one than it seems: told to its maker, and never refused."""

from collections.abc import Iterable, Iterator
from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from operations.deps import Deps
from registry.caller import Approval, Caller, Money, Restrictions, SpendLimits
from registry.spending import shown_money
from storage.line_tags import iccids_with_tag

AMOUNT_NAMES = ("spend_per_call", "spend_per_day", "spend_per_month")
"""From the shortest to the longest: what the shorter one lets through, the longer one has to let through, too."""


class KeyWarning(TypedDict):
    """Something to look at before the key is used. `code` for programs, `message` for people."""

    code: Annotated[
        Literal["no_money_passes", "limit_without_effect", "every_amount_waits", "tag_without_lines"],
        Field(description="no_money_passes: limits in several currencies; every_amount_waits: the free amount is in another currency"),
    ]
    message: str


async def warnings_of_new_key(deps: Deps, maker: Caller, held: Restrictions) -> list[KeyWarning]:
    """What to tell the maker of a key that is held to `held`."""
    return [*limit_warnings(held), *[tag_without_lines(tag) for tag in await tags_without_lines(deps, maker, held)]]


async def tags_without_lines(deps: Deps, maker: Caller, held: Restrictions) -> list[str]:
    """Those of the key's tags that no line of the organisation has now."""
    read = deps.store.read
    return [tag for tag in held.tags or () if not await read(iccids_with_tag, organisation=maker.organisation, tag=tag, most=1)]


def tag_without_lines(tag: str) -> KeyWarning:
    text = f"No line has the tag {tag} now: the key may do nothing by it until an admin gives it to lines (tag_lines)"
    return {"code": "tag_without_lines", "message": text}


def limit_warnings(held: Restrictions) -> list[KeyWarning]:
    """Limits of which one makes another meaningless; those of keys that this one was made with count as well."""
    amounts = [(name, amount) for limits in held.limits for name, amount in zip(AMOUNT_NAMES, amounts_of(limits), strict=True)]
    given = [(name, amount) for name, amount in amounts if amount is not None]
    currencies = sorted({amount.currency for _, amount in given})
    found = [no_money_passes(currencies)] if len(currencies) > 1 else [*wider_amounts(given)]
    return [*found, *free_amount_warnings(held, given), *times_warnings(held), *approver_warnings(held)]


def amounts_of(limits: SpendLimits) -> tuple[Money | None, Money | None, Money | None]:
    return limits.per_call, limits.per_day, limits.per_month


def no_money_passes(currencies: Iterable[str]) -> KeyWarning:
    named = " and ".join(currencies)
    text = f"The limits of money are in {named}: what is due in one is refused by the limit in the other, so no money passes"
    return {"code": "no_money_passes", "message": text}


def wider_amounts(given: list[tuple[str, Money]]) -> Iterator[KeyWarning]:
    """Limits that are above one that counts for a longer time, or above the same one of a key that this one was made with."""
    for place, name in enumerate(AMOUNT_NAMES):
        own = next((amount for word, amount in given if word == name), None)
        ends = [(word, amount) for word, amount in given if word in AMOUNT_NAMES[place:] and own is not None and amount.amount < own.amount]
        if own is not None and ends:
            word, least = min(ends, key=lambda each: each[1].amount)
            whose = f"{word} of a key that this one was made with" if word == name else word
            text = f"{name}, {shown_money(own)}, has no effect: {whose} is {shown_money(least)}"
            yield {"code": "limit_without_effect", "message": text}


def free_amount_warnings(held: Restrictions, given: list[tuple[str, Money]]) -> Iterator[KeyWarning]:
    """Of `approve_above`, beside the other limits."""
    for free in [each.approve_above for each in held.limits if each.approve_above is not None]:
        others = [(word, amount) for word, amount in given if amount.currency != free.currency]
        least = min([amount for _, amount in given if amount.currency == free.currency], key=lambda amount: amount.amount, default=None)
        if held.approval is Approval.EVERY_WRITE:
            text = f"approve_above, {shown_money(free)}, has no effect: with approval every_write all waits that changes something"
            yield {"code": "limit_without_effect", "message": text}
        elif others:
            text = (
                f"approve_above is in {free.currency}, and {others[0][0]} in {others[0][1].currency}: every call that makes money due waits"
            )
            yield {"code": "every_amount_waits", "message": text}
        elif least is not None and least.amount <= free.amount:
            text = f"approve_above, {shown_money(free)}, never asks for an amount: no call may make more than {shown_money(least)} due"
            yield {"code": "limit_without_effect", "message": text}


def times_warnings(held: Restrictions) -> Iterator[KeyWarning]:
    """Of counts by operation that are above all calls of a day."""
    most = held.calls_per_day
    for name, calls in [each for limits in held.limits for each in limits.times]:
        if most is not None and calls > most:
            yield {"code": "limit_without_effect", "message": f"times of {name}, {calls}, has no effect: calls_per_day is {most}"}


def approver_warnings(held: Restrictions) -> Iterator[KeyWarning]:
    """Of `another_person` where no call waits."""
    asks = held.approval is not Approval.NONE or any(each.of_money or each.approve_above is not None for each in held.limits)
    if held.another_person and not asks:
        yield {"code": "limit_without_effect", "message": "another_person has no effect: no call of the key waits for an approval"}
