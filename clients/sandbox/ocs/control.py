"""The control API: what a test, or a person who plays, does to the network beside its wire."""

from collections.abc import Awaitable, Callable
from typing import TypeAlias, cast
from urllib.parse import parse_qs

import orjson

from clients.sandbox.ocs.control_actions import attach, networks, provider_status, push_targets, pushes, use
from clients.sandbox.ocs.desk import Answer, Desk
from clients.sandbox.ocs.entities import DAY, Refused
from clients.sandbox.ocs.faults import read_fault
from clients.sandbox.ocs.moments import read_moment, stamp
from clients.sandbox.ocs.params import INVALID_REQUEST, LONGEST_DAYS, Fields, integer, refuse, text
from clients.sandbox.ocs.wire import Members

Query: TypeAlias = dict[str, str]
Action: TypeAlias = Callable[[Desk, Query, object], Awaitable[object] | object]
PAGE = 100


async def control(desk: Desk, method: str, path: str, query: str, body: bytes) -> Answer:
    """One request to the control API; refusals say what to do instead."""
    name = path.removeprefix("/control").strip("/")
    action = ACTIONS.get((method, name))
    if action is None:
        return unknown(method, name)
    try:
        value: object = orjson.loads(body or b"{}")
        found = action(desk, {key: values[0] for key, values in parse_qs(query).items()}, value)
        answer = await cast(Awaitable[object], found) if isinstance(found, Awaitable) else found
    except orjson.JSONDecodeError:
        return error(400, INVALID_REQUEST, "the body is not JSON")
    except Refused as refused:
        return error(400 if refused.code == INVALID_REQUEST else 409, refused.code, refused.message)
    return Answer(200, orjson.dumps(answer))


def error(status: int, code: int, message: str) -> Answer:
    """A refusal with the network's own code, where it has one."""
    return Answer(status, orjson.dumps({"error": {"code": code, "message": message}}))


def unknown(method: str, name: str) -> Answer:
    """What there is instead."""
    methods = [verb for verb, known in ACTIONS if known == name]
    if methods:
        return error(405, 1, f"/control/{name} takes {' and '.join(methods)}, not {method}")
    return error(404, 1, f"no /control/{name}; there are: {'; '.join(PATHS)}")


def index(_desk: Desk, _query: Query, _value: object) -> object:
    """What there is."""
    return {"paths": PATHS}


def state(desk: Desk, _query: Query, _value: object) -> object:
    """The world in numbers."""
    world = desk.world
    return {
        **clock_of(desk),
        "seed": world.seed,
        "clock": "follow" if desk.pace.following else "frozen",
        "accounts": [{"id": account.id, "name": account.name, "resellerId": account.reseller_id} for account in world.accounts.values()],
        "lines": len(world.lines),
        "packages": len(world.packages),
        "series": len(world.series),
        "templates": len(world.templates),
        "zones": len(world.zones),
        "networks": len(world.networks),
        "calls": desk.answered,
        "faults": len(desk.faults.queue),
        "pushesWaiting": len(desk.underway) + len(world.pushes),
        "pushesSent": len(desk.deliveries),
    }


def clock_of(desk: Desk) -> Members:
    """Simulated time, for people and for programs."""
    return {"now": stamp(desk.world.now), "unix": desk.world.now}


async def set_clock(desk: Desk, _query: Query, value: object) -> object:
    """Run the world to a moment; time does not go back."""
    fields = Fields(value, "body")
    moment = fields.need("now", moment_or_unix)
    fields.done()
    if moment < desk.world.now:
        raise refuse(f"body.now lies before the simulated time {stamp(desk.world.now)}; the clock only runs forward")
    return await move(desk, moment)


def moment_or_unix(value: object, path: str) -> int:
    """Unix seconds, or a date and time in UTC."""
    found = integer(value, path) if type(value) is int else read_moment(text(value, path))
    if found is None or not 0 <= found < 7_258_118_400:
        raise refuse(f"{path} must be Unix seconds or look like 2026-01-31T12:00:00")
    return found


async def advance(desk: Desk, _query: Query, value: object) -> object:
    """Run the world for a time."""
    fields = Fields(value, "body")
    seconds, days = fields.maybe("seconds", integer), fields.maybe("days", integer)
    fields.done()
    way = (seconds or 0) + (days or 0) * DAY
    if (seconds is None) == (days is None) or way > LONGEST_DAYS * DAY:
        raise refuse('give {"seconds": n} or {"days": n}, at most a hundred years')
    return await move(desk, desk.world.now + way)


async def move(desk: Desk, moment: int) -> object:
    """Run there, and go on from there."""
    await desk.run_to(moment)
    desk.pace.settle(desk.world.now)
    return clock_of(desk)


def list_faults(desk: Desk, _query: Query, _value: object) -> object:
    """The faults that wait."""
    return {"faults": [fault.as_json() for fault in desk.faults.queue]}


def add_faults(desk: Desk, query: Query, value: object) -> object:
    """One fault or an array of them; all or none are taken."""
    values = cast(list[object], value) if isinstance(value, list) else [value]
    for fault in [read_fault(one) for one in values]:
        desk.faults.add(fault)
    return list_faults(desk, query, None)


def clear_faults(desk: Desk, query: Query, value: object) -> object:
    """No more faults."""
    desk.faults.clear()
    return list_faults(desk, query, value)


def calls(desk: Desk, query: Query, _value: object) -> object:
    """The newest calls, oldest first; by method, and as many as are asked for."""
    method, limit = query.get("method"), query.get("limit", str(PAGE))
    if not limit.isdecimal():
        raise refuse("limit must be a number")
    rows = [call for call in desk.calls if method in (None, call.method)]
    shown = rows[-int(limit) :] if int(limit) else []
    return {"calls": [{**call._asdict(), "at": stamp(call.at)} for call in shown], "total": len(rows)}


ACTIONS: dict[tuple[str, str], Action] = {
    ("GET", ""): index,
    ("GET", "state"): state,
    ("POST", "clock"): set_clock,
    ("POST", "advance"): advance,
    ("GET", "faults"): list_faults,
    ("POST", "faults"): add_faults,
    ("DELETE", "faults"): clear_faults,
    ("POST", "usage"): use,
    ("POST", "attach"): attach,
    ("POST", "provider-status"): provider_status,
    ("POST", "push-targets"): push_targets,
    ("GET", "pushes"): pushes,
    ("GET", "calls"): calls,
    ("GET", "networks"): networks,
}
PATHS = [f"{method} /control/{name}".rstrip("/") for method, name in ACTIONS]
