"""What the control API does to lines: use, attach, provider status; and where notifications go."""

from clients.sandbox.ocs import charging, life
from clients.sandbox.ocs.desk import Desk
from clients.sandbox.ocs.entities import Cdr, Line, PushTarget, Refused
from clients.sandbox.ocs.moments import stamp
from clients.sandbox.ocs.params import Fields, digits, integer, positive, refuse, text
from clients.sandbox.ocs.render_network import operator
from clients.sandbox.ocs.resolve import NOT_FOUND, known
from clients.sandbox.ocs.state import World
from clients.sandbox.ocs.wire import Members, euro, lean

USAGE_TYPES = "33 data (bytes), 1 and 15 calls (seconds), 21 and 22 messages, 40 and 41 calls over IP (seconds)"


def line_of(world: World, iccid: str) -> Line:
    """Any reseller's line."""
    line = world.lookup.line(world.lines, "iccid", iccid)
    if line is None:
        raise Refused(NOT_FOUND, f"no line has the ICCID {iccid}")
    return line


def use(desk: Desk, _query: dict[str, str], value: object) -> object:
    """Let a line use something; the answer is its call records."""
    fields = Fields(value, "body")
    iccid, network_id = fields.need("iccid", digits), fields.need("networkId", integer)
    usage_type, quantity = fields.need("usageType", usage), fields.need("quantity", positive)
    other_party = fields.maybe("otherParty", digits)
    fields.done()
    world = desk.world
    known(world.networks, network_id, "network")
    records = charging.use(world, line_of(world, iccid), usage_type, quantity, network_id=network_id, other_party=other_party)
    return {"records": [record_of(record) for record in records]}


def usage(value: object, path: str) -> int:
    """A kind of use by its number."""
    if value not in charging.KINDS:
        raise refuse(f"{path} must be one of {USAGE_TYPES}")
    return integer(value, path)


def record_of(record: Cdr) -> Members:
    """A call record in short."""
    return lean(
        {
            "at": stamp(record.at),
            "usageType": record.usage_type,
            "quantity": record.quantity,
            "inPackage": record.in_package,
            "packageId": record.package_id,
            "resellerCost": euro(record.reseller_cost),
            "subscriberCost": euro(record.subscriber_cost),
        }
    )


def attach(desk: Desk, _query: dict[str, str], value: object) -> object:
    """Let a line come to a network now."""
    fields = Fields(value, "body")
    iccid, network_id = fields.need("iccid", digits), fields.need("networkId", integer)
    fields.done()
    network, line = known(desk.world.networks, network_id, "network"), line_of(desk.world, iccid)
    life.attach(desk.world, line, network.network_id, desk.world.now)
    return {"subscriberId": line.id, "network": operator(desk.world, network)}


def provider_status(desk: Desk, _query: dict[str, str], value: object) -> object:
    """Let the provider say something of a profile; the reseller is told."""
    fields = Fields(value, "body")
    iccid, status = fields.need("iccid", digits), fields.need("status", text)
    profile_type = fields.maybe("profileType", text) or "P1"
    fields.done()
    line = line_of(desk.world, iccid)
    life.add_provider_status(desk.world, line, status, profile_type)
    return {"simId": line.sim.id, "status": status}


def push_targets(desk: Desk, _query: dict[str, str], value: object) -> object:
    """Where a reseller's notifications go; what is left out stays, an empty string ends one."""
    fields = Fields(value, "body")
    number = fields.need("resellerId", integer)
    usage_url, esim_url = fields.maybe("usageUrl", url), fields.maybe("esimUrl", url)
    location_url, marks = fields.maybe("locationUrl", url), fields.maybe("thresholds", percents)
    fields.done()
    reseller = known(desk.world.resellers, number, "reseller")
    target = reseller.push
    reseller.push = PushTarget(
        target.usage_url if usage_url is None else usage_url,
        target.esim_url if esim_url is None else esim_url,
        target.location_url if location_url is None else location_url,
        target.thresholds if marks is None else marks,
    )
    return target_of(number, reseller.push)


def target_of(reseller_id: int, target: PushTarget) -> Members:
    """A reseller's targets."""
    urls = {"usageUrl": target.usage_url, "esimUrl": target.esim_url, "locationUrl": target.location_url}
    return {"resellerId": reseller_id, **urls, "thresholds": list(target.thresholds)}


def url(value: object, path: str) -> str:
    """An address, or nothing."""
    if value == "":
        return ""
    found = text(value, path)
    if not found.startswith(("http://", "https://")):
        raise refuse(f"{path} must begin with http:// or https://, or be empty")
    return found


def percents(value: object, path: str) -> tuple[int, ...]:
    """Shares of a package at which the reseller is told."""
    if not isinstance(value, list):
        raise refuse(f"{path} must be an array of percentages")
    found = sorted({positive(item, path) for item in value})  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]  # each is checked
    if found and found[-1] > 100:
        raise refuse(f"{path} must be percentages from 1 to 100")
    return tuple(found)


def pushes(desk: Desk, _query: dict[str, str], _value: object) -> object:
    """Notifications that wait, and those that were sent; status 0: nobody answered."""
    waiting = [{"at": stamp(push.at), "url": push.url, "body": push.body} for push in (*desk.underway, *desk.world.pushes)]
    sent = [{**delivery._asdict(), "at": stamp(delivery.at)} for delivery in desk.deliveries]
    return {"waiting": waiting, "sent": sent}


def networks(desk: Desk, query: dict[str, str], _value: object) -> object:
    """The networks of the world, or of one country."""
    iso2 = query.get("iso2", "").lower()
    world = desk.world
    if iso2 and iso2 not in world.countries:
        raise refuse(f"iso2 must be one of {', '.join(world.countries)}")
    rows = [network for network in world.networks.values() if iso2 in ("", network.iso2)]
    return {"networks": [operator(world, network) for network in rows]}
