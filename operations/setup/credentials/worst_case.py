"""The most that a credential can do in a UTC day, worked out from its restrictions and from what operations declare.

Choice: what a person approves counts too. A call that waits for an approval is made under the same limits.
"""

from collections.abc import Iterable, Sequence
from typing import Annotated, NamedTuple

from pydantic import Field
from typing_extensions import TypedDict

from operations.setup.credentials.restrictions import ShownAmount
from registry.caller import Approval, Caller, Money, Restrictions, SpendLimits
from registry.catalogue import AnyOperation, Catalogue
from registry.operation import FINAL_FIELD, Auth, Scope, SpendKind
from registry.restrictions import is_shown_to, names_one_line
from registry.spending import shown_money

NAMED_OPERATIONS = 3


class IrreversibleAct(TypedDict):
    """An operation that no later call undoes. `times`: how often in a UTC day; null: as often as it is called."""

    operation: str
    times: int | None
    approval: Annotated[bool, Field(description="Each waits for a person's approval")]


class WorstCase(TypedDict):
    """The most that a credential can do in a UTC day; null: without an end of its own. Midnight is that of the moment a call began."""

    sentence: str
    calls: Annotated[int | None, Field(description="Null: the quota of the organisation")]
    lines: Annotated[int | None, Field(description="Lines that leave the stock")]
    money_a_day: Annotated[ShownAmount | None, Field(description="Amount 0: no money at all")]
    money_a_month: ShownAmount | None
    cannot_be_undone: list[IrreversibleAct]
    waits_for_approval: Annotated[list[str], Field(description="Operations of which every call waits for a person")]
    finite: Annotated[bool, Field(description="Nothing above is null")]


class CallCounts(NamedTuple):
    """How often a UTC day a credential may make which calls."""

    calls: int | None
    times: dict[str, int]

    def of(self, operation: AnyOperation) -> int | None:
        """Calls of one operation, None where nothing ends them."""
        named = self.times.get(operation.id)
        if not operation.charged or self.calls is None:
            return named
        return self.calls if named is None else min(named, self.calls)

    def together(self, operations: Sequence[AnyOperation]) -> int | None:
        """Calls of all these operations together, None where nothing ends them."""
        each = [self.of(operation) for operation in operations]
        if any(count is None for count in each):
            return None
        total = sum(count for count in each if count is not None)
        limited = self.calls is not None and all(operation.charged for operation in operations)
        return min(total, self.calls) if limited and self.calls is not None else total


def worst_case(catalogue: Catalogue, caller: Caller) -> WorstCase:
    """The worst case of `caller`: a credential with its scopes and restrictions."""
    held = caller.restrictions
    counts = CallCounts(held.calls_per_day, least_times(held.limits))
    writes = [each for each in callable_operations(catalogue, caller) if not each.read_only and counts.of(each) != 0]
    spending = [each for each in writes if not isinstance(each.spends, SpendKind) and each.spends is not None]
    open_ended = [each for each in writes if each.spends is None or each.spends is SpendKind.OPEN]
    limited = any(each.of_money for each in held.limits)
    unknown = bool(open_ended) and not limited  # where money is limited, a person decides about each of them
    day = None if unknown else most_money(held.limits, counts.together(spending), ("per_day", "per_month"))
    month = None if unknown else most_money(held.limits, None if spending else 0, ("per_month",))
    if month is None and day is not None:
        month = Money(day.amount * 31, day.currency)
    lines = most_lines(writes, counts, held)
    acts: list[IrreversibleAct] = [
        {"operation": each.id, "times": counts.of(each), "approval": final_waits(each, held)} for each in writes if may_be_final(each)
    ]
    return {
        "sentence": worst_sentence(held.calls_per_day, lines, day, acts) + sentence_of_waiting(writes, acts, held),
        "calls": held.calls_per_day,
        "lines": lines,
        "money_a_day": shown_amount(day),
        "money_a_month": shown_amount(month),
        "cannot_be_undone": acts,
        "waits_for_approval": [each.id for each in writes if always_waits(each, held)],
        "finite": None not in (held.calls_per_day, lines, day, month) and all(act["times"] is not None for act in acts),
    }


def callable_operations(catalogue: Catalogue, caller: Caller) -> list[AnyOperation]:
    """What the credential may call, whatever the input."""
    inside = catalogue.operations_in(caller.restrictions.toolsets or ())
    auths = (Auth.BEARER,) if caller.kind == "key" else (Auth.BEARER, Auth.SESSION)
    return [
        each
        for each in catalogue.operations.values()
        if each.auth in auths and is_shown_to(each, caller, inside) and not Scope(each.scope) & ~caller.scopes
    ]


