"""Where a line is: attaching to a network, the cell, and how that shows in signalling."""

from bisect import insort

from simulators.network.entities import DAY_SECONDS, Line, NetworkEvent, NetworkRefusal, Sighting
from simulators.network.wire import wire_moment
from simulators.network.world import Network, World

RADIO_TECHNOLOGIES = (("2G", "2G - GERAN"), ("3G", "3G - UTRAN"), ("4G", "4G - LTE"), ("5G", "5G - NR"))


def attach_to_network(world: World, line: Line, network_id: int, at: int) -> None:
    """The line registers: sighting, signalling event, and a location push when it came to another network."""
    network = world.networks.get(network_id)
    if network is None:
        raise NetworkRefusal(6, f"Network {network_id} not found")
    seen = line.sighting
    moved = seen is None or (seen.at <= at and not seen_on_network(seen, network))
    update_sighting(line, network, at)
    mcc, mnc = network.codes[line.id % len(network.codes)]
    session = f"{network.network_id}.{line.id}.{at}"
    if network.radio == "3G":
        record_network_event(line, NetworkEvent(at, "map", "UpdateLocation", network.network_id, mcc, mnc, "Success", session))
    else:
        record_network_event(line, NetworkEvent(at, "s6a", "ULR", network.network_id, mcc, mnc, "2001", session))
    if moved and world.resellers[line.reseller_id].relay_location:
        push_location(world, line)


def seen_on_network(sighting: Sighting, network: Network) -> bool:
    return (sighting.mcc, sighting.mnc) in network.codes


def needs_attach(line: Line, network: Network, at: int) -> bool:
    """On another network than before, or for the first time today."""
    seen = line.sighting
    return seen is None or not seen_on_network(seen, network) or seen.at // DAY_SECONDS != at // DAY_SECONDS


def update_sighting(line: Line, network: Network, at: int) -> None:
    """Remember where the line is; the cell changes by the hour. An older moment than the one known changes nothing."""
    seen = line.sighting
    if seen is not None and seen.at > at:
        return
    mcc, mnc = network.codes[line.id % len(network.codes)]
    lac, cell = (1000 + (network.network_id * 7 + line.id * 31) % 5000), _cell(line, network, at)
    if seen is None:
        line.sighting = Sighting(at, mcc, mnc, lac, cell, _imei(line), dict(RADIO_TECHNOLOGIES)[network.radio])
        return
    seen.at, seen.cell_id = at, cell
    if seen.mnc != mnc or seen.mcc != mcc:
        seen.mcc, seen.mnc, seen.lac, seen.rat = mcc, mnc, lac, dict(RADIO_TECHNOLOGIES)[network.radio]


def record_network_event(line: Line, event: NetworkEvent) -> None:
    """Adds `event`; the events of a line stay in order of time."""
    if line.events and line.events[-1].at > event.at:
        insort(line.events, event, key=lambda kept: kept.at)
    else:
        line.events.append(event)


def _cell(line: Line, network: Network, at: int) -> int:
    """Arithmetic instead of chance: the cell costs nothing, and is the same however the clock was run."""
    return 10_000 + (line.id * 7919 + network.network_id * 101 + at // 3600 * 104_729) % 55_000


def _imei(line: Line) -> str:
    """Fifteen digits with the check digit that phones have."""
    digits = f"35{line.id * 7919 % 10**6:06d}{line.id % 10**6:06d}"
    total = sum(int(digit) if place % 2 == 0 else sum(divmod(2 * int(digit), 10)) for place, digit in enumerate(digits))
    return digits + str(-total % 10)


def push_location(world: World, line: Line) -> None:
    """Notifies the reseller that a line came to another network. The body's shape is ours."""
    sighting = line.sighting
    if sighting is None:
        return
    body: dict[str, object] = {
        "iccid": line.iccid,
        "imsi": line.imsi,
        "subsId": line.id,
        "mcc": int(sighting.mcc),
        "mnc": int(sighting.mnc),
        "lac": sighting.lac,
        "cellId": sighting.cell_id,
        "rat": sighting.rat,
        "eventTimeUtc": wire_moment(sighting.at),
    }
    world.queue_push(world.resellers[line.reseller_id].push.location_url, {"locationUpdate": body})
