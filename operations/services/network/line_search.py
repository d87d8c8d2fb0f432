"""Finding lines: what a search term means, and whose lines it may find."""

import re
from collections.abc import Callable, Iterable
from typing import Literal, NamedTuple

from clients.ocs.failure import OcsNotFound
from clients.ocs.wire.subscriber import Subscriber
from operations.services.network.fleet import INVALID_REQUEST, Fleet, lines_of
from operations.services.network.reached import Upstream
from registry.errors import OcsError

By = Literal["iccidPrefix", "imsiPrefix", "msisdnPrefix", "activationCode", "text"]
ICCID_PART = re.compile(r"89[0-9]{4,20}", re.ASCII)
IMSI = re.compile(r"[0-9]{15}", re.ASCII)
MSISDN_PART = re.compile(r"[0-9]{6,15}", re.ASCII)
LAST_DIGITS = re.compile(r"[0-9]{2,5}", re.ASCII)
COLUMNS: dict[By, Callable[[Subscriber], Iterable[str]]] = {
    "iccidPrefix": lambda row: (past.get("iccid", "") for past in row.get("imsiList", [])),
    "imsiPrefix": lambda row: (past.get("imsi", "") for past in row.get("imsiList", [])),
    "msisdnPrefix": lambda row: (past.get("phoneNumber", "") for past in row.get("phoneNumberList", [])),
}


class Term(NamedTuple):
    """What is looked for, and where."""

    by: By
    value: str


class Reach(NamedTuple):
    """Whose lines a search may find: those of one account, or all that the token sees."""

    upstream: Upstream
    account: int | None
    """The one whose lines may be found; None: any."""
    default: int | None
    """The one that is listed where the network cannot search; None: the caller has no account."""


def term_of(q: str) -> Term:
    """A number by its form (api.md 4.2), anything else is part of a name or e-mail address, or the end of a number."""
    if ICCID_PART.fullmatch(q):
        return Term("iccidPrefix", q)
    if IMSI.fullmatch(q):
        return Term("imsiPrefix", q)
    if MSISDN_PART.fullmatch(q):
        return Term("msisdnPrefix", q)
    return Term("text", q.strip().casefold())


async def found_lines(scope: Reach, term: Term | None) -> Fleet:
    """The lines that match; none of anybody else."""
    if term is None or term.by == "text":
        fleet = await lines_of(scope.upstream, [] if scope.default is None else [scope.default])
        rows = fleet.rows if term is None else [row for row in fleet.rows if matches(row, term)]
        return Fleet(rows, fleet.incomplete)
    return await numbered_lines(scope, term)


async def numbered_lines(scope: Reach, term: Term) -> Fleet:
    """The network's own search. Where it refuses the term as too short, or cuts its answer off, accounts are read and searched here."""
    found = await network_search(scope, term)
    if found.whole or term.by == "activationCode":
        return Fleet(found.rows, not found.whole)
    accounts = [scope.account] if scope.account is not None else [row.get("id", 0) for row in await scope.upstream.accounts()]
    fleet = await lines_of(scope.upstream, accounts)
    seen = {row.get("subscriberId"): row for row in found.rows}
    seen |= {row.get("subscriberId"): row for row in fleet.rows if begins_so(row, term)}
    return Fleet(list(seen.values()), fleet.incomplete)


class NetworkSearch(NamedTuple):
    """What the network's own search finds, and whether that is all."""

    rows: list[Subscriber]
    whole: bool


async def network_search(scope: Reach, term: Term) -> NetworkSearch:
    """Lines by a number, those of anybody else left out; none of a term that the network takes for too short."""
    assert term.by != "text"
    try:
        answer = await scope.upstream.ocs.subscriber.list_subscriber(term.value, by=term.by)
    except OcsNotFound:
        return NetworkSearch([], True)
    except OcsError as refusal:
        if refusal.ocs_code != INVALID_REQUEST or term.by == "activationCode":
            raise
        return NetworkSearch([], False)
    return NetworkSearch(own(scope, answer.get("subscriberList", [])), not answer.get("hasMore"))


def begins_so(row: Subscriber, term: Term) -> bool:
    """Whether a number of the line begins with the term."""
    return any(value.startswith(term.value) for value in COLUMNS[term.by](row))


def own(scope: Reach, rows: list[Subscriber]) -> list[Subscriber]:
    """A search sees the whole reseller: strangers are dropped without a word."""
    return rows if scope.account is None else [row for row in rows if row.get("accountId") == scope.account]


def matches(row: Subscriber, term: Term) -> bool:
    """Whether a number begins with the term; a text is a part of the line's name or address, or the end of its ICCID or number."""
    return named(row, term.value) or ends(row, term.value) if term.by == "text" else begins_so(row, term)


def ends(row: Subscriber, digits: str) -> bool:
    """Whether an ICCID or a number ends so: people read the last digits of a SIM."""
    if not LAST_DIGITS.fullmatch(digits):
        return False
    return any(value.endswith(digits) for column in ("iccidPrefix", "msisdnPrefix") for value in COLUMNS[column](row))


def named(row: Subscriber, text: str) -> bool:
    """Whether name or e-mail address hold the text."""
    return text in row.get("subscriberName", "").casefold() or text in row.get("email", "").casefold()
