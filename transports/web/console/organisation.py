"""The page Organisation: its members, its keys with the most that each can do, and what they did last; and the page of one key.

Who changes members or ends keys has signed in at most 15 minutes ago, and was asked before something ends.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, cast
from urllib.parse import urlencode

from starlette.responses import Response

from operations.setup.credentials.worst_case import NAMED_OPERATIONS
from registry.clock import rfc3339_utc
from transports.web.console.audit_log import audit_line, find_rows, key_names
from transports.web.console.request import ConsoleRequest, PageRead
from transports.web.pages.calls import CallOutcome, filled_fields
from transports.web.pages.request import CONSOLE_PATH, PageProblem, unknown_form
from transports.web.site import PageRoute

MEMBERS_A_PAGE, KEYS_A_PAGE = 50, 20
LAST_CALLS, CALLS_OF_KEY = 5, 20
KEYS_LOOKED_THROUGH = 5
"""Pages of a hundred keys in which the name of one is looked for."""
ENDING_OPERATIONS, REVOKED_WITHIN_SECONDS = ("revoke_api_key", "remove_member"), 2
"""What ends a key, and how long after the moment that the key shows its row in the audit log is at most."""
PAGING_FIELDS = ("members", "keys")


class KeyLine(NamedTuple):
    """A key with the most that it can do, in a sentence; `why_off`: why the person may not revoke it."""

    key: Mapping[str, object]
    sentence: str
    limited: bool
    why_off: str


async def show_organisation(visit: ConsoleRequest, problem: PageProblem | None = None) -> Response:
    """Who and what may act for us, and what did they do?"""
    members_page, keys_page = page_of(visit, "members", MEMBERS_A_PAGE), page_of(visit, "keys", KEYS_A_PAGE)
    found = await visit.read_together(
        members=PageRead("list_members", members_page),
        keys=PageRead("list_api_keys", keys_page),
        connection=PageRead("get_onboarding_state", {}),
        alerts=PageRead("get_alerts", {}),
        mails=PageRead("get_mail_subscriptions", {}),
    )
    lines, calls = await key_lines(visit, found["keys"].rows), await find_rows(visit, {}, most=LAST_CALLS)
    facts: Mapping[str, object] = {
        **found,
        "key_lines": lines,
        "people": acting_people(visit, found["members"], lines),
        "unlimited": sum(not line.limited for line in lines if line.key["status"] == "active"),
        "calls": calls,
        "last": [audit_line(visit, row, key_names(found["keys"])) for row in calls.rows],
        "typed": visit.form if problem is not None else {},
        "more_members": next_page_of(visit, "members", found["members"]),
        "more_keys": next_page_of(visit, "keys", found["keys"]),
        "stale": not visit.signed_in_lately,
        "me_id": visit.who.person,
        "done": visit.query.get("done", ""),
    }
    return visit.draw("organisation.html", facts, problem=problem)


def page_of(visit: ConsoleRequest, name: str, size: int) -> dict[str, object]:
    """The arguments of one of the two lists; the address says after which row each begins."""
    after = visit.query.get(name, "")
    return {"limit": size, **({"starting_after": after} if after else {})}


def next_page_of(visit: ConsoleRequest, name: str, listed: CallOutcome) -> str:
    """The address of the next rows of one list, which leaves the other where it is; empty where there are no more."""
    if not listed.rows or not listed.body.get("has_more"):
        return ""
    kept = {each: visit.query[each] for each in PAGING_FIELDS if visit.query.get(each)}
    return f"?{urlencode({**kept, name: str(listed.rows[-1]['id'])})}"


async def key_lines(visit: ConsoleRequest, keys: Sequence[Mapping[str, object]]) -> list[KeyLine]:
    """Each key with its worst case. One that has ended can do nothing, so nothing is worked out for it."""
    asked = {str(key["id"]): PageRead("explain_key", {"id": key["id"]}) for key in keys if key["status"] == "active"}
    before = len(visit.reads)
    explained = await visit.read_together(**asked)
    del visit.reads[before + 1 :]  # one of them shows a program how the others are asked
    return [key_line(visit, key, explained.get(str(key["id"]))) for key in keys]


def key_line(visit: ConsoleRequest, key: Mapping[str, object], explained: CallOutcome | None) -> KeyLine:
    own = cast(Mapping[str, object], key["made_by"])["id"] == visit.who.person
    why_off = visit.may("revoke_api_key") or ("" if own or not visit.may("invite_member") else visit.say("organisation.keys_of_others"))
    if explained is None:
        return KeyLine(key, visit.say("organisation.key_ended"), limited=True, why_off=why_off)
    if explained.problem is not None:
        return KeyLine(key, visit.say("organisation.keys_of_others_hidden"), limited=True, why_off=why_off)
    worst = cast(Mapping[str, object], explained.body["worst_case"])
    return KeyLine(key, worst_words(visit, worst), limited=worst["money_a_day"] is not None, why_off=why_off)


def worst_words(visit: ConsoleRequest, worst: Mapping[str, object]) -> str:
    """The worst case in one sentence of the reader's language."""
    texts, calls, lines = visit.texts, cast("int | None", worst["calls"]), cast("int | None", worst["lines"])
    money, acts = cast("Mapping[str, object] | None", worst["money_a_day"]), cast(Sequence[Mapping[str, object]], worst["cannot_be_undone"])
    parts = {
        "calls": visit.say("organisation.calls_endless") if calls is None else texts.count("organisation.calls", calls),
        "lines": visit.say("organisation.lines_endless") if lines is None else texts.count("organisation.lines", lines),
        "money": visit.say("organisation.money_endless") if money is None else shown_sum(visit, money),
    }
    if not acts:
        return visit.say("organisation.worst_undoable", **parts)
    names = ", ".join(visit.operation_title(str(act["operation"])) for act in acts[:NAMED_OPERATIONS])
    more = " " + visit.say("organisation.and_others") if len(acts) > NAMED_OPERATIONS else ""
    asked = all(act["approval"] for act in acts)
    sentence = texts.count("organisation.worst_final", len(acts), names=names + more, **parts)
    return f"{sentence} {visit.say('organisation.final_waits')}" if asked else sentence


