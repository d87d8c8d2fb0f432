"""Which packages of a line cover a use, and their counters."""

from simulators.network.entities import DATA, MO_SMS, MOC, MOC_VOIP, MT_SMS, MTC, MTC_VOIP, Line, Package
from simulators.network.world import World


def package_counter(package: Package, usage_type: int) -> tuple[int | None, int]:
    """Limit and used. Choice: outgoing calls over IP have their own used counter but share the limit of outgoing calls."""
    if usage_type == DATA:
        return package.data_limit, package.data_used
    if usage_type in (MOC, MOC_VOIP):
        return package.moc_limit, package.moc_used + package.voip_used
    if usage_type in (MTC, MTC_VOIP):
        return package.mtc_limit, package.mtc_used
    if usage_type == MO_SMS:
        return package.mo_sms_limit, package.mo_sms_used
    return package.mt_sms_limit, package.mt_sms_used


def count_usage(package: Package, usage_type: int, quantity: int) -> None:
    """Add to the counter of a kind of use."""
    if usage_type == DATA:
        package.data_used += quantity
    elif usage_type == MOC:
        package.moc_used += quantity
    elif usage_type == MOC_VOIP:
        package.voip_used += quantity
    elif usage_type in (MTC, MTC_VOIP):
        package.mtc_used += quantity
    elif usage_type == MO_SMS:
        package.mo_sms_used += quantity
    elif usage_type == MT_SMS:
        package.mt_sms_used += quantity


def units_left(package: Package, usage_type: int) -> int:
    """Units that remain; 0 when this kind is not in the package."""
    limit, used = package_counter(package, usage_type)
    return max(0, limit - used) if limit is not None else 0


def counted_usage_type(world: World, line: Line, package: Package, usage_type: int) -> int:
    """The counter a use goes to: with a single counter incoming calls count as outgoing ones."""
    if usage_type not in (MTC, MTC_VOIP):
        return usage_type
    template = world.templates.get(package.template_id)
    single = world.resellers[line.reseller_id].single_counter or (template is not None and template.single_counter)
    return MOC if single else usage_type


def package_in_date(package: Package, at: int) -> bool:
    """Not blocked, begun or undated, not expired."""
    return package.active and (package.activated is None or package.activated <= at) and (package.expires is None or at < package.expires)


def covering_packages(world: World, line: Line, network_id: int, at: int) -> list[Package]:
    """Packages in date whose zone has the network, the lowest priority number first; exhausted ones too."""
    zones = world.zones
    found = [package for package in line.packages if package_in_date(package, at) and network_id in zones[package.zone_id].network_ids]
    if len(found) > 1:
        found.sort(key=lambda package: (package.priority, package.id))
    return found


def covers_destination(world: World, package: Package, usage_type: int, other_party: str | None) -> bool:
    """A package with a destination list pays only outgoing calls to it. Choice: an unknown number is not on the list."""
    if usage_type not in (MOC, MOC_VOIP) or package.destination_id is None:
        return True
    destination = world.destinations.get(package.destination_id)
    return destination is not None and other_party is not None and other_party.lstrip("+").startswith(destination.prefixes)
