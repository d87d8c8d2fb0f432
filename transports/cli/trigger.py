"""`reseller trigger`: make an event happen on a test intent, by the operations that make it happen in earnest."""

import asyncio
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Annotated, cast

import orjson
import typer

from operations.connectivity.shapes import Intent, Plan
from operations.services.webhooks.event_body import Event
from registry.call import Reply
from registry.clock import SystemClock
from registry.ids import SystemIds
from transports.cli.door import Data, Door, Key, Org, Url, Where, accepted, open_door
from transports.cli.events import print_event
from transports.cli.failure import Failure
from transports.cli.secret_option import warn_of_argument

PLAN = "test_global_1gb"


class Happening(StrEnum):
    """What can be made to happen."""

    ISSUED = "esim.issued"
    ATTACHED = "esim.first_attach"
    THRESHOLD = "usage.threshold_reached"


class Percent(Enum):
    """Thresholds of a plan's data, as words of the command line."""

    HALF = "50"
    MOST = "80"
    ALL = "100"


@dataclass(frozen=True, slots=True)
class Trigger:
    """What is to happen, and to which intent; without one, to a new one."""

    event: Happening
    intent: str | None
    percent: int
    internal_key: str | None


def trigger(
    event: Annotated[Happening, typer.Argument(help="The event to make happen.")],
    intent: Annotated[str | None, typer.Option("--intent", help="On this test intent, cni_...; without it, on a new one.")] = None,
    percent: Annotated[Percent, typer.Option("--percent", help="usage.threshold_reached: how much of the plan is used.")] = Percent.HALF,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line on a terminal too.")] = False,
    url: Url = None,
    key: Key = None,
    internal_key: Annotated[
        str | None,
        typer.Option(
            "--internal-key",
            envvar="SERVICE_INTERNAL_API_KEY",
            callback=warn_of_argument,
            help="esim.first_attach with --url: the bridge's key.",
        ),
    ] = None,
    org: Org = None,
    data: Data = None,
) -> None:
    """Make an event really happen on a test eSIM, so that webhooks go out, and print what came of it.

    Nothing is faked: a test intent is created, the bridge's observation recorded or usage reported, as it is in earnest. Live
    intents are refused.
    """
    wanted = Trigger(event, intent, int(percent.value), internal_key)
    came = asyncio.run(happen(Where(url, key, org, data), wanted))
    if not came:
        raise Failure(
            f"no event came of it: {intent} had its {event} before, and each comes once; leave --intent out for a new one", exit_code=1
        )
    for one in came:
        print_event(one, for_programs=as_json or not sys.stdout.isatty())


async def happen(where: Where, wanted: Trigger) -> list[Event]:
    """The events that came of it, oldest first."""
    if wanted.event is Happening.ISSUED and wanted.intent is not None:
        raise Failure("--intent: esim.issued is about a new intent; leave the option out")
    if wanted.event is Happening.ATTACHED and where.url and not wanted.internal_key:
        raise Failure(
            "--internal-key: esim.first_attach is observed by the network bridge, which has a key of its own; "
            "give the server's SERVICE_INTERNAL_API_KEY"
        )
    async with open_door(where) as door:
        intent, plan, iccid = test_esim(await the_intent(door, wanted))
        before = set[str]() if wanted.intent is None else {event["id"] for event in await events_of(door, intent)}
        if wanted.event is Happening.ATTACHED:
            await attach(door, iccid, plan, wanted.internal_key)
        elif wanted.event is Happening.THRESHOLD:
            await use(door, intent, plan, wanted.percent)
        came = [event for event in await events_of(door, intent) if event["id"] not in before]
        return sorted(came, key=lambda event: event["id"])


async def the_intent(door: Door, wanted: Trigger) -> Intent:
    """The one that was named, or a new one."""
    if wanted.intent is not None:
        return cast(Intent, answer(await door.ask("get_connectivity_intent", {"id": wanted.intent})))
    return cast(Intent, answer(await door.ask("create_connectivity_intent", {"plan": PLAN}, idempotency_key=new_key())))


def test_esim(intent: Intent) -> tuple[str, Plan, str]:
    """Intent, plan and ICCID of a test eSIM; real ones are for real networks to speak of."""
    if intent["livemode"]:
        raise Failure(
            f"{intent['id']} is live: a trigger is a test and touches no real SIM; leave --intent out for a test intent", exit_code=1
        )
    if intent["esim"] is None or intent["plan"] is None:
        raise Failure(f"{intent['id']} has no eSIM yet ({intent['status']}); choose its plan with confirm_connectivity_intent", exit_code=1)
    return intent["id"], intent["plan"], intent["esim"]["iccid"]


async def attach(door: Door, iccid: str, plan: Plan, internal_key: str | None) -> None:
    """The SIM joins a network in the first country of its plan, as the bridge would tell it."""
    seen = {"bridge_type": "network.attach", "iccid": iccid, "data": {"country": plan["countries"][0]}}
    reply = await door.ask("observe_connectivity_event", seen, credential=internal_key)
    if reply.status == 401:
        raise Failure(f"--internal-key: {door.name} does not accept it; it is the server's SERVICE_INTERNAL_API_KEY", exit_code=1)
    answer(reply)


async def use(door: Door, intent: str, plan: Plan, percent: int) -> None:
    """Report a part of the plan's data as used."""
    if plan["data_mb"] <= 0:
        raise Failure(f"{intent}: its plan is unlimited, so there is no threshold to reach", exit_code=1)
    record = {"intent": intent, "quantity_mb": plan["data_mb"] * percent / 100}
    answer(await door.ask("create_connectivity_usage_record", record, idempotency_key=new_key()))


async def events_of(door: Door, intent: str) -> list[Event]:
    """All of an intent: at most five of a test intent, since each comes once."""
    return cast("list[Event]", answer(await door.ask("list_connectivity_events", {"intent": intent}))["data"])


def answer(reply: Reply) -> Mapping[str, object]:
    """The answer's object, or its refusal as a failure."""
    return orjson.loads(accepted(reply, "reseller trigger").body)


def new_key() -> str:
    """Every trigger is a call of its own."""
    return SystemIds(SystemClock()).new("trigger-")