def least_times(limits: Iterable[SpendLimits]) -> dict[str, int]:
    """For each operation that any of `limits` names, the fewest calls a day."""
    found: dict[str, int] = {}
    for each in limits:
        for name, calls in each.times:
            found[name] = min(calls, found.get(name, calls))
    return found


def most_money(limits: Sequence[SpendLimits], calls: int | None, periods: Sequence[str]) -> Money | None:
    """The most that `calls` calls make due in the shortest of `periods`; None where nothing ends it."""
    of_money = [each for each in limits if each.of_money]
    currencies = {amount.currency for each in of_money for amount in (each.per_call, each.per_day, each.per_month) if amount is not None}
    currency = min(currencies, default="EUR")
    if calls == 0 or len(currencies) > 1:  # what is in one currency is refused by the limit in the other
        return Money(0, currency)
    ends = [amount.amount for each in of_money for name in periods if (amount := getattr(each, name)) is not None]
    per_call = [each.per_call.amount for each in of_money if each.per_call is not None]
    if calls is not None and per_call:
        ends.append(calls * min(per_call))
    if 0 in per_call:
        ends.append(0)
    return Money(min(ends), currency) if ends else None


def most_lines(writes: Sequence[AnyOperation], counts: CallCounts, held: Restrictions) -> int | None:
    """How many lines may leave the stock: one a call, and each of the lines that the credential is restricted to once."""
    drawing = [each for each in writes if each.draws]
    named = [each for each in drawing if held.iccids is not None and names_one_line(each)]
    free = counts.together([each for each in drawing if each not in named])
    bound = counts.together(named)
    if named and held.iccids is not None:
        bound = len(held.iccids) if bound is None else min(bound, len(held.iccids))
    if free is None or bound is None:
        return None
    return free + bound if held.calls_per_day is None else min(free + bound, held.calls_per_day)


def may_be_final(operation: AnyOperation) -> bool:
    """Whether some call of `operation` cannot be undone."""
    return operation.irreversible or FINAL_FIELD in operation.params.model_fields


def final_waits(operation: AnyOperation, held: Restrictions) -> bool:
    """Whether every call of `operation` that cannot be undone waits for a person's approval."""
    return always_waits(operation, held) or (operation.approvable and held.approval is Approval.IRREVERSIBLE)


def always_waits(operation: AnyOperation, held: Restrictions) -> bool:
    """Whether every call of `operation` waits for a person's approval."""
    if not operation.approvable:
        return False
    if held.approval is Approval.EVERY_WRITE:
        return True
    if held.approval is Approval.IRREVERSIBLE and (operation.irreversible or operation.confirmable):
        return True
    open_ended = operation.spends is None or operation.spends is SpendKind.OPEN
    return open_ended and any(each.of_money or each.approve_above is not None for each in held.limits)


def shown_amount(money: Money | None) -> ShownAmount | None:
    return None if money is None else {"amount": money.amount, "currency": money.currency}


def worst_sentence(calls: int | None, lines: int | None, day: Money | None, acts: Sequence[IrreversibleAct]) -> str:
    """The worst case in one sentence for people."""
    parts = [
        "as many calls as your organisation's quota" if calls is None else f"{calls} calls",
        "lines without an end" if lines is None else f"{lines} line{'' if lines == 1 else 's'}",
        "money without an end" if day is None else shown_money(day),
    ]
    names = ", ".join(act["operation"] for act in acts[:NAMED_OPERATIONS]) + (" and others" if len(acts) > NAMED_OPERATIONS else "")
    kinds = "no operation that cannot be undone" if not acts else f"{len(acts)} operations that cannot be undone: {names}"
    return f"In a UTC day at most {', '.join(parts)}; {kinds}"


def sentence_of_waiting(writes: Iterable[AnyOperation], acts: Sequence[IrreversibleAct], held: Restrictions) -> str:
    """What of the worst case a person has to approve first, as the end of its sentence."""
    asking = [each for each in writes if each.approvable]
    if asking and all(always_waits(each, held) for each in asking):
        return "; each call that changes something waits for a person's approval"
    if acts and all(act["approval"] for act in acts):
        return "; what cannot be undone waits for a person's approval"
    return ""
