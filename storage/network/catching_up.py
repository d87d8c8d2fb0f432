"""What the network told of an eSIM before its intent had it: applied in the transaction that gives the intent its eSIM."""

from registry.ids import Ids
from storage.connection import Connection
from storage.issuing.intents import find_holder
from storage.network.early_sightings import take_early
from storage.network.line_owner import hold, line_subject, package_subject
from storage.network.observations import Sighting, record
from storage.network.usage import claim_lines


def catch_up(
    connection: Connection, *, intent: str, organisation: str, iccid: str, package_id: int | None, since: float, now: float, ids: Ids
) -> None:
    """Sightings, package totals and metered lines since the eSIM was sent for (`since`); again, it changes nothing.

    What happened before is of whoever had the ICCID then. The locks are always taken in this order: line, package.
    """
    hold(connection, subject=line_subject(iccid))
    kept = take_early(connection, subject=line_subject(iccid), since=since)
    if package_id is not None:
        hold(connection, subject=package_subject(package_id))
        kept += take_early(connection, subject=package_subject(package_id), since=since)
    holder = find_holder(connection, iccid=iccid)
    if holder is None or (holder.id, holder.organisation) != (intent, organisation):
        return
    for early in kept:
        seen = Sighting(iccid=iccid, **early._asdict())
        record(connection, holder=holder, seen=seen, now=now, ids=ids)
    claim_lines(connection, intent=intent, iccid=iccid, since=since, now=now, ids=ids)
