"""Events of lines of the fleet."""

from collections.abc import Iterable

from typing_extensions import TypedDict

from operations.event_types.declaration import EventType, new_event
from registry.clock import rfc3339_utc
from registry.ids import Ids
from storage.event_log import LogEntry
from storage.fleet_line_news import AccountNews, CountryNews, EndingNews, LineNews, ProblemNews, StatusNews


class ChangedStatus(TypedDict):
    """`before`, `after`: ACTIVE, INACTIVE, SUSPENDED, PENDING, DISCONNECTED, END_OF_LIFE or UNKNOWN."""

    iccid: str
    before: str
    after: str


class EnteredLineCountry(TypedDict):
    """`country` is ISO 3166-1 alpha-2."""

    iccid: str
    country: str


class OpenedProblem(TypedDict):
    """`problem` is a cause as `fleet_problems` names it; it holds since `since`, RFC 3339."""

    iccid: str
    problem: str
    since: str


class EndingLinePackage(TypedDict):
    """`ends` is RFC 3339. `package_id` is what operations on packages take, `template_id` the template it was made of."""

    iccid: str
    package_id: int
    template_id: int
    ends: str


class UsedLinePackage(TypedDict):
    """`threshold_percent` is 50, 80 or 100 of `limit_bytes`, the data of the package; `used_bytes` of them are used."""

    iccid: str
    package_id: int
    template_id: int
    threshold_percent: int
    used_bytes: int
    limit_bytes: int


class ChangedAccount(TypedDict):
    """The ids of two accounts of the organisation."""

    iccid: str
    account_before: int
    account_after: int


LINE_STATUS_CHANGED = EventType(
    "line.status_changed",
    "A line got another status, whoever gave it.",
    ChangedStatus,
    {"iccid": "8988303700000100286", "before": "ACTIVE", "after": "SUSPENDED"},
    read_with="get_subscriber",
    line="iccid",
)

LINE_ENTERED_COUNTRY = EventType(
    "line.entered_country",
    "A line was seen in a network of another country than before.",
    EnteredLineCountry,
    {"iccid": "8988303700000100286", "country": "FR"},
    read_with="get_subscriber",
    line="iccid",
)

LINE_PROBLEM_OPENED = EventType(
    "line.problem_opened",
    "A problem of a line was found that it did not have before.",
    OpenedProblem,
    {"iccid": "8988303700000100286", "problem": "exhausted", "since": "2027-01-14T21:03:11Z"},
    read_with="diagnose_subscriber",
    line="iccid",
)

LINE_PROBLEM_CLOSED = EventType(
    "line.problem_closed",
    "A problem that a line had is over, or another problem explains it.",
    OpenedProblem,
    {"iccid": "8988303700000100286", "problem": "exhausted", "since": "2027-01-14T21:03:11Z"},
    read_with="diagnose_subscriber",
    line="iccid",
)

LINE_PACKAGE_ENDING = EventType(
    "line.package_ending",
    "The last package of a line that can still be used ends within three days, and no series makes another one.",
    EndingLinePackage,
    {"iccid": "8988303700000100286", "package_id": 5512, "template_id": 55010, "ends": "2027-01-18T09:00:00Z"},
    read_with="get_subscriber",
    line="iccid",
)

LINE_PACKAGE_USED = EventType(
    "line.package_used",
    "A package of a line without an intent has used 50, 80 or 100 percent of its data.",
    UsedLinePackage,
    {
        "iccid": "8988303700000100286",
        "package_id": 5512,
        "template_id": 55010,
        "threshold_percent": 80,
        "used_bytes": 858993459,
        "limit_bytes": 1073741824,
    },
    read_with="get_subscriber",
    line="iccid",
)

LINE_MOVED = EventType(
    "line.moved",
    "A line was moved from one account of the organisation to another.",
    ChangedAccount,
    {"iccid": "8988303700000100286", "account_before": 8101, "account_after": 8102},
    read_with="get_subscriber",
    line="iccid",
)


def line_events(news: Iterable[LineNews], *, ids: Ids, now: float) -> list[LogEntry]:
    """The events of what is new of lines, in its order. `now`: Unix seconds."""
    return [line_event(each, ids, now) for each in news]


def line_event(news: LineNews, ids: Ids, now: float) -> LogEntry:
    iccid, organisation = news.iccid, news.organisation
    if isinstance(news, StatusNews):
        status: ChangedStatus = {"iccid": iccid, "before": news.before, "after": news.after}
        return new_event(LINE_STATUS_CHANGED, status, organisation=organisation, ids=ids, now=now)
    if isinstance(news, AccountNews):
        accounts: ChangedAccount = {"iccid": iccid, "account_before": news.before, "account_after": news.after}
        return new_event(LINE_MOVED, accounts, organisation=organisation, ids=ids, now=now)
    if isinstance(news, CountryNews):
        entered: EnteredLineCountry = {"iccid": iccid, "country": news.country}
        return new_event(LINE_ENTERED_COUNTRY, entered, organisation=organisation, ids=ids, now=now)
    if isinstance(news, ProblemNews):
        problem: OpenedProblem = {"iccid": iccid, "problem": news.cause, "since": rfc3339_utc(news.since)}
        kind = LINE_PROBLEM_CLOSED if news.closed else LINE_PROBLEM_OPENED
        return new_event(kind, problem, organisation=organisation, ids=ids, now=now)
    if isinstance(news, EndingNews):
        ending: EndingLinePackage = {
            "iccid": iccid,
            "package_id": news.package_id,
            "template_id": news.template_id,
            "ends": rfc3339_utc(news.ends),
        }
        return new_event(LINE_PACKAGE_ENDING, ending, organisation=organisation, ids=ids, now=now)
    used: UsedLinePackage = {
        "iccid": iccid,
        "package_id": news.package_id,
        "template_id": news.template_id,
        "threshold_percent": news.percent,
        "used_bytes": news.used,
        "limit_bytes": news.limit,
    }
    return new_event(LINE_PACKAGE_USED, used, organisation=organisation, ids=ids, now=now)
