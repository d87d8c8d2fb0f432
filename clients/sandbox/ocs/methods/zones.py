"""Location zones, network profiles and destination lists."""

from collections.abc import Iterable

from clients.sandbox.ocs.entities import Refused, Token
from clients.sandbox.ocs.params import Fields, integer, text, texts
from clients.sandbox.ocs.places import Network, NetworkProfile, Zone
from clients.sandbox.ocs.render_network import detailed_list, detailed_zone, operators, profile_of
from clients.sandbox.ocs.resolve import find_reseller, known, resellers_meant, visible
from clients.sandbox.ocs.state import World
from clients.sandbox.ocs.wire import NOTHING, Broken, lean

DUPLICATE, IMPOSSIBLE = 4, 14
UNKNOWN_TADIG, SAME_OPERATORS, NOT_IN_TARIFF, NOT_OFFERED = 10001, 10002, 10003, 10004
# Choice: the ceiling is unpublished; micro-euro per MiB.
DATA_CEILING = 50_000


def list_location_zone_element(world: World, caller: Token, params: object) -> object:
    """The networks of a zone; for some zones the JSON ends too early."""
    zone = find_zone(world, caller, integer(params, "params"))
    answer = lean({"operator": operators(world, zone)})
    return Broken(answer) if zone.malformed else answer


def find_zone(world: World, caller: Token, number: int) -> Zone:
    """A zone by id."""
    zone = known(world.zones, number, "location zone")
    visible(world, caller, zone.reseller_id, "location zone")
    return zone


def list_detailed_location_zone(world: World, caller: Token, params: object) -> object:
    """A reseller's zones with their networks; null when there are none."""
    reseller = find_reseller(world, caller, integer(params, "params"))
    return [detailed_zone(world, zone) for zone in world.zones.values() if zone.reseller_id == reseller.id] or None


def list_destination_list_prefix(world: World, caller: Token, params: object) -> object:
    """The prefixes of a destination list."""
    row = known(world.destinations, integer(params, "params"), "destination list")
    visible(world, caller, row.reseller_id, "destination list")
    return lean({"prefixes": list(row.prefixes), "resellerId": row.reseller_id, "listId": row.id, "listName": row.name})


def list_detailed_destination_list(world: World, caller: Token, params: object) -> object:
    """A reseller's destination lists; null when there are none."""
    reseller = find_reseller(world, caller, integer(params, "params"))
    return [detailed_list(world, row) for row in world.destinations.values() if row.reseller_id == reseller.id] or None


def list_network_profile(world: World, caller: Token, params: object) -> object:
    """Network profiles by reseller and sponsor."""
    fields = Fields(params)
    reseller_id, sponsor_id = fields.maybe("resellerId", integer), fields.maybe("sponsorId", integer)
    fields.done()
    owners = {reseller.id for reseller in resellers_meant(world, caller, reseller_id)}
    rows = [profile for profile in world.profiles.values() if profile.reseller_id in owners]
    return [profile_of(world, profile) for profile in rows if sponsor_id in (None, profile.sponsor_id)] or NOTHING


def find_profile(world: World, caller: Token, number: int) -> NetworkProfile:
    """A network profile by id."""
    profile = known(world.profiles, number, "network profile")
    visible(world, caller, profile.reseller_id, "network profile")
    return profile


def create_location_zone(world: World, caller: Token, params: object) -> object:
    """A new zone; the order of the checks is part of the contract, and refusals carry a payload."""
    fields = Fields(params)
    profile_id, name = fields.need("networkProfileId", integer), fields.need("locationZoneName", text)
    tadigs = fields.need("tadigList", texts)
    fields.done()
    profile = find_profile(world, caller, profile_id)
    siblings = [zone for zone in world.zones.values() if zone.reseller_id == profile.reseller_id]
    if any(zone.name == name for zone in siblings):
        raise Refused(DUPLICATE, "a location zone with this name exists")
    networks = by_tadig(world, tadigs)
    ids = tuple(dict.fromkeys(network.network_id for network in networks.values()))
    check_new_operators(siblings, ids)
    check_tariff(world, profile, networks)
    zone = Zone(world.next_id("zone"), name, profile.reseller_id, profile.id, ids)
    world.zones[zone.id] = zone
    return {"newLZ": {"Id": zone.id, "name": zone.name}}


def by_tadig(world: World, tadigs: list[str]) -> dict[str, Network]:
    """The networks that codes name; one network may own several."""
    owners = {tadig: network for network in world.networks.values() for tadig in network.tadigs}
    invalid = [tadig for tadig in tadigs if tadig not in owners]
    if invalid:
        raise Refused(UNKNOWN_TADIG, "unknown TADIG codes", {"invalidTadigs": invalid})
    return {tadig: owners[tadig] for tadig in tadigs}


def check_new_operators(siblings: Iterable[Zone], ids: tuple[int, ...]) -> None:
    """Refuse a second zone of the same networks, and name the first."""
    same = next((zone for zone in siblings if set(zone.network_ids) == set(ids)), None)
    if same:
        raise Refused(SAME_OPERATORS, "a zone of the same operators exists", {"existingLZ": {"Id": same.id, "name": same.name}})


def check_tariff(world: World, profile: NetworkProfile, networks: dict[str, Network]) -> None:
    """Refuse networks that the reseller's tariff lacks, then those that the sponsor does not offer at a bearable price."""
    tariff = world.tariffs[world.resellers[profile.reseller_id].buy_tariff_id]
    rules = [rule for rule in tariff.rules if rule.active and rule.sponsor_id in (None, profile.sponsor_id)]
    priced = {rule.network_id for rule in rules}
    cheap = {rule.network_id for rule in rules if rule.data_rate is not None and rule.data_rate <= DATA_CEILING}
    missing = [tadig for tadig, network in networks.items() if network.network_id not in priced]
    if missing:
        raise Refused(NOT_IN_TARIFF, "operators are not in the tariff of the reseller", {"invalidTadigs": missing})
    offered = profile.network_ids & cheap
    dear = [tadig for tadig, network in networks.items() if network.network_id not in offered]
    if dear:
        raise Refused(NOT_OFFERED, "operators are not available from the sponsor", {"invalidTadigs": dear})


def change_network_profile_of_location_zone(world: World, caller: Token, params: object) -> object:
    """Undocumented upstream. Choice: the profile must offer all networks of the zone; the zone's templates get its sponsor."""
    fields = Fields(params)
    zone_id, profile_id = fields.need("locationZoneId", integer), fields.need("networkProfileId", integer)
    fields.done()
    zone, profile = find_zone(world, caller, zone_id), find_profile(world, caller, profile_id)
    if profile.reseller_id != zone.reseller_id:
        raise Refused(IMPOSSIBLE, "the network profile belongs to another reseller than the zone")
    if not profile.network_ids.issuperset(zone.network_ids):
        raise Refused(IMPOSSIBLE, "the network profile lacks networks of the zone")
    zone.profile_id = profile.id
    for template in world.templates.values():
        if template.zone_id == zone.id:
            template.sponsor_id = profile.sponsor_id
    return NOTHING
