"""Signalling events as the wire shows them (ocs.md 3.6); "N/A" stands for what is not known."""

from datetime import datetime, timedelta, timezone

from clients.sandbox.ocs.entities import Line, NetworkEvent
from clients.sandbox.ocs.places import Country, Sponsor
from clients.sandbox.ocs.state import World

Wire = dict[str, object]
UNKNOWN = "N/A"


def map_event(world: World, line: Line, event: NetworkEvent) -> Wire:
    """A location update of the older networks."""
    return {
        "eventTime": _event_time(event.at),
        "mcc": int(event.mcc),
        "mnc": int(event.mnc),
        "service": "Mobility",
        "o_gt": UNKNOWN,
        "o_ssn": "7",
        "d_gt": UNKNOWN,
        "d_ssn": "6",
        "opcode": "2",
        "shortCode": "UL",
        "longCode": event.code,
        "result": event.result,
        "in_imsi": line.imsi,
        "protocol": "MAP",
        "acn": "networkLocUpContext-v3",
        "host": UNKNOWN,
    } | _operator(world, event)


def s6a_event(world: World, line: Line, event: NetworkEvent) -> Wire:
    """A registration in a 4G or 5G network."""
    network, sponsor = world.networks[event.network_id], sponsor_of(world, line)
    realm = _realm(event)
    return {
        "eventTime": _event_time(event.at),
        "service": "S6a",
        "cmdCode": "316",
        "cmdNameShort": event.code,
        "cmdNameLong": "Update-Location-Request",
        "protocol": "S6a",
        "sponsor_imsi": line.multi_imsis[-1].imsi if line.multi_imsis else line.imsi,
        "subs_imsi": line.imsi,
        "mvno": world.resellers[line.reseller_id].name,
        "code": event.result,
        "oper_allowed": "true" if network.network_id in world.profiles[line.profile_id].network_ids else "false",
        "customer": world.accounts[line.account_id].name,
        "session": event.session,
        "orig_realm": realm,
        "orig_host": f"mme.{realm}",
        "dest_realm": UNKNOWN,
        "host": UNKNOWN,
        "user_apn": UNKNOWN,
        "sponsor": sponsor.name,
    } | _operator(world, event)


def gy_event(world: World, line: Line, event: NetworkEvent) -> Wire:
    """A credit request of a data session. Numbers are strings here (quirk 14)."""
    realm = _realm(event)
    return {
        "eventTime": _event_time(event.at),
        "hopByHopS": UNKNOWN,
        "endToEndS": UNKNOWN,
        "hopByHopL": UNKNOWN,
        "endToEndL": UNKNOWN,
        "originHost": f"pgw.{realm}",
        "originRealm": realm,
        "requestType": {"I": "Init", "U": "Update", "T": "Term"}[event.code[-1]],
        "session": event.session,
        "msisdn": line.number,
        "imei": line.sighting.imei if line.sighting is not None else UNKNOWN,
        "apn": "internet",
        "ratTypes": line.sighting.rat if line.sighting is not None else UNKNOWN,
        "userLocationInfoMCC": event.mcc,
        "userLocationInfoMNC": event.mnc,
        "userLocationInfoLAC": UNKNOWN,
        "userLocationInfoSAC": UNKNOWN,
        "usedUnits": str(event.used_bytes),
        "responseCode": event.result,
        "sgsnip": UNKNOWN,
        "rreResponse": UNKNOWN,
        "ratingGroup": UNKNOWN,
        "rreAllowedQuota": UNKNOWN,
    } | _operator(world, event)


def _operator(world: World, event: NetworkEvent) -> Wire:
    country, network = country_of(world, event.network_id), world.networks[event.network_id]
    return {"countryName": country.name, "countryAlpha2": country.iso2.lower(), "operator": network.name}


def _realm(event: NetworkEvent) -> str:
    return f"epc.mnc{event.mnc.zfill(3)}.mcc{event.mcc}.3gppnetwork.org"


def _event_time(at: int) -> str:
    """With milliseconds and the offset of the upstream's own clock."""
    return datetime.fromtimestamp(at, timezone(timedelta(hours=1))).isoformat(timespec="milliseconds")


def country_of(world: World, network_id: int) -> Country:
    """The country of a network."""
    return world.countries[world.networks[network_id].iso2]


def sponsor_of(world: World, line: Line) -> Sponsor:
    """Whose IMSI range a line roams with."""
    return world.sponsors[line.sim.sponsor_id]
