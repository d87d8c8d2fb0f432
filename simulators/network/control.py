"""The control API: what a test, or a person who tries things out, does to the network beside its wire."""

from collections.abc import Awaitable, Callable
from typing import TypeAlias, cast
from urllib.parse import parse_qs

import orjson

from simulators.network import charging
from simulators.network.entities import DAY_SECONDS, INVALID_REQUEST, NOT_FOUND, Line, NetworkRefusal, PushTarget
from simulators.network.faults import read_network_fault
from simulators.network.methods.zones import operator_view
from simulators.network.named_records import find_record
from simulators.network.radio import attach_to_network
from simulators.network.wire import (
    DAYS_LIMIT,
    RequestFields,
    WireMembers,
    drop_empty,
    invalid_request,
    parse_wire_moment,
    read_digits,
    read_integer,
    read_positive,
    read_text,
    wire_euro,
    wire_moment,
)
from simulators.network.world import World
from simulators.network.world_runtime import WorldRuntime
from simulators.server import WireAnswer

ControlQuery: TypeAlias = dict[str, str]
ControlAction: TypeAlias = Callable[[WorldRuntime, ControlQuery, object], Awaitable[object] | object]
CALL_LIST_LIMIT = 100
USAGE_TYPES_TEXT = "33 data (bytes), 1 and 15 calls (seconds), 21 and 22 messages, 40 and 41 calls over IP (seconds)"


async def control_network(runtime: WorldRuntime, method: str, path: str, query: str, body: bytes) -> WireAnswer:
    """One request to the control API; refusals say what to do instead."""
    name = path.removeprefix("/control").strip("/")
    action = CONTROL_ACTIONS.get((method, name))
    if action is None:
        methods = [verb for verb, known in CONTROL_ACTIONS if known == name]
        if methods:
            return control_error(405, 1, f"/control/{name} takes {' and '.join(methods)}, not {method}")
        return control_error(404, 1, f"no /control/{name}; there are: {'; '.join(NETWORK_CONTROL_PATHS)}")
    try:
        value: object = orjson.loads(body or b"{}")
        found = action(runtime, {key: values[0] for key, values in parse_qs(query).items()}, value)
        answer = await cast(Awaitable[object], found) if isinstance(found, Awaitable) else found
    except orjson.JSONDecodeError:
        return control_error(400, INVALID_REQUEST, "the body is not JSON")
    except NetworkRefusal as refused:
        return control_error(400 if refused.code == INVALID_REQUEST else 409, refused.code, refused.message)
    return WireAnswer(200, orjson.dumps(answer))


def control_error(status: int, code: int, message: str) -> WireAnswer:
    return WireAnswer(status, orjson.dumps({"error": {"code": code, "message": message}}))


def _list_control_paths(_runtime: WorldRuntime, _query: ControlQuery, _value: object) -> object:
    return {"paths": NETWORK_CONTROL_PATHS}


def _network_state(runtime: WorldRuntime, _query: ControlQuery, _value: object) -> object:
    world = runtime.world
    return {
        **_network_clock_view(runtime),
        "seed": world.seed,
        "clock": "follow" if runtime.clock.following else "frozen",
        "accounts": [{"id": account.id, "name": account.name, "resellerId": account.reseller_id} for account in world.accounts.values()],
        "lines": len(world.lines),
        "packages": len(world.packages),
        "series": len(world.series),
        "templates": len(world.templates),
        "zones": len(world.zones),
        "networks": len(world.networks),
        "calls": runtime.answered,
        "faults": len(runtime.faults.queue),
        "pushesWaiting": len(runtime.underway) + len(world.pushes),
        "pushesSent": len(runtime.deliveries),
    }


def _network_clock_view(runtime: WorldRuntime) -> WireMembers:
    return {"now": wire_moment(runtime.world.now), "unix": runtime.world.now}


async def set_network_clock(runtime: WorldRuntime, _query: ControlQuery, value: object) -> object:
    """Run the world to a moment; time does not go back."""
    fields = RequestFields(value, "body")
    moment = fields.need("now", read_clock_moment)
    fields.done()
    if moment < runtime.world.now:
        raise invalid_request(f"body.now lies before the simulated time {wire_moment(runtime.world.now)}; the clock only runs forward")
    return await _move_network_clock(runtime, moment)


