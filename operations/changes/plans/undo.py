"""Taking rows back: what a line has to be for it, and the calls that make it what it was. Everything here is pure."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, cast

import orjson

from operations.changes.plans.facts import ChangeableLine, whole
from operations.changes.plans.rows import (
    LIMIT_MEMBERS,
    SETTABLE_STATUSES,
    PlannedRow,
    RowCall,
    RowPlan,
    SkippedRow,
    Values,
    move_step,
    package_ids,
    speed_word,
    tag_steps,
    traffic_of,
    waits_for_first_use,
)
from operations.times import utc_time_text
from storage.change_rows import ChangeRow
from storage.line_changes import LineChange


def values_now(wanted: Values, facts: ChangeableLine) -> Values | None:
    """The values of a row (`before` or `after`, by their keys) as they are now; None where the package or series is gone."""
    if wanted.get("package") is not None:
        return package_values(wanted, facts)
    if "active" in wanted:
        series = facts.series.get(whole(wanted["series"]))
        return None if series is None else {"series": wanted["series"], "active": series.get("active", True)}
    found: Mapping[str, Callable[[], object]] = {
        "status": lambda: facts.status,
        "steering_list": lambda: facts.row.get("steeringListId"),
        "speed_limit": lambda: speed_word(facts),
        "packages": lambda: package_ids(facts),
        "series": lambda: sorted(facts.series),
        "account": lambda: facts.account_id,
        "tags": lambda: sorted(facts.tags),
        **{name: lambda name=name: traffic_of(facts)[name] for name in ("data", "moc", "mtc", "sms")},
    }
    return {name: found[name]() for name in wanted if name in found}


def package_values(wanted: Values, facts: ChangeableLine) -> Values | None:
    package = facts.package(wanted["package"])
    if package is None:
        return None
    found: Values = {
        "package": wanted["package"],
        "status": "INACTIVE" if package.get("active") is False else "ACTIVE",
        "ends": utc_time_text(cast("str | None", package.get("tsexpirationutc"))),
        "days": package.get("perioddays") if waits_for_first_use(package) else None,  # from then on days count from a day that has passed
        **{shown: package.get(member) or 0 for shown, member in LIMIT_MEMBERS.values()},
    }
    return {name: found[name] for name in wanted}


def is_unchanged(wanted: Values, facts: ChangeableLine) -> bool:
    """Whether a line still is what a row saw."""
    return values_now(wanted, facts) == wanted


class RowRecord(NamedTuple):
    """A row that took effect, with its values as they are read: what it was, what it became, and what its calls made."""

    action: str
    before: Values
    after: Values
    result: Values


def row_record(action: str, row: ChangeRow) -> RowRecord:
    """The record of a stored row."""
    return RowRecord(action, values_of(row.before), values_of(row.after), values_of(row.result))


def values_of(text: str) -> Values:
    """The values that a row keeps as text."""
    return cast(Values, orjson.loads(text or "{}"))


def expected_values(record: RowRecord) -> Values:
    """What the line has to be now, so that nobody else has changed what the row changed."""
    if record.action in ("assign_package", "assign_series"):
        made = [record.result["package"]] if record.result.get("package") is not None else []
        return {"packages": sorted([*cast("list[int]", record.before["packages"]), *cast("list[int]", made)]), "status": "ACTIVE"}
    return record.after


def plan_undo(record: RowRecord, facts: ChangeableLine, changes: Sequence[LineChange], made: float) -> RowPlan:
    """The row that takes another back. `changes`: who changed the line last; `made`: when the row took effect, Unix seconds."""
    expected = expected_values(record)
    now = values_now(expected, facts)
    if now != expected:
        return SkippedRow("changed_since", changed_sentence(expected, now) + others_since(changes, made, "status", "data"))
    if facts.status == "END_OF_LIFE" and record.action != "set_tags":
        return SkippedRow("subscriber_end_of_life", "The line has reached its end of life, which cannot be undone.")
    steps = undo_steps(record, facts)
    if isinstance(steps, SkippedRow):
        return steps
    return PlannedRow(expected, restored_values(record, expected), steps, irreversible=record.action in ("assign_package", "assign_series"))


def restored_values(record: RowRecord, expected: Values) -> Values:
    return {name: value for name, value in record.before.items() if name in expected}


def changed_sentence(expected: Values, now: Values | None) -> str:
    if now is None:
        return "What was changed is gone, so it cannot be undone."
    names = [name for name, value in expected.items() if now.get(name) != value]
    return f"Changed since: {', '.join(f'{name} is {now.get(name)}, not {expected[name]}' for name in names)[:200]}."


def others_since(changes: Sequence[LineChange], made: float, *kinds: str) -> str:
    """Who barred the line, or set its status, after `made`, as the end of a sentence; empty where nobody did through us."""
    words = {"status": "status set to", "data": "data switched"}
    found = [
        f" {words[each.kind]} {each.value} by {each.actor_kind} {each.key_id or each.actor}."
        for each in changes
        if each.at > made and each.kind in kinds
    ]
    return "".join(found)


def undo_steps(record: RowRecord, facts: ChangeableLine) -> tuple[RowCall, ...] | SkippedRow:
    """The calls that take a row back, or why it cannot be undone."""
    before, iccid = record.before, facts.iccid
    if record.action in ("end_of_life", "delete_packages"):
        return SkippedRow("irreversible", "This cannot be undone.")
    if "status" in before and before.get("package") is None and record.action == "set_status":
        return status_steps(iccid, before["status"])
    simple: Mapping[str, Callable[[], tuple[RowCall, ...]]] = {
        "set_steering_list": lambda: (RowCall("modify_subscriber_steering_list", {"iccid": iccid, "listId": before["steering_list"]}),),
        "set_bitrate": lambda: (RowCall("hlr_set_bitrate", {"iccid": iccid, "bitrateString": before["speed_limit"]}),),
        "stop_series": lambda: (
            RowCall(
                "stop_resume_recurring_package",
                {"iccid": iccid, "packageId": before["series"], "action": "resume" if before["active"] else "stop"},
            ),
        ),
        "set_package_status": lambda: (
            RowCall("modify_package_status", {"iccid": iccid, "packageId": before["package"], "status": before["status"]}),
        ),
        "set_package_limits": lambda: (
            RowCall("modify_package_limits", {"iccid": iccid, "packageId": before["package"], **without_package(before)}),
        ),
        "move_account": lambda: (move_step(iccid, record.after["account"], before["account"]),),
        "set_tags": lambda: tag_steps(iccid, set(cast("list[str]", record.after["tags"])), set(cast("list[str]", before["tags"]))),
    }
    if record.action in simple:
        return simple[record.action]()
    if record.action == "set_traffic":
        if None in before.values():
            return SkippedRow("irreversible", "The charging system did not say what the line was allowed before.")
        return (RowCall("set_subscriber_traffic_restrictions", {"iccid": iccid, **before}),)
    if record.action == "set_package_expiry":
        return expiry_steps(record, iccid)
    return assignment_steps(record, facts)


def without_package(values: Values) -> Values:
    return {name: value for name, value in values.items() if name != "package"}


def status_steps(iccid: str, status: object) -> tuple[RowCall, ...] | SkippedRow:
    if status not in SETTABLE_STATUSES:
        return SkippedRow("irreversible", f"Nobody can make the line {status} again.")
    return (RowCall("modify_subscriber_status", {"iccid": iccid, "status": status}),)


def expiry_steps(record: RowRecord, iccid: str) -> tuple[RowCall, ...] | SkippedRow:
    ends, days = record.before.get("ends"), record.before.get("days")
    if ends is None and not isinstance(days, int):
        return SkippedRow("irreversible", "The package had no end before, and none can be given back.")
    end = {"expires": ends} if ends is not None else {"validityDays": days}
    return (RowCall("modify_package_expiry", {"iccid": iccid, "packageId": record.before["package"], **end}),)


def assignment_steps(record: RowRecord, facts: ChangeableLine) -> tuple[RowCall, ...] | SkippedRow:
    """Deletes the package that was put on the line while nothing of it is used, stops its series, and gives the line its status back."""
    made, series, steps = record.result.get("package"), record.result.get("series"), list[RowCall]()
    package = None if made is None else facts.package(made)
    if series is not None:
        steps.append(RowCall("stop_resume_recurring_package", {"iccid": facts.iccid, "packageId": series, "action": "stop"}))
    if package is not None:
        if any(
            whole(package.get(name)) for name in ("useddatabyte", "usedmocsecond", "usedmtcsecond", "usedmosmsnumber", "usedmtsmsnumber")
        ):
            return SkippedRow("used_since", f"The package {made} has been used since, and what was used cannot be given back.")
        steps.append(RowCall("delete_subscriber_package", {"iccid": facts.iccid, "packageId": made}))
    if not steps:
        return SkippedRow("irreversible", "Nobody knows which package was put on the line.")
    status = record.before["status"]
    if status != "ACTIVE" and status in SETTABLE_STATUSES:
        steps.append(RowCall("modify_subscriber_status", {"iccid": facts.iccid, "status": status}))
    return tuple(steps)