def shown_sum(visit: ConsoleRequest, money: Mapping[str, object]) -> str:
    """An amount of a limit, which is in minor units."""
    return visit.texts.money(cast(int, money["amount"]), str(money["currency"]))


def acting_people(visit: ConsoleRequest, members: CallOutcome, lines: Sequence[KeyLine]) -> str:
    """How many people and keys may act for the organisation, as far as this page lists them."""
    people = sum(row["status"] == "active" for row in members.rows)
    keys = sum(line.key["status"] == "active" for line in lines)
    both = (visit.texts.count("organisation.people", people), visit.texts.count("organisation.active_keys", keys))
    whole = not members.body.get("has_more") and not any(visit.query.get(name) for name in PAGING_FIELDS)
    return visit.say("organisation.verdict" if whole else "organisation.verdict_of_page", people=both[0], keys=both[1])


async def post_organisation(visit: ConsoleRequest) -> Response:
    """Ask somebody in, end a membership, an invitation or a key; or sign in again first."""
    do = visit.form.get("do")
    if do not in ("invite", "remove", "revoke", "again"):
        raise unknown_form()
    if do == "again" or not visit.signed_in_lately:
        return await visit.sign_in_again(f"{CONSOLE_PATH}{visit.path}")
    if do == "invite":
        outcome = await visit.press("invite_member", filled_fields(visit.form, "email", "role"))
        return visit.go("/organisation?done=invited") if outcome.problem is None else await show_organisation(visit, outcome.problem)
    asked = ask_before_ending(visit, do)
    if asked is not None:
        return asked
    operation = "remove_member" if do == "remove" else "revoke_api_key"
    outcome = await visit.press(operation, filled_fields(visit.form, "id"))
    if outcome.problem is not None:
        return await show_organisation(visit, outcome.problem)
    return visit.go("/organisation?done=" + ("removed" if do == "remove" else "revoked"))


def ask_before_ending(visit: ConsoleRequest, do: str) -> Response | None:
    """The page that asks whether the person means it; None once they have said so."""
    about = visit.form.get("about") or visit.form.get("id", "")
    title, text = visit.say(f"organisation.{do}_title", name=about), visit.say(f"organisation.{do}_question")
    return visit.ask_of_ours(title=title, text=text, button=visit.say(f"organisation.{do}"), back=visit.path)


async def show_key(visit: ConsoleRequest, problem: PageProblem | None = None) -> Response:
    """What may this key do at worst, how much of it is used, and what did it do last?"""
    key = visit.request.path_params["key"]
    found = await visit.read_together(
        explained=PageRead("explain_key", {"id": key}),
        calls=PageRead("list_audit_log", {"key_id": key, "limit": CALLS_OF_KEY}),
    )
    row = await listed_key(visit, key)
    explained = found["explained"]
    body: Mapping[str, object] = explained.body if explained.problem is None else {}
    facts: Mapping[str, object] = {
        **found,
        "key_id": key,
        "line": None if row is None else key_line(visit, row, explained),
        "words": restriction_words(visit, cast("Mapping[str, object] | None", body.get("restrictions"))),
        "uses": [use_words(visit, use) for use in cast(Sequence[Mapping[str, object]], body.get("used", ()))],
        "worst": body.get("worst_case"),
        "last": [audit_line(visit, call, {}) for call in found["calls"].rows],
        "revoked_by": "" if row is None else await who_revoked(visit, row),
        "stale": not visit.signed_in_lately,
    }
    missing = explained.problem if row is None else None
    return visit.draw("organisation_key.html", facts, problem=problem or missing)


