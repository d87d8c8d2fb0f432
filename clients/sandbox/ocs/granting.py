"""Putting a package on a line: the checks, the copy of the template, and what it does to the line and its SIM."""

from clients.sandbox.ocs.entities import Line, Package, Refused, StatusRow, Template
from clients.sandbox.ocs.provider import add_provider_status
from clients.sandbox.ocs.state import World


def check(line: Line, template: Template) -> None:
    """Refuse a final line (17), a deleted template (6) and a SIM of another sponsor (14)."""
    if line.status == "END_OF_LIFE":
        raise Refused(17, f"Subscriber {line.id} is end of life")
    if template.deleted:
        raise Refused(6, f"Package template {template.id} is deleted")
    if template.sponsor_id != line.sim.sponsor_id:
        raise Refused(14, f"Package template {template.id} is for another sponsor than the SIM of subscriber {line.id}")


def grant(world: World, line: Line, template: Template, dates: tuple[int | None, int | None], series_id: int | None = None) -> Package:
    """Copy the template onto the line, behind the packages it has."""
    package = Package(
        id=world.next_id("package"),
        line_id=line.id,
        template_id=template.id,
        template_name=template.name,
        priority=max((held.priority for held in line.packages), default=0) + 1,
        zone_id=template.zone_id,
        destination_id=template.destination_id,
        data_limit=template.data_bytes,
        moc_limit=template.moc_seconds,
        mtc_limit=template.mtc_seconds,
        mo_sms_limit=template.mo_sms,
        mt_sms_limit=template.mt_sms,
        period_days=template.period_days,
        cost=template.cost,
        assigned=world.now,
        activated=dates[0],
        expires=dates[1],
        series_id=series_id,
    )
    line.packages.append(package)
    world.packages[package.id] = package
    return package


def bring_to_life(world: World, line: Line) -> None:
    """The line becomes ACTIVE and a free SIM is taken into use."""
    if line.status != "ACTIVE":
        line.statuses[-1].end = world.now
        line.statuses.append(StatusRow(world.next_id("status"), "ACTIVE", world.now))
    if line.activated_at is None:
        line.activated_at = world.now
    if line.sim.status == "FREE":
        line.sim.status, line.sim.affected_at = "AFFECTED", world.now
        world.lookup.sim_changed(line, "FREE")
        profile = line.sim.provider[-1].profile_type if line.sim.provider else "P1"
        add_provider_status(world, line, "Released", profile)