def read_clock_moment(value: object, path: str) -> int:
    """Unix seconds, or a date and time in UTC."""
    found = read_integer(value, path) if type(value) is int else parse_wire_moment(read_text(value, path))
    if found is None or not 0 <= found < 7_258_118_400:
        raise invalid_request(f"{path} must be Unix seconds or look like 2026-01-31T12:00:00")
    return found


async def _advance_network_clock(runtime: WorldRuntime, _query: ControlQuery, value: object) -> object:
    fields = RequestFields(value, "body")
    seconds, days = fields.maybe("seconds", read_integer), fields.maybe("days", read_integer)
    fields.done()
    distance = (seconds or 0) + (days or 0) * DAY_SECONDS
    if (seconds is None) == (days is None) or distance > DAYS_LIMIT * DAY_SECONDS:
        raise invalid_request('give {"seconds": n} or {"days": n}, at most a hundred years')
    return await _move_network_clock(runtime, runtime.world.now + distance)


async def _move_network_clock(runtime: WorldRuntime, moment: int) -> object:
    await runtime.run_to(moment)
    runtime.clock.restart_from(runtime.world.now)
    return _network_clock_view(runtime)


def _list_network_faults(runtime: WorldRuntime, _query: ControlQuery, _value: object) -> object:
    return {"faults": [fault.as_json() for fault in runtime.faults.queue]}


def add_network_faults(runtime: WorldRuntime, query: ControlQuery, value: object) -> object:
    """One fault or an array of them; all or none are taken."""
    values = cast(list[object], value) if isinstance(value, list) else [value]
    for fault in [read_network_fault(one) for one in values]:
        runtime.faults.add(fault)
    return _list_network_faults(runtime, query, None)


def _clear_network_faults(runtime: WorldRuntime, query: ControlQuery, value: object) -> object:
    runtime.faults.clear()
    return _list_network_faults(runtime, query, value)


def list_network_calls(runtime: WorldRuntime, query: ControlQuery, _value: object) -> object:
    """The newest calls, oldest first; by method, and as many as are asked for."""
    method, limit = query.get("method"), query.get("limit", str(CALL_LIST_LIMIT))
    if not limit.isdecimal():
        raise invalid_request("limit must be a number")
    rows = [call for call in runtime.calls if method in (None, call.method)]
    shown = rows[-int(limit) :] if int(limit) else []
    return {"calls": [{**call._asdict(), "at": wire_moment(call.at)} for call in shown], "total": len(rows)}


def _line_by_iccid(world: World, iccid: str) -> Line:
    line = world.lookup.line(world.lines, "iccid", iccid)
    if line is None:
        raise NetworkRefusal(NOT_FOUND, f"no line has the ICCID {iccid}")
    return line


def use_line_service(runtime: WorldRuntime, _query: dict[str, str], value: object) -> object:
    """Let a line use something; the answer is its call records."""
    fields = RequestFields(value, "body")
    iccid, network_id = fields.need("iccid", read_digits), fields.need("networkId", read_integer)
    usage_type, quantity = fields.need("usageType", _read_usage_type), fields.need("quantity", read_positive)
    other_party = fields.maybe("otherParty", read_digits)
    fields.done()
    world = runtime.world
    find_record(world.networks, network_id, "network")
    records = charging.use_service(
        world, _line_by_iccid(world, iccid), usage_type, quantity, network_id=network_id, other_party=other_party
    )
    return {
        "records": [
            drop_empty(
                {
                    "at": wire_moment(record.at),
                    "usageType": record.usage_type,
                    "quantity": record.quantity,
                    "inPackage": record.in_package,
                    "packageId": record.package_id,
                    "resellerCost": wire_euro(record.reseller_cost),
                    "subscriberCost": wire_euro(record.subscriber_cost),
                }
            )
            for record in records
        ]
    }


def _read_usage_type(value: object, path: str) -> int:
    if value not in charging.USAGE_TYPES:
        raise invalid_request(f"{path} must be one of {USAGE_TYPES_TEXT}")
    return read_integer(value, path)


def _attach_line(runtime: WorldRuntime, _query: dict[str, str], value: object) -> object:
    fields = RequestFields(value, "body")
    iccid, network_id = fields.need("iccid", read_digits), fields.need("networkId", read_integer)
    fields.done()
    network, line = find_record(runtime.world.networks, network_id, "network"), _line_by_iccid(runtime.world, iccid)
    attach_to_network(runtime.world, line, network.network_id, runtime.world.now)
    return {"subscriberId": line.id, "network": operator_view(runtime.world, network)}