async def who_revoked(visit: ConsoleRequest, key: Mapping[str, object]) -> str:
    """Who ended a key, by the audit log: the one who ended a key then, or the membership of its maker. Empty where it tells no single one.

    The log keeps no arguments, so the moment has to tell which row it was.
    """
    if key["revoked_at"] is None:
        return ""
    moment = datetime.fromisoformat(str(key["revoked_at"])).timestamp()
    window = {"outcome": "ok", "from": rfc3339_utc(moment), "to": rfc3339_utc(moment + REVOKED_WITHIN_SECONDS), "limit": 2}
    before = len(visit.reads)
    found = [await visit.read("list_audit_log", operation=operation, **window) for operation in ENDING_OPERATIONS]
    del visit.reads[before:]
    rows = next((listed.rows for listed in found if listed.rows), None)
    return str(rows[0]["principal_name"] or rows[0]["principal"]) if rows is not None and len(rows) == 1 else ""


async def listed_key(visit: ConsoleRequest, key: str) -> Mapping[str, object] | None:
    """The key as the list of keys has it; None for one that is not in the first hundreds."""
    before, after = len(visit.reads), dict[str, object]()
    for _ in range(KEYS_LOOKED_THROUGH):
        listed = await visit.read("list_api_keys", limit=100, **after)
        found = next((row for row in listed.rows if row["id"] == key), None)
        if found is not None or not listed.rows or not listed.body.get("has_more"):
            break
        after = {"starting_after": listed.rows[-1]["id"]}
    else:
        found = None
    del visit.reads[before + 1 :]
    return found


def restriction_words(visit: ConsoleRequest, held: Mapping[str, object] | None) -> list[str]:
    """Each restriction of a key as a phrase in the reader's language."""
    if held is None:
        return []
    said = [visit.say(f"organisation.held_{name}") for name in ("read_only", "no_admin") if held.get(name)]
    for name in ("toolsets", "iccids", "account_ids", "tags"):
        if held.get(name) is not None:
            said.append(visit.say(f"organisation.held_{name}", names=", ".join(map(str, cast(Sequence[object], held[name])))))
    if held.get("calls_per_day") is not None:
        said.append(visit.say("organisation.held_calls_per_day", count=visit.texts.whole(cast(int, held["calls_per_day"]))))
    for name in ("spend_per_call", "spend_per_day", "spend_per_month", "approve_above"):
        if held.get(name) is not None:
            said.append(visit.say(f"organisation.held_{name}", money=shown_sum(visit, cast(Mapping[str, object], held[name]))))
    for operation, count in cast(Mapping[str, int], held.get("times") or {}).items():
        said.append(visit.say("organisation.held_times", operation=operation, count=visit.texts.whole(count)))
    if held.get("approval") in ("irreversible", "every_write"):
        said.append(visit.say(f"organisation.held_approval_{held['approval']}"))
    return said + ([visit.say("organisation.held_another_person")] if held.get("another_person") else [])


class LimitLine(NamedTuple):
    """One limit of a key and its use, in words; `again` is when it is whole again, RFC 3339."""

    name: str
    used: str
    left: str
    again: str


def use_words(visit: ConsoleRequest, use: Mapping[str, object]) -> LimitLine:
    """The use of one limit. Money is in minor units."""
    limit, unit = str(use["limit"]), str(use["unit"])
    is_money = limit.startswith("spend_")

    def figure(name: str) -> str:
        number = cast(int, use[name])
        return visit.texts.money(number, unit) if is_money else visit.texts.whole(number)

    name = visit.say(f"organisation.limit_{limit}", operation=unit)
    used = visit.say("organisation.used_of", used=figure("used"), most=figure("most"))
    return LimitLine(name, used, figure("left"), str(use["starts_again"]))


async def post_key(visit: ConsoleRequest) -> Response:
    """End the key that the page is about; or sign in again first."""
    do, key = visit.form.get("do"), visit.request.path_params["key"]
    if do not in ("revoke", "again"):
        raise unknown_form()
    if do == "again" or not visit.signed_in_lately:
        return await visit.sign_in_again(f"{CONSOLE_PATH}{visit.path}")
    asked = ask_before_ending(visit, "revoke")
    if asked is not None:
        return asked
    outcome = await visit.press("revoke_api_key", {"id": key})
    return visit.go(f"/organisation/keys/{key}") if outcome.problem is None else await show_key(visit, outcome.problem)


ORGANISATION_ROUTES: Mapping[str, PageRoute[ConsoleRequest]] = {
    "/organisation": PageRoute(show_organisation, post_organisation),
    "/organisation/keys/{key}": PageRoute(show_key, post_key),
}
