"""`reseller events tail` and `reseller trigger`: follow an organisation's events, each once and in order, and make one happen."""

import asyncio
import re
import sys
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Annotated, NamedTuple, cast

import anyio
import orjson
import typer

from clients.webhooks.sender import retry_after_seconds
from operations.event_types.catalogue import PROMISED_TYPES
from operations.ledger.intents import Intent
from operations.ledger.webhooks import Event
from operations.plans import Plan
from registry.call import Reply
from registry.clock import Clock, SystemClock, rfc3339_utc
from transports.cli.log_tail import LogOptions, follow_log
from transports.cli.render import refusal_body, reply_header
from transports.cli.target import (
    CallTarget,
    KeyOption,
    LocalDataOption,
    OrgOption,
    TargetOptions,
    UrlOption,
    at_target,
    fresh_key,
    open_target,
    require_success,
)
from transports.cli.terminal import Failure, Unreachable, table_cell, text_for, to_stderr, warn_of_argument

# An event's id is made before its transaction commits, so one may appear below others that were seen: so far down is looked.
LATE_EVENT_SECONDS = 5.0
REMEMBERED = 50_000


class EventPage(NamedTuple):
    """Events, newest first, and whether there are older ones."""

    events: Sequence[Event]
    more: bool


class EventLog:
    """Remembers what was seen. A reading that fails half-way is made again from its beginning, and nothing is lost by it."""

    def __init__(self, page: Callable[[str | None], Awaitable[EventPage]], clock: Clock) -> None:
        self._page, self._clock = page, clock
        self._seen = set[str]()
        self._floor = ""  # this id and those before it are old
        self._last_news = float("-inf")

    async def begin(self, last: int | None, matches: Callable[[Event], bool]) -> list[Event]:
        """The newest `last` of the wanted events so far, oldest first; all of them for None. `news` continues from here."""
        found: list[Event] = []
        page = await self._page(None)
        found += page.events
        while page.more and (last is None or sum(map(matches, found)) < last):
            page = await self._page(found[-1]["id"])
            found += page.events
        self._floor = found[-1]["id"] if page.more else ""
        self._seen.update(event["id"] for event in found)
        chosen = [event for event in found if matches(event)]
        return list(reversed(chosen if last is None else chosen[:last]))

    async def news(self) -> list[Event]:
        """The events since the last call. Reads on until a page has nothing new, and far enough back for late ones."""
        page = await self._page(None)
        newest = page.events[0]["created"] if page.events else 0
        found = fresh = self._fresh(page)
        while page.more and page.events[-1]["id"] > self._floor and (fresh or self._may_be_late(newest - page.events[-1]["created"])):
            page = await self._page(page.events[-1]["id"])
            fresh = self._fresh(page)
            found = found + fresh
        self._remember(found)
        return sorted(found, key=lambda event: event["id"])

    def _fresh(self, page: EventPage) -> list[Event]:
        return [event for event in page.events if event["id"] > self._floor and event["id"] not in self._seen]

    def _may_be_late(self, depth: float) -> bool:
        return depth <= LATE_EVENT_SECONDS and self._clock.monotonic() - self._last_news <= LATE_EVENT_SECONDS

    def _remember(self, found: Sequence[Event]) -> None:
        if not found:
            return
        self._last_news = self._clock.monotonic()
        self._seen.update(event["id"] for event in found)
        if len(self._seen) > REMEMBERED:
            old = sorted(self._seen)[: REMEMBERED // 2]
            self._floor = max(self._floor, old[-1])
            self._seen.difference_update(old)


IntentOption = Annotated[str | None, typer.Option("--intent", help="Only events of this intent, cni_...")]
TypesOption = Annotated[list[str] | None, typer.Option("--type", help="Only events of this type; may be given several times.")]
GlobsOption = Annotated[
    str | None,
    typer.Option("--types", help="Types of the log, such as 'order.*,esim.issued'; not with --type or --intent."),
]
LastOption = Annotated[int, typer.Option("--last", min=0, max=100_000, help="Begin with the newest N that are there already.")]
EveryOption = Annotated[
    float, typer.Option("--every", min=0.2, max=3600, help="Seconds between two looks; each takes a call of the daily quota.")
]
CountOption = Annotated[int | None, typer.Option("--count", min=1, help="End after N events.")]
KNOWN_EVENT_TYPES = PROMISED_TYPES
EVENT_PAGE_SIZE = 20  # the most that one look gets
CALLS_LEFT = re.compile(r";r=([0-9]+);t=([0-9]+)")
WORKING_DAY_SECONDS = 8 * 3600


@dataclass(frozen=True, slots=True)
class FollowOptions:
    """Which events, and how often to look. `last` None: from the first one on."""

    intent: str | None = None
    types: frozenset[str] = frozenset()
    last: int | None = 0
    every: float = 1.0
    count: int | None = None

    def wants(self, event: Event) -> bool:
        """Whether the event is of a type that was asked for; the server has chosen by intent."""
        return not self.types or event["type"] in self.types


def chosen_types(given: list[str] | None) -> frozenset[str]:
    """The types. Raises Failure, which names all types, for an unknown one."""
    unknown = [type for type in given or [] if type not in KNOWN_EVENT_TYPES]
    if unknown:
        raise Failure(f"--type {unknown[0]}: no such type; there are {', '.join(KNOWN_EVENT_TYPES)}")
    return frozenset(given or [])


def until_interrupted(work: Coroutine[object, object, None]) -> None:
    """Runs `work` to its end, or until Ctrl-C, which is the normal way to end it."""
    with suppress(KeyboardInterrupt):
        asyncio.run(work)


async def follow_events(where: TargetOptions, following: FollowOptions, take: Callable[[Event], Awaitable[None]]) -> None:
    """Hands every wanted event to `take`, in order, until the count is reached."""
    clock, count = SystemClock(), 0
    async with open_target(where) as target:
        reader = EventReader(target, following, clock)
        log = EventLog(reader.page, clock)
        batch = await log.begin(following.last, following.wants)
        to_stderr(f"following the events of {target.name}; Ctrl-C ends")
        while True:
            for event in filter(following.wants, batch):
                await take(event)
                count += 1
                if count == following.count:
                    return
            await anyio.sleep(following.every)
            batch = await log.news()


class EventReader:
    """Reads pages of the list, and waits where the other side is away or asks to wait."""

    def __init__(self, target: CallTarget, following: FollowOptions, clock: Clock) -> None:
        self._target, self._following, self._clock = target, following, clock
        self._answered, self._trouble = False, ""

    async def page(self, after: str | None) -> EventPage:
        """One page, however long it takes. Raises Failure for a refusal that waiting does not cure."""
        arguments = {"limit": EVENT_PAGE_SIZE, "starting_after": after, "intent": self._following.intent}
        given: dict[str, object] = {name: value for name, value in arguments.items() if value is not None}
        while True:
            try:
                reply = await self._target.ask("list_connectivity_events", given)
            except Unreachable:
                if not self._answered:
                    raise
                await self._wait(f"{self._target.name} does not answer", max(1.0, self._following.every))
                continue
            if reply.status == 200:
                self._well(reply)
                return event_page(reply, self._target.name)
            await self._wait_as_told(reply)

    async def _wait_as_told(self, reply: Reply) -> None:
        """Waits as long as a refusal asks for; raises Failure for other refusals."""
        if reply.status != 429 and not (self._answered and reply.status >= 500):
            require_success(reply, "reseller events tail")
            raise Failure(f"--url: {self._target.name} answers {reply.status}; is this the service's address?")
        seconds = retry_after_seconds(reply_header(reply, "retry-after"), self._clock.now()) or max(1.0, self._following.every)
        await self._wait(f"{reply.status} {refusal_body(reply).get('code', '')}".strip(), max(1.0, seconds))

    async def _wait(self, trouble: str, seconds: float) -> None:
        """Waits; says why once for each kind of trouble, not with every try."""
        if trouble != self._trouble:
            until = f" (at {rfc3339_utc(self._clock.now() + seconds)})" if seconds >= 60 else ""
            to_stderr(f"{trouble}; nothing is lost, the next try is in {seconds:g} s{until}")
        self._trouble = trouble
        await anyio.sleep(seconds)

    def _well(self, reply: Reply) -> None:
        if self._trouble:
            to_stderr(f"{self._target.name} answers again")
        if not self._answered:
            warn_of_quota(reply, self._following.every)
        self._answered, self._trouble = True, ""


def warn_of_quota(reply: Reply, every: float) -> None:
    """Says how long today's calls will last, if that is not long."""
    found = CALLS_LEFT.search(reply_header(reply, "ratelimit") or "")
    lasting = int(found[1]) * every if found else float("inf")
    if found and lasting < min(int(found[2]), WORKING_DAY_SECONDS):
        to_stderr(f"each look takes one of the {found[1]} calls that are left today: {lasting / 60:.0f} minutes; --every 30 lasts longer")


def event_page(reply: Reply, where: str) -> EventPage:
    try:
        answer = cast("dict[str, object]", orjson.loads(reply.body))
        events = cast("list[Event]", answer["data"])
        for event in events:
            if not (event["id"] and event["type"] and event["created"] >= 0 and "intent" in event["data"]):
                raise ValueError
        return EventPage(events, answer["has_more"] is True)
    except (ValueError, LookupError, TypeError):
        raise Failure(f"--url: what {where} answers is no list of events; is this the service's address?", exit_code=3) from None


events_app = typer.Typer(no_args_is_help=True, help="Follow what happens.")
SHOWN_FIRST = ("intent", "iccid", "plan")


@events_app.command("tail")
@at_target
def tail_events(
    where: TargetOptions,
    from_start: Annotated[bool, typer.Option("--from-start", help="Begin with the first event there is; 20 events take a call.")] = False,
    last: LastOption = 0,
    intent: IntentOption = None,
    type: TypesOption = None,
    types: GlobsOption = None,
    every: EveryOption = 1.0,
    count: CountOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line on a terminal too.")] = False,
) -> None:
    """Print events as they happen: a line each on a terminal, JSON lines in a pipe. Ctrl-C ends.

    None is missed and none comes twice, also when the server is restarted meanwhile or asks to wait. Without --types they are the events
    of intents; `reseller call list_event_types` shows all others.
    """
    if from_start and last:
        raise Failure("--last: is contained in --from-start; leave one of them out")
    if types is not None and (type or intent):
        raise Failure(f"--types: {'--type' if type else '--intent'} chooses among the events of intents; leave one of the two out")
    following = FollowOptions(intent, chosen_types(type), None if from_start else last, every, count)
    for_programs = as_json or not sys.stdout.isatty()

    async def take(event: Event) -> None:
        print_event(event, for_programs=for_programs)

    if types is None:
        until_interrupted(follow_events(where, following, take))
    else:
        chosen = tuple(each.strip() for each in types.split(","))
        until_interrupted(follow_log(where, LogOptions(chosen, following.last, every, count), take))


def print_event(event: Event, *, for_programs: bool) -> None:
    """Prints the event as one line and flushes, since a pipe's reader waits for it."""
    sys.stdout.write(text_for(sys.stdout, orjson.dumps(event).decode() if for_programs else event_line(event)) + "\n")
    sys.stdout.flush()


def event_line(event: Event) -> str:
    """Time, type and subject; then the other members of the event."""
    about = event["data"]
    first = [about.get(name) or "-" for name in SHOWN_FIRST if name in about]
    rest = [f"{name}={table_cell(value)}" for name, value in about.items() if name not in SHOWN_FIRST and value is not None]
    return "  ".join([rfc3339_utc(event["created"]), table_cell(event["type"]).ljust(23), *map(table_cell, first), *rest])


TRIGGER_PLAN = "test_global_1gb"


class TriggerEvent(StrEnum):
    """What can be made to happen."""

    ISSUED = "esim.issued"
    ATTACHED = "esim.first_attach"
    THRESHOLD = "usage.threshold_reached"


class TriggerPercent(Enum):
    """Thresholds of a plan's data, as words of the command line."""

    HALF = "50"
    MOST = "80"
    ALL = "100"


@dataclass(frozen=True, slots=True)
class TriggerOptions:
    """What is to happen, and to which intent; without one, to a new one."""

    event: TriggerEvent
    intent: str | None
    percent: int
    internal_key: str | None


def trigger(
    event: Annotated[TriggerEvent, typer.Argument(help="The event to make happen.")],
    intent: Annotated[str | None, typer.Option("--intent", help="On this test intent, cni_...; without it, on a new one.")] = None,
    percent: Annotated[
        TriggerPercent, typer.Option("--percent", help="usage.threshold_reached: how much of the plan is used.")
    ] = TriggerPercent.HALF,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line on a terminal too.")] = False,
    url: UrlOption = None,
    key: KeyOption = None,
    internal_key: Annotated[
        str | None,
        typer.Option(
            "--internal-key",
            envvar="SERVICE_INTERNAL_API_KEY",
            callback=warn_of_argument,
            help="esim.first_attach with --url: the bridge's key.",
        ),
    ] = None,
    org: OrgOption = None,
    data: LocalDataOption = None,
) -> None:
    """Make an event really happen on a test eSIM, so that webhooks go out, and print what came of it.

    Nothing is faked: a test intent is created, the bridge's observation recorded or usage reported, as it is in earnest. Live
    intents are refused.
    """
    options = TriggerOptions(event, intent, int(percent.value), internal_key)
    events = asyncio.run(make_happen(TargetOptions(url, key, org, data), options))
    if not events:
        raise Failure(
            f"no event came of it: {intent} had its {event} before, and each comes once; leave --intent out for a new one", exit_code=1
        )
    for made in events:
        print_event(made, for_programs=as_json or not sys.stdout.isatty())


async def make_happen(where: TargetOptions, options: TriggerOptions) -> list[Event]:
    if options.event is TriggerEvent.ISSUED and options.intent is not None:
        raise Failure("--intent: esim.issued is about a new intent; leave the option out")
    if options.event is TriggerEvent.ATTACHED and where.url and not options.internal_key:
        raise Failure(
            "--internal-key: esim.first_attach is observed by the network bridge, which has a key of its own; "
            "give the server's SERVICE_INTERNAL_API_KEY"
        )
    async with open_target(where) as target:
        intent, plan, iccid = require_test_esim(await trigger_intent(target, options))
        before = set[str]() if options.intent is None else {event["id"] for event in await events_of_intent(target, intent)}
        if options.event is TriggerEvent.ATTACHED:
            await attach_network(target, iccid, plan, options.internal_key)
        elif options.event is TriggerEvent.THRESHOLD:
            await use_data(target, intent, plan, options.percent)
        events = [event for event in await events_of_intent(target, intent) if event["id"] not in before]
        return sorted(events, key=lambda event: event["id"])


async def trigger_intent(target: CallTarget, options: TriggerOptions) -> Intent:
    """The intent that was named, or a new one."""
    if options.intent is not None:
        return cast(Intent, trigger_answer(await target.ask("get_connectivity_intent", {"id": options.intent})))
    return cast(
        Intent,
        trigger_answer(await target.ask("create_connectivity_intent", {"plan": TRIGGER_PLAN}, idempotency_key=fresh_key("trigger-"))),
    )


def require_test_esim(intent: Intent) -> tuple[str, Plan, str]:
    """Intent id, plan and ICCID of a test eSIM. Raises Failure for a live one, or one without an eSIM."""
    if intent["livemode"]:
        raise Failure(
            f"{intent['id']} is live: a trigger is a test and touches no real SIM; leave --intent out for a test intent", exit_code=1
        )
    if intent["esim"] is None or intent["plan"] is None:
        raise Failure(f"{intent['id']} has no eSIM yet ({intent['status']}); choose its plan with confirm_connectivity_intent", exit_code=1)
    return intent["id"], intent["plan"], intent["esim"]["iccid"]


async def attach_network(target: CallTarget, iccid: str, plan: Plan, internal_key: str | None) -> None:
    """Reports, as the bridge would, that the SIM joined a network in the first country of its plan."""
    seen = {"bridge_type": "network.attach", "iccid": iccid, "data": {"country": plan["countries"][0]}}
    reply = await target.ask("observe_connectivity_event", seen, credential=internal_key)
    if reply.status == 401:
        raise Failure(f"--internal-key: {target.name} does not accept it; it is the server's SERVICE_INTERNAL_API_KEY", exit_code=1)
    trigger_answer(reply)


async def use_data(target: CallTarget, intent: str, plan: Plan, percent: int) -> None:
    """Reports `percent` of the plan's data as used."""
    if plan["data_mb"] <= 0:
        raise Failure(f"{intent}: its plan is unlimited, so there is no threshold to reach", exit_code=1)
    record = {"intent": intent, "quantity_mb": plan["data_mb"] * percent / 100}
    trigger_answer(await target.ask("create_connectivity_usage_record", record, idempotency_key=fresh_key("trigger-")))


async def events_of_intent(target: CallTarget, intent: str) -> list[Event]:
    """All events of an intent: at most five of a test intent, since each occurs once."""
    return cast("list[Event]", trigger_answer(await target.ask("list_connectivity_events", {"intent": intent}))["data"])


def trigger_answer(reply: Reply) -> Mapping[str, object]:
    """The answer's object. Raises Failure for a refusal."""
    return orjson.loads(require_success(reply, "reseller trigger").body)
