"""Notifications of the network (ocs.md 4), and the status of a profile, which causes one; `World.pushes` holds them."""

from datetime import UTC, datetime

from simulators.network.entities import DATA, MO_SMS, MOC, MOC_VOIP, MT_SMS, MTC, MTC_VOIP, Line, Package, ProviderRow
from simulators.network.world import PendingPush, World


def push_package_usage(
    world: World, line: Line, package: Package, usage_type: int, used: tuple[int, int], percent: int, limit: int
) -> None:
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
    _queue_push(world, world.resellers[line.reseller_id].push.usage_url, {"subscriberPrepaidPackage": body})


def push_esim_status(world: World, line: Line, status: str) -> None:
    """The provider's profile of a line changed (ES2+)."""
    body: dict[str, object] = {"iccid": line.iccid, "imsi": line.imsi, "eid": line.sim.eid, "subsId": line.id, "status": status}
    _queue_push(world, world.resellers[line.reseller_id].push.esim_url, body)


def push_location(world: World, line: Line) -> None:
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
    _queue_push(world, world.resellers[line.reseller_id].push.location_url, {"locationUpdate": body})


def _queue_push(world: World, url: str, body: dict[str, object]) -> None:
    """An empty URL means that the reseller does not want this kind."""
    if url:
        world.pushes.append(PendingPush(world.now, url, body))


def _usage_name(usage_type: int) -> str:
    """Choice: calls over IP are told as the calls whose units they use."""
    names = ((DATA, "DATA"), (MOC, "MOC"), (MTC, "MTC"), (MO_SMS, "MO_SMS"), (MT_SMS, "MT_SMS"), (MOC_VOIP, "MOC"), (MTC_VOIP, "MTC"))
    return dict(names)[usage_type]


def add_provider_status(world: World, line: Line, status: str, profile_type: str) -> None:
    """Append a status, end the row before, and tell the reseller."""
    rows = line.sim.provider
    if rows:
        rows[-1].end = world.now
    rows.append(ProviderRow(status, world.now, profile_type))
    push_esim_status(world, line, status)
