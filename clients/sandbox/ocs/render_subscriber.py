"""A line as the wire shows it (ocs.md 2.1 and 2.3)."""

from clients.sandbox.ocs.entities import UNLIMITED, GreenZone, ImsiRow, Line, NumberRow, Sim, Status, StatusRow
from clients.sandbox.ocs.moments import stamp, stamp_or_none
from clients.sandbox.ocs.state import World
from clients.sandbox.ocs.wire import Members, euro, lean

# Choice: the read spelling of END_OF_LIFE is published nowhere.
TITLES: dict[Status, str] = {
    "ACTIVE": "Active",
    "INACTIVE": "Inactive",
    "SUSPENDED": "Suspended",
    "DISCONNECTED": "Disconnected",
    "PENDING": "Pending",
    "END_OF_LIFE": "End of life",
}


def subscriber(world: World, line: Line, *, sim: bool = True, histories: bool = True) -> Members:
    """The members that listSubscriber shows; getSingleSubscriber adds to them."""
    members = {**identity(world, line), **settings(line)}
    if histories:
        members |= {
            "imsiList": [imsi_row(line, row) for row in line.imsis],
            "phoneNumberList": [number_row(line, row) for row in line.numbers],
            "multiImsi": [lean({**imsi_row(line, row), "iccid": None, "endDate": None}) for row in line.multi_imsis if row.end is None],
            "status": [status_row(line, row) for row in line.statuses],
        }
    if sim:
        members["sim"] = sim_of(line, line.sim)
    return lean(members)


def identity(world: World, line: Line) -> Members:
    """Who it is, and whose."""
    return {
        "subscriberId": line.id,
        "accountId": line.account_id,
        "account": world.accounts[line.account_id].name,
        "resellerId": line.reseller_id,
        "reseller": world.resellers[line.reseller_id].name,
        "batchId": line.batch_id,
        "subscriberName": line.name,
        "email": line.email,
    }


def settings(line: Line) -> Members:
    """What it may do and how it stands."""
    seen = line.sighting
    return {
        "prepaid": True,
        "useAccountForCharging": line.use_account,
        "balance": euro(line.balance),
        "activationDate": stamp_or_none(line.activated_at),
        "lastUsageDate": stamp_or_none(line.last_usage_at),
        "allowedMoc": line.allowed_moc,
        "allowedMtc": line.allowed_mtc,
        "allowedData": line.allowed_data,
        "allowedMosms": line.allowed_mo_sms,
        "allowedMtsms": True,
        "lastMcc": int(seen.mcc) if seen else None,
        "lastMnc": int(seen.mnc) if seen else None,
        "steeringListId": line.steering_list_id,
        "throttlingLimit": None if line.bitrate == UNLIMITED else int(line.bitrate.removeprefix("KB_")),
    }


def imsi_row(line: Line, row: ImsiRow) -> Members:
    """An IMSI and ICCID with the time it held."""
    start, end = stamp(row.start), stamp_or_none(row.end)
    return lean({"id": row.id, "subscriberId": line.id, "imsi": row.imsi, "iccid": row.iccid, "startDate": start, "endDate": end})


def number_row(line: Line, row: NumberRow) -> Members:
    """A phone number with the time it held."""
    start, end = stamp(row.start), stamp_or_none(row.end)
    return lean({"id": row.id, "subscriberId": line.id, "phoneNumber": row.number, "startDate": start, "endDate": end})


def status_row(line: Line, row: StatusRow) -> Members:
    """A status with the time it held."""
    start, end = stamp(row.start), stamp_or_none(row.end)
    return lean({"id": row.id, "subscriberId": line.id, "startDate": start, "endDate": end, "status": TITLES[row.status]})


def sim_of(line: Line, sim: Sim) -> Members:
    """The card or profile, with its secrets: the wire hides nothing."""
    return lean(
        {
            "id": sim.id,
            "subscriberId": line.id,
            "esim": sim.esim,
            "status": sim.status,
            "affectationDateUtc": stamp_or_none(sim.affected_at),
            "pin1": sim.pin1 or None,
            "puk1": sim.puk1 or None,
            "pin2": sim.pin2 or None,
            "puk2": sim.puk2 or None,
            "smdpServer": sim.smdp or None,
            "activationCode": sim.activation_code or None,
            "confirmationCode": sim.confirmation_code,
        }
    )


def network_info(line: Line) -> Members | None:
    """Where it was last seen; the lower-case subscriberid is the wire's."""
    seen = line.sighting
    if seen is None:
        return None
    return {
        "subscriberid": line.id,
        "time": stamp(seen.at),
        "lastMcc": int(seen.mcc),
        "lastMnc": int(seen.mnc),
        "lastCellId": seen.cell_id,
        "lastLac": seen.lac,
        "lastImei": seen.imei,
        "lastRat": seen.rat,
    }


def green_counter(world: World, line: Line) -> Members | None:
    """What the line used in its green zone; none without a zone. Choice: an account's zone of 0 MB gives way to the reseller's."""
    own, shared = world.accounts[line.account_id].green_zone, world.resellers[line.reseller_id].green_zone
    effective = own if own and own.max_mb else shared or own
    if effective is None:
        return None
    return lean(
        {
            "subscriberId": line.id,
            "greenZoneId": effective.id,
            "greenZoneName": effective.name,
            "volumeOnGZ": line.green_bytes,
            "startDateUTC": stamp_or_none(line.green_started),
            "lastResetDate": stamp_or_none(line.green_reset),
            "lastUpdateDate": stamp_or_none(line.green_updated),
            "accountGZ": green_zone(own),
            "resellerGZ": green_zone(shared),
        }
    )


def green_zone(zone: GreenZone | None) -> Members | None:
    """A green zone's limits."""
    if zone is None:
        return None
    return {"greenZoneId": zone.id, "greenZoneName": zone.name, "maxVolumeMB": zone.max_mb, "throttlingKbs": zone.throttle_kbps}