def set_provider_status(runtime: WorldRuntime, _query: dict[str, str], value: object) -> object:
    """Sets the status of a profile, and notifies the reseller."""
    fields = RequestFields(value, "body")
    iccid, status = fields.need("iccid", read_digits), fields.need("status", read_text)
    profile_type = fields.maybe("profileType", read_text) or "P1"
    fields.done()
    line = _line_by_iccid(runtime.world, iccid)
    runtime.world.add_provider_status(line, status, profile_type)
    return {"simId": line.sim.id, "status": status}


def set_push_targets(runtime: WorldRuntime, _query: dict[str, str], value: object) -> object:
    """Where a reseller's notifications go; what is left out stays, an empty string ends one."""
    fields = RequestFields(value, "body")
    number = fields.need("resellerId", read_integer)
    usage_url, esim_url = fields.maybe("usageUrl", read_push_url), fields.maybe("esimUrl", read_push_url)
    location_url, marks = fields.maybe("locationUrl", read_push_url), fields.maybe("thresholds", read_percents)
    fields.done()
    reseller = find_record(runtime.world.resellers, number, "reseller")
    target = reseller.push
    reseller.push = PushTarget(
        target.usage_url if usage_url is None else usage_url,
        target.esim_url if esim_url is None else esim_url,
        target.location_url if location_url is None else location_url,
        target.thresholds if marks is None else marks,
    )
    urls = {"usageUrl": reseller.push.usage_url, "esimUrl": reseller.push.esim_url, "locationUrl": reseller.push.location_url}
    return {"resellerId": number, **urls, "thresholds": list(reseller.push.thresholds)}


def read_push_url(value: object, path: str) -> str:
    """An address, or an empty text, which ends the notifications."""
    if value == "":
        return ""
    found = read_text(value, path)
    if not found.startswith(("http://", "https://")):
        raise invalid_request(f"{path} must begin with http:// or https://, or be empty")
    return found


def read_percents(value: object, path: str) -> tuple[int, ...]:
    """Percentages of a package, ascending, at which the reseller is notified."""
    if not isinstance(value, list):
        raise invalid_request(f"{path} must be an array of percentages")
    found = sorted({read_positive(item, path) for item in cast(list[object], value)})
    if found and found[-1] > 100:
        raise invalid_request(f"{path} must be percentages from 1 to 100")
    return tuple(found)


def list_pushes(runtime: WorldRuntime, _query: dict[str, str], _value: object) -> object:
    """Notifications that wait, and those that were sent; status 0: nobody answered."""
    waiting = [{"at": wire_moment(push.at), "url": push.url, "body": push.body} for push in (*runtime.underway, *runtime.world.pushes)]
    sent = [{**delivery._asdict(), "at": wire_moment(delivery.at)} for delivery in runtime.deliveries]
    return {"waiting": waiting, "sent": sent}


def _list_control_networks(runtime: WorldRuntime, query: dict[str, str], _value: object) -> object:
    iso2 = query.get("iso2", "").lower()
    world = runtime.world
    if iso2 and iso2 not in world.countries:
        raise invalid_request(f"iso2 must be one of {', '.join(world.countries)}")
    rows = [network for network in world.networks.values() if iso2 in ("", network.iso2)]
    return {"networks": [operator_view(world, network) for network in rows]}


CONTROL_ACTIONS: dict[tuple[str, str], ControlAction] = {
    ("GET", ""): _list_control_paths,
    ("GET", "state"): _network_state,
    ("POST", "clock"): set_network_clock,
    ("POST", "advance"): _advance_network_clock,
    ("GET", "faults"): _list_network_faults,
    ("POST", "faults"): add_network_faults,
    ("DELETE", "faults"): _clear_network_faults,
    ("POST", "usage"): use_line_service,
    ("POST", "attach"): _attach_line,
    ("POST", "provider-status"): set_provider_status,
    ("POST", "push-targets"): set_push_targets,
    ("GET", "pushes"): list_pushes,
    ("GET", "calls"): list_network_calls,
    ("GET", "networks"): _list_control_networks,
}
NETWORK_CONTROL_PATHS = [f"{method} /control/{name}".rstrip("/") for method, name in CONTROL_ACTIONS]
