"""Writing calls of an organisation on its own lines, each with the filters and fields that must show it at once."""

from collections.abc import Callable, Mapping
from random import Random
from typing import Any, NamedTuple

from simulators.network.entities import DATA, MICRO_EURO, Line, PackageTemplate
from simulators.network.world import World

Arguments = dict[str, Any]
STATUSES = ("ACTIVE", "SUSPENDED", "INACTIVE", "DISCONNECTED")
DAY = 86_400


class OwnCall(NamedTuple):
    """A call, the filters that must find its line afterwards, and what its row must show."""

    operation: str
    arguments: Arguments
    filters: Arguments
    fields: Mapping[str, Any]


class LineView(NamedTuple):
    """The line that is called about, and what there is to give it."""

    rng: Random
    world: World
    line: Line
    template: PackageTemplate | None
    series: PackageTemplate | None

    def call(self, operation: str, filters: Arguments, fields: Mapping[str, Any], **arguments: Any) -> OwnCall:
        return OwnCall(operation, {"iccid": self.line.iccid, **arguments}, filters, fields)


def supply(line: Line, now: int) -> Arguments:
    """Bytes left in the packages of a line that may be used now or at the first use."""
    held = [each for each in line.packages if each.active and (each.expires is None or each.expires > now)]
    usable = [each for each in held if (each.activated is None or each.activated <= now) and not is_used_up(each)]
    return {"data_left": sum(each.units_left(DATA) for each in usable) if usable else None}


def is_used_up(package: Any) -> bool:
    """Whether its data are used up, or whatever else it holds where it holds no data."""
    if package.data_limit:
        return package.data_used >= package.data_limit
    counters = [package.counter(kind) for kind in (1, 15, 21, 22)]
    held = [(limit, used) for limit, used in counters if limit]
    return bool(held) and all(used >= limit for limit, used in held)


def change_status(view: LineView) -> OwnCall:
    status = view.rng.choice(STATUSES)
    return view.call("modify_subscriber_status", {"status": status}, {"status": status}, status=status)


def change_steering(view: LineView) -> OwnCall:
    chosen = view.rng.choice((17, 18, 19))
    return view.call("modify_subscriber_steering_list", {"steeringList": chosen}, {"steering_list": chosen}, listId=chosen)


def bar_traffic(view: LineView) -> OwnCall:
    data = view.rng.random() < 0.5
    filters = {} if data else {"barred": "data"}
    shown = {"data": data, "calls_out": False, "calls_in": True, "sms_out": True, "sms_in": True}
    return view.call("set_subscriber_traffic_restrictions", filters, {"allowed": shown}, data=data, moc=False, mtc=True, sms=True)


def limit_speed(view: LineView) -> OwnCall:
    kbps = view.rng.choice((0, 256, 512))
    fields = {"speed_limit_kbps": kbps or None}
    return view.call("hlr_set_bitrate", {"speedLimited": bool(kbps)}, fields, bitrate=kbps * 1000)


def lower_balance(view: LineView) -> OwnCall:
    left = view.line.balance // 2 // MICRO_EURO * 1.0
    return view.call("modify_subscriber_balance", {}, {"balance": left}, amount=left, mode="set")


def name_customer(view: LineView) -> OwnCall:
    name = f"Ours{view.rng.randrange(10**6)}"
    return view.call("modify_subscriber_contact_info", {"text": name}, {"name": f"{name} Berg"}, firstName=name, lastName="Berg")


def change_number(view: LineView) -> OwnCall:
    number = f"4798{view.rng.randrange(10**6):06d}"
    arguments = {"phoneType": "real", "phoneNumber": f"+{number}"}
    return view.call("affect_subscriber_phone_number", {"text": number}, {"msisdn": number}, **arguments)


def assign_package(view: LineView) -> OwnCall | None:
    if view.template is None:
        return None
    return view.call("assign_package", {}, supply_fields, packageTemplateId=view.template.id)


def assign_series(view: LineView) -> OwnCall | None:
    if view.series is None:
        return None
    return view.call("assign_recurring_package", {}, supply_fields, packageTemplateId=view.series.id)


def limit_package(view: LineView) -> OwnCall | None:
    if not view.line.packages:
        return None
    package = view.rng.choice(view.line.packages)
    limit = view.rng.randrange(1, 1 << 31)
    return view.call("modify_package_limits", {}, supply_fields, packageId=package.id, dataLimit=limit)


def block_package(view: LineView) -> OwnCall | None:
    if not view.line.packages:
        return None
    package = view.rng.choice(view.line.packages)
    status = "INACTIVE" if package.active else "ACTIVE"
    return view.call("modify_package_status", {}, supply_fields, packageId=package.id, status=status)


def delete_package(view: LineView) -> OwnCall | None:
    if not view.line.packages:
        return None
    return view.call("delete_subscriber_package", {}, supply_fields, packageId=view.rng.choice(view.line.packages).id)


def clean_packages(view: LineView) -> OwnCall:
    # The packages of a SIM in stock that nothing happened to are not read, so that nothing is known of them.
    filters = {} if view.line.sim.status == "FREE" else {"packageState": "none"}
    return view.call("clean_all_packages", filters, supply_fields)


class SupplyFields(dict[str, Any]):
    """Stands for what the packages hold after the call."""


supply_fields = SupplyFields()
OWN_CALLS: tuple[Callable[[LineView], OwnCall | None], ...] = (
    change_status,
    change_steering,
    bar_traffic,
    limit_speed,
    lower_balance,
    name_customer,
    change_number,
    assign_package,
    assign_series,
    limit_package,
    block_package,
    delete_package,
    clean_packages,
)
