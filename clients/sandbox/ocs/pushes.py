"""Notifications of the network (ocs.md 4): built here, sent by whoever drains `world.pushes`."""

from datetime import UTC, datetime

from clients.sandbox.ocs.entities import DATA, MO_SMS, MOC, MOC_VOIP, MT_SMS, MTC, MTC_VOIP, Line, Package
from clients.sandbox.ocs.state import Push, World


def package_usage(world: World, line: Line, package: Package, usage_type: int, used: tuple[int, int], percent: int, limit: int) -> None:
    """A package's use went over a threshold, from `used[0]` to `used[1]` units. Percentage and threshold are strings on the wire."""
    body: dict[str, object] = {
        "unitsBefore": used[0],
        "unitsAfter": used[1],
        "thresholdPercentage": str(percent),
        "thresholdUnits": str(limit * percent // 100),
        "subscriberPackageId": package.id,
        "totalUnits": limit,
        "subscriberId": line.id,
        "subscriberIMSI": line.imsi,
        "usageType": _usage_name(usage_type),
    }
    _send(world, world.resellers[line.reseller_id].push.usage_url, {"subscriberPrepaidPackage": body})


def esim_status(world: World, line: Line, status: str) -> None:
    """The provider's profile of a line changed (ES2+)."""
    body: dict[str, object] = {"iccid": line.iccid, "imsi": line.imsi, "eid": line.sim.eid, "subsId": line.id, "status": status}
    _send(world, world.resellers[line.reseller_id].push.esim_url, body)


def location(world: World, line: Line) -> None:
    """A line came to another network; our own shape."""
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
        "eventTimeUtc": datetime.fromtimestamp(sighting.at, UTC).isoformat()[:19],
    }
    _send(world, world.resellers[line.reseller_id].push.location_url, {"locationUpdate": body})


def _send(world: World, url: str, body: dict[str, object]) -> None:
    """An empty URL means that the reseller does not want this kind."""
    if url:
        world.pushes.append(Push(world.now, url, body))


def _usage_name(usage_type: int) -> str:
    """Choice: calls over IP are told as the calls whose units they use."""
    names = ((DATA, "DATA"), (MOC, "MOC"), (MTC, "MTC"), (MO_SMS, "MO_SMS"), (MT_SMS, "MT_SMS"), (MOC_VOIP, "MOC"), (MTC_VOIP, "MTC"))
    return dict(names)[usage_type]
