"""The rows of a plan: what of a line an action changes, to what, by which calls, and what cannot be undone. Everything here is pure."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, cast

from operations.changes.plans.changes import RequestedChange
from operations.changes.plans.facts import ChangeableLine, LineRowFacts, whole
from operations.times import utc_text, utc_time_text

Values = dict[str, object]
ENDED_STATUS = "END_OF_LIFE"
SETTABLE_STATUSES = frozenset({"ACTIVE", "SUSPENDED", "INACTIVE", "DISCONNECTED"})
ENDED_PACKAGES = frozenset({"expired", "upcoming"})
LIMIT_MEMBERS: Mapping[str, tuple[str, str]] = {
    "data_limit": ("dataLimit", "pckdatabyte"),
    "moc_limit": ("mocLimit", "pckmocsecond"),
    "mtc_limit": ("mtcLimit", "pckmtcsecond"),
    "mo_sms_limit": ("moSmsLimit", "pckmosmsnumber"),
    "mt_sms_limit": ("mtSmsLimit", "pckmtsmsnumber"),
}


class RowCall(NamedTuple):
    """One call of an operation."""

    operation: str
    arguments: Values


class PlannedRow(NamedTuple):
    """What becomes of a line, or of one package of it. `lost`: what is gone for good; `cost`: whole euro cents that the network takes,
    UNBOUNDED_COST where nobody can say."""

    before: Values
    after: Values
    steps: tuple[RowCall, ...]
    irreversible: bool = False
    cost: int = 0
    lost: Values | None = None


class SkippedRow(NamedTuple):
    """Why a line stays as it is."""

    code: str
    reason: str


RowPlan = PlannedRow | SkippedRow


class PlanFacts(NamedTuple):
    """What a plan knows beside its lines. `now`: Unix seconds."""

    now: float
    costs: Mapping[int, int]
    """By template: what the package or the series that the action assigns costs at most, as `cost` of a row."""
    accounts: Mapping[int, int] = {}
    """The reseller of each account that the caller has."""


def plan_line(change: RequestedChange, facts: ChangeableLine, known: PlanFacts) -> Sequence[RowPlan]:
    """The rows of one line."""
    if facts.status == ENDED_STATUS and change.action != "set_tags":
        return [SkippedRow("subscriber_end_of_life", "The line has reached its end of life and takes no more changes.")]
    return PLANNERS[change.action](change, facts, known)


def already(what: str) -> SkippedRow:
    return SkippedRow("already", f"Already {what}.")


def plan_status(change: RequestedChange, facts: ChangeableLine, known: PlanFacts) -> Sequence[RowPlan]:
    del known
    if facts.status == change.status:
        return [already(facts.status)]
    step = RowCall("modify_subscriber_status", {"iccid": facts.iccid, "status": change.status})
    return [PlannedRow({"status": facts.status}, {"status": change.status}, (step,), irreversible=facts.status not in SETTABLE_STATUSES)]


def plan_end(change: RequestedChange, facts: ChangeableLine, known: PlanFacts) -> Sequence[RowPlan]:
    del change, known
    step = RowCall("modify_subscriber_status", {"iccid": facts.iccid, "status": ENDED_STATUS, "irreversible": True})
    return [PlannedRow({"status": facts.status}, {"status": ENDED_STATUS}, (step,), irreversible=True, lost={"line": facts.iccid})]


def plan_steering(change: RequestedChange, facts: ChangeableLine, known: PlanFacts) -> Sequence[RowPlan]:
    del known
    now, wanted = facts.row.get("steeringListId"), None if change.no_list else change.list_id
    push = (RowCall("push_steering_to_subscriber", {"iccid": facts.iccid}),) if change.push else ()
    if now == wanted and not push:
        return [already("on this steering list" if wanted is not None else "without a steering list of its own")]
    step = RowCall("modify_subscriber_steering_list", {"iccid": facts.iccid, "listId": wanted})
    steps = push if now == wanted else (step, *push)
    return [PlannedRow({"steering_list": now}, {"steering_list": wanted}, steps)]


TRAFFIC_MEMBERS = {"data": "allowedData", "moc": "allowedMoc", "mtc": "allowedMtc", "sms": "allowedMosms"}


def traffic_of(facts: ChangeableLine) -> Values:
    return {name: facts.row.get(member) for name, member in TRAFFIC_MEMBERS.items()}


def plan_traffic(change: RequestedChange, facts: ChangeableLine, known: PlanFacts) -> Sequence[RowPlan]:
    del known
    now = traffic_of(facts)
    wanted = {name: now[name] if getattr(change, name) is None else getattr(change, name) for name in TRAFFIC_MEMBERS}
    if any(value is None for value in wanted.values()):
        return [SkippedRow("not_told", "The charging system does not say what the line may do now; name all of data, moc, mtc and sms.")]
    if wanted == now:
        return [already("allowed and barred as asked for")]
    step = RowCall("set_subscriber_traffic_restrictions", {"iccid": facts.iccid, **wanted})
    return [PlannedRow(now, wanted, (step,), irreversible=None in now.values())]


def speed_word(facts: ChangeableLine) -> str:
    limit = facts.row.get("throttlingLimit")
    return f"KB_{limit}" if isinstance(limit, int) and limit else "UNLIMITED"


def plan_speed(change: RequestedChange, facts: ChangeableLine, known: PlanFacts) -> Sequence[RowPlan]:
    del known
    now = speed_word(facts)
    if now == change.speed_limit:
        return [already(f"at {now}")]
    step = RowCall("hlr_set_bitrate", {"iccid": facts.iccid, "bitrateString": change.speed_limit})
    return [PlannedRow({"speed_limit": now}, {"speed_limit": change.speed_limit}, (step,))]


def package_ids(facts: ChangeableLine) -> list[int]:
    return sorted(whole(package.get("packageId")) for package in facts.packages if package.get("packageId") is not None)


def plan_assignment(change: RequestedChange, facts: ChangeableLine, known: PlanFacts) -> Sequence[RowPlan]:
    template = change.package_template_id or 0
    if facts.in_stock:
        return [SkippedRow("in_stock", "No customer has this line yet: issue_esim_from_inventory issues it.")]
    if template not in known.costs:
        return [SkippedRow("template_not_found", f"You have no package template {template}.")]
    before: Values = {"packages": package_ids(facts), "status": facts.status}
    arguments: Values = {"iccid": facts.iccid, "packageTemplateId": template}
    if change.validity_days is not None:
        arguments["validityPeriod"] = change.validity_days
    after: Values = {"added_template": template, "status": "ACTIVE"}
    return [PlannedRow(before, after, (RowCall("assign_package", arguments),), cost=known.costs[template])]


def plan_series(change: RequestedChange, facts: ChangeableLine, known: PlanFacts) -> Sequence[RowPlan]:
    template = change.package_template_id or 0
    if facts.in_stock:
        return [SkippedRow("in_stock", "No customer has this line yet: issue_esim_from_inventory issues it.")]
    if template not in known.costs:
        return [SkippedRow("template_not_found", f"You have no package template {template}.")]
    before: Values = {"packages": package_ids(facts), "series": sorted(facts.series), "status": facts.status}
    after: Values = {"added_series_of_template": template, "status": "ACTIVE"}
    step = RowCall("assign_recurring_package", {"iccid": facts.iccid, "packageTemplateId": template})
    return [PlannedRow(before, after, (step,), cost=known.costs[template])]


def template_of(package: LineRowFacts) -> int:
    template = package.get("packageTemplate")
    named = cast("LineRowFacts", template).get("prepaidpackagetemplateid") if isinstance(template, dict) else None
    return whole(package.get("templateId") or named)


def plan_series_stop(change: RequestedChange, facts: ChangeableLine, known: PlanFacts) -> Sequence[RowPlan]:
    del known
    wanted = change.package_template_id
    found = {id: row for id, row in facts.series.items() if row.get("active", True) and wanted in (None, row.get("template"))}
    if not found:
        return [SkippedRow("no_series", "The line has no series of packages that goes on" + of_template(wanted) + ".")]
    return [
        PlannedRow(
            {"series": id, "active": True},
            {"series": id, "active": False},
            (RowCall("stop_resume_recurring_package", {"iccid": facts.iccid, "packageId": id, "action": "stop"}),),
        )
        for id in sorted(found)
    ]


def of_template(template: int | None) -> str:
    return "" if template is None else f" of the template {template}"


def chosen_packages(change: RequestedChange, facts: ChangeableLine) -> list[LineRowFacts]:
    """The packages that an action is about: those that have not ended, of the template that was named."""
    wanted = change.package_template_id
    return [
        package
        for package in facts.packages
        if package.get("packageId") is not None and package.get("state") not in ENDED_PACKAGES and wanted in (None, template_of(package))
    ]


def no_package(change: RequestedChange) -> SkippedRow:
    return SkippedRow("no_package", "The line has no package that has not ended" + of_template(change.package_template_id) + ".")


def plan_packages(
    plan: Callable[[RequestedChange, ChangeableLine, LineRowFacts, PlanFacts], RowPlan],
) -> Callable[[RequestedChange, ChangeableLine, PlanFacts], Sequence[RowPlan]]:
    """A planner that makes a row for each package that the change is about."""

    def planned(change: RequestedChange, facts: ChangeableLine, known: PlanFacts) -> Sequence[RowPlan]:
        return [plan(change, facts, package, known) for package in chosen_packages(change, facts)] or [no_package(change)]

    return planned


def package_arguments(facts: ChangeableLine, package: LineRowFacts, **more: object) -> Values:
    return {"iccid": facts.iccid, "packageId": package.get("packageId"), **more}


def plan_package_status(change: RequestedChange, facts: ChangeableLine, package: LineRowFacts, known: PlanFacts) -> RowPlan:
    del known
    id, wanted, now = package.get("packageId"), change.status, "INACTIVE" if package.get("active") is False else "ACTIVE"
    if now == wanted:
        return SkippedRow("already", f"The package {id} is {now} already.")
    step = RowCall("modify_package_status", package_arguments(facts, package, status=wanted))
    return PlannedRow({"package": id, "status": now}, {"package": id, "status": wanted}, (step,))


def waits_for_first_use(package: LineRowFacts) -> bool:
    return package.get("tsexpirationutc") is None and package.get("tsactivationutc") is None


def plan_package_expiry(change: RequestedChange, facts: ChangeableLine, package: LineRowFacts, known: PlanFacts) -> RowPlan:
    id, ends = package.get("packageId"), utc_time_text(cast("str | None", package.get("tsexpirationutc")))
    waits = waits_for_first_use(package)
    if waits and change.expires is not None:
        return SkippedRow("waits_for_first_use", f"The package {id} waits for its first use, so it has no end to move: use validityDays.")
    if waits:
        days = package.get("perioddays")
        after: Values = {"package": id, "days": change.validity_days}
        step = RowCall("modify_package_expiry", package_arguments(facts, package, validityDays=change.validity_days))
        return PlannedRow({"package": id, "days": days}, after, (step,), irreversible=not isinstance(days, int))
    moment = change.expires or datetime.fromtimestamp(int(known.now), UTC) + timedelta(days=change.validity_days or 0)
    wanted = utc_text(moment)
    if wanted == ends:
        return SkippedRow("already", f"The package {id} ends then already.")
    step = RowCall("modify_package_expiry", package_arguments(facts, package, expires=wanted))
    return PlannedRow({"package": id, "ends": ends}, {"package": id, "ends": wanted}, (step,), irreversible=ends is None)


def plan_package_limits(change: RequestedChange, facts: ChangeableLine, package: LineRowFacts, known: PlanFacts) -> RowPlan:
    del known
    id = package.get("packageId")
    asked = {shown: getattr(change, name) for name, (shown, _) in LIMIT_MEMBERS.items() if getattr(change, name) is not None}
    now = {shown: package.get(member) or 0 for shown, member in LIMIT_MEMBERS.values() if shown in asked}
    if now == asked:
        return SkippedRow("already", f"The package {id} has these limits already.")
    step = RowCall("modify_package_limits", package_arguments(facts, package, **asked))
    return PlannedRow({"package": id, **now}, {"package": id, **asked}, (step,))


def plan_package_deletion(change: RequestedChange, facts: ChangeableLine, package: LineRowFacts, known: PlanFacts) -> RowPlan:
    del change, known
    id = package.get("packageId")
    template = package.get("packageTemplate")
    lost: Values = {
        "package": id,
        "name": cast("LineRowFacts", template).get("prepaidpackagetemplatename") if isinstance(template, dict) else None,
        "unused_bytes": max(0, whole(package.get("pckdatabyte")) - whole(package.get("useddatabyte"))),
        "ends": utc_time_text(cast("str | None", package.get("tsexpirationutc"))),
    }
    step = RowCall("delete_subscriber_package", package_arguments(facts, package))
    return PlannedRow({"package": id}, {"package": None}, (step,), irreversible=True, lost=lost)


def plan_move(change: RequestedChange, facts: ChangeableLine, known: PlanFacts) -> Sequence[RowPlan]:
    wanted, now = change.account_id or 0, facts.account_id
    if now == wanted:
        return [already(f"in the account {wanted}")]
    if wanted not in known.accounts:
        return [SkippedRow("account_not_found", f"You have no account {wanted}.")]
    if known.accounts.get(now) != known.accounts[wanted]:
        text = f"The account {wanted} is another reseller's: move_subscriber_range_to_account moves lines there, without their packages."
        return [SkippedRow("another_reseller", text)]
    return [PlannedRow({"account": now}, {"account": wanted}, (move_step(facts.iccid, now, wanted),))]


def move_step(iccid: str, source: object, destination: object) -> RowCall:
    """The call that moves one line from an account to another."""
    numbers: Values = {"rangeType": "ICCID", "rangeStart": iccid, "rangeEnd": iccid}
    return RowCall("move_subscriber_range_to_account", {"accountId": source, "destAccount": destination, **numbers})


def plan_tags(change: RequestedChange, facts: ChangeableLine, known: PlanFacts) -> Sequence[RowPlan]:
    del known
    add, remove = set(change.add_tags or ()), set(change.remove_tags or ())
    now = set(facts.tags)
    wanted = (now - remove) | add
    if wanted == now:
        return [already("tagged so")]
    return [PlannedRow({"tags": sorted(now)}, {"tags": sorted(wanted)}, tag_steps(facts.iccid, now, wanted))]


def tag_steps(iccid: str, now: set[str], wanted: set[str]) -> tuple[RowCall, ...]:
    """The calls that turn the tags `now` of a line into those that are `wanted`."""
    taken = [RowCall("untag_lines", {"tag": tag, "iccids": [iccid]}) for tag in sorted(now - wanted)]
    given = [RowCall("tag_lines", {"tag": tag, "iccids": [iccid]}) for tag in sorted(wanted - now)]
    return (*taken, *given)


PLANNERS: Mapping[str, Callable[[RequestedChange, ChangeableLine, PlanFacts], Sequence[RowPlan]]] = {
    "set_status": plan_status,
    "set_steering_list": plan_steering,
    "set_traffic": plan_traffic,
    "set_bitrate": plan_speed,
    "assign_package": plan_assignment,
    "assign_series": plan_series,
    "stop_series": plan_series_stop,
    "set_package_status": plan_packages(plan_package_status),
    "set_package_expiry": plan_packages(plan_package_expiry),
    "set_package_limits": plan_packages(plan_package_limits),
    "delete_packages": plan_packages(plan_package_deletion),
    "move_account": plan_move,
    "set_tags": plan_tags,
    "end_of_life": plan_end,
}

ROW_OPERATIONS = {
    "set_status": ("modify_subscriber_status",),
    "set_steering_list": ("modify_subscriber_steering_list",),
    "set_traffic": ("set_subscriber_traffic_restrictions",),
    "set_bitrate": ("hlr_set_bitrate",),
    "assign_package": ("assign_package",),
    "assign_series": ("assign_recurring_package",),
    "stop_series": ("stop_resume_recurring_package",),
    "set_package_status": ("modify_package_status",),
    "set_package_expiry": ("modify_package_expiry",),
    "set_package_limits": ("modify_package_limits",),
    "delete_packages": ("delete_subscriber_package",),
    "move_account": ("move_subscriber_range_to_account",),
    "set_tags": ("tag_lines", "untag_lines"),
    "end_of_life": ("modify_subscriber_status",),
}
"""The operations that the rows of an action call."""
UNDO_OPERATIONS = {
    "assign_package": ("delete_subscriber_package", "modify_subscriber_status"),
    "assign_series": ("stop_resume_recurring_package", "delete_subscriber_package", "modify_subscriber_status"),
}


def row_operations(change: RequestedChange, *, undoes: bool) -> tuple[str, ...]:
    """The operations that the rows of a set may call: every one of its rows' calls is of these."""
    if undoes:
        return UNDO_OPERATIONS.get(change.action, ROW_OPERATIONS[change.action])
    return (*ROW_OPERATIONS[change.action], *(("push_steering_to_subscriber",) if change.push else ()))
