"""What a line of the simulated network is, read from the network itself, and what rows of a change set should have made of it."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import product
from typing import Any

from operations.times import utc_text
from simulators.network.entities import Line, Package
from simulators.network.simulated_network import SimulatedNetwork
from simulators.network.world import World
from simulators.network.world_runtime import NetworkCall

LineState = dict[str, Any]
LIMITS = {
    "dataLimit": "data_limit",
    "mocLimit": "moc_limit",
    "mtcLimit": "mtc_limit",
    "moSmsLimit": "mo_sms_limit",
    "mtSmsLimit": "mt_sms_limit",
}
WRITES = (
    "affectPackageToSubscriber",
    "affectRecurringPackageToSubscriber",
    "deleteSubscriberPackage",
    "hlrSetBitrate",
    "modifySubscriberPrepaidPackageExpDate",
    "modifySubscriberPrepaidPackageLimits",
    "modifySubscriberPrepaidPackageStatus",
    "modifySubscriberStatus",
    "modifySubscriberSteeringList",
    "moveSubscriberRangeToAccount",
    "pushSteeringToSubs",
    "setSubscriberTrafficRestrictions",
    "stopResumeSubsRecurringPackage",
)
SURELY_REFUSED = frozenset({"code", "status"})
"""Faults that say by themselves that the call had no effect."""


def line_state(line: Line) -> LineState:
    """The facts of a line that change sets change, each package and series under a name of its own."""
    packages = {f"package.{package.id}": package_state(package) for package in line.packages}
    series = {f"series.{series.id}": (series.template_id, series.active) for series in line.series}
    return {
        "status": line.status,
        "account": line.account_id,
        "steering_list": line.steering_list_id,
        "data": line.allowed_data,
        "moc": line.allowed_moc,
        "mtc": line.allowed_mtc,
        "sms": line.allowed_mo_sms,
        "speed_limit": line.bitrate,
        **packages,
        **series,
    }


def package_state(package: Package) -> LineState:
    limits = {shown: getattr(package, name) or 0 for shown, name in LIMITS.items()}
    ends = None if package.expires is None else utc_text_of(package.expires)
    days = package.period_days
    return {"template": package.template_id, "status": "ACTIVE" if package.active else "INACTIVE", "ends": ends, "days": days, **limits}


def utc_text_of(moment: int) -> str:
    return utc_text(datetime.fromtimestamp(moment, UTC))


def all_states(world: World) -> dict[str, LineState]:
    """Every line by its ICCID."""
    return {line.iccid: line_state(line) for line in world.lines.values()}


def expected_states(action: str, before: LineState, rows: Sequence[Mapping[str, Any]]) -> list[LineState]:
    """What a line may be after these rows of it: one state, or several where nobody knows what came of a row."""
    choices = [
        (False, True) if row["state"] == "unknown" or row.get("code") == "partly_done" else (row["state"] == "done",) for row in rows
    ]
    found = list[LineState]()
    for taken in product(*choices):
        state = before
        for row, counts in zip(rows, taken, strict=True):
            state = after_row(action, state, row) if counts else state
        found.append(state)
    return found


def after_row(action: str, state: LineState, row: Mapping[str, Any]) -> LineState:
    """The state after a row took effect; a new package or series stands under the name `new`."""
    after = dict(row["after"])
    if action in ("assign_package", "assign_series") and "packages" not in after:
        new = after.get("added_template") or after.get("added_series_of_template")
        return {**state, "status": after["status"], "new": new}
    if "series" in after and "active" in after:
        name = f"series.{after['series']}"
        return {**state, name: (state[name][0], after["active"])} if name in state else state
    if "package" in row["before"]:
        name = f"package.{row['before']['package']}"
        if after["package"] is None:
            return {key: value for key, value in state.items() if key != name}
        return (
            {**state, name: {**state[name], **{key: value for key, value in after.items() if key != "package"}}} if name in state else state
        )
    return {**state, **after}


def assignment_matches(action: str, expected: LineState, actual: LineState, template: object) -> bool:
    """Whether the one thing that `actual` has more is a package, or a series with its first package, of the template."""
    more = {name: value for name, value in actual.items() if name not in expected}
    same = {name: value for name, value in actual.items() if name in expected} == {n: v for n, v in expected.items() if n != "new"}
    packages = [value for name, value in more.items() if name.startswith("package.")]
    series = [value for name, value in more.items() if name.startswith("series.")]
    wanted = 1 if action == "assign_series" else 0
    fits = all(package["template"] == template for package in packages) and all(each == (template, True) for each in series)
    return same and fits and len(packages) == 1 and len(series) == wanted


def without_derived_days(state: LineState) -> LineState:
    """Without the number of days of packages that have an end: the network keeps it beside the end, and nothing follows from it."""
    return {
        name: {key: value for key, value in held.items() if key != "days" or held["ends"] is None} if name.startswith("package.") else held
        for name, held in state.items()
    }


def differing(first: LineState, second: LineState) -> str:
    names = [name for name in {**first, **second} if first.get(name) != second.get(name)]
    return ", ".join(f"{name} {first.get(name)} -> {second.get(name)}" for name in names)


def writes_that_arrived(network: SimulatedNetwork, after: int) -> list[NetworkCall]:
    """The writing calls behind the number `after` that may have had an effect: the network has not refused them by a fault."""
    return [call for call in network.calls if call.number > after and call.method in WRITES and not SURELY_REFUSED & {*call.faults}]


def last_call(network: SimulatedNetwork) -> int:
    return max((call.number for call in network.calls), default=0)
