"""The page of settings: when the organisation is warned, and what the person who is signed in is told by mail.

A form says which version it was made from. Who sends one that is old is told so, and loses nothing of what another tab has saved.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple, cast, get_args

from starlette.responses import Response

from operations.connectivity.destinations.mail_subscriptions import MailLanguage
from operations.ledger.event_letters import happened_text
from operations.ledger.mail_kinds import AT_ONCE, DIGEST, MailTiming, for_admins_alone, mail_types, mail_types_of
from operations.times import timezone_names
from registry.caller import Role
from transports.web.console.request import ConsoleRequest, PageRead
from transports.web.pages.request import PageProblem, unknown_form
from transports.web.site import PageRoute

ALERT_SWITCHES = ("balance", "stock", "sync", "quota", "upstream")
ALERT_NUMBERS = ("days_to_open", "days_to_close", "quota_percent")
WHOLE_NUMBER = re.compile(r"[0-9]{1,9}", re.ASCII)
KIND_FIELD = "kind "
"""What a field of the form begins with that chooses for the kind after it."""
SINGLES_SHOWN = 25
"""Kinds by themselves that are shown; what is chosen for others stays as it is."""
HOURS = range(24)


class MailLine(NamedTuple):
    """A kind of mails of the form: a family such as `order.*`, or one that was chosen by itself."""

    kind: str
    words: str
    timing: str


async def show_settings(visit: ConsoleRequest, problem: PageProblem | None = None) -> Response:
    """When are we warned, what am I told by mail, and where is the rest set?"""
    found = await visit.read_together(
        alerts=PageRead("get_alerts", {}), mails=PageRead("get_mail_subscriptions", {}), connection=PageRead("get_onboarding_state", {})
    )
    alerts, mails = found["alerts"], found["mails"]
    do = visit.form.get("do", "") if problem is not None else ""
    kinds = cast(Mapping[str, str], mails.body.get("kinds", {}))
    facts: Mapping[str, object] = {
        **found,
        "do": do,
        "switches": ALERT_SWITCHES,
        "set_alerts": typed_alerts(visit) if do == "alerts" else alerts.body.get("settings", {}),
        "lines": mail_lines(visit, kinds, typed=do == "mails"),
        "others": [(type, happened_text(visit.texts, type)) for type in offered_types(visit) if type not in kinds],
        "timings": get_args(MailTiming),
        "told": timing_words(visit, cast(Mapping[str, str], mails.body.get("told", {}))),
        "mail_choice": visit.form if do == "mails" else {**mails.body, "digest_hour": str(mails.body.get("digest_hour"))},
        "hours": [(str(hour), f"{hour:02d}:00") for hour in HOURS],
        "zones": timezone_names(),
        "languages": get_args(MailLanguage),
        "done": visit.query.get("done", ""),
    }
    return visit.draw("settings.html", facts, problem=problem)


def offered_types(visit: ConsoleRequest) -> list[str]:
    """The types that the person may be told of."""
    admin = visit.acting.role is Role.ADMIN
    return [type for type in mail_types() if admin or not for_admins_alone(type)]


def families(visit: ConsoleRequest) -> list[str]:
    """The globs of the families that the person may be told of, such as `order.*`."""
    return list(dict.fromkeys(f"{type.partition('.')[0]}.*" for type in offered_types(visit)))


def mail_lines(visit: ConsoleRequest, kinds: Mapping[str, str], *, typed: bool) -> list[MailLine]:
    """The families, then what was chosen by itself; with what was typed where that was refused."""
    whole = families(visit)
    singles = [kind for kind in kinds if kind not in whole][:SINGLES_SHOWN]
    found = [(kind, visit.word("settings", f"family_{kind.removesuffix('.*')}")) for kind in whole]
    found += [(kind, happened_text(visit.texts, kind) if mail_types_of(kind) == (kind,) else kind) for kind in singles]
    return [MailLine(kind, words, visit.form.get(f"{KIND_FIELD}{kind}", "") if typed else kinds.get(kind, "")) for kind, words in found]


def timing_words(visit: ConsoleRequest, told: Mapping[str, str]) -> list[tuple[str, list[str]]]:
    """What the person is told of at once, and what in the digest."""
    grouped = [
        (timing, [happened_text(visit.texts, type) for type, each in told.items() if each == timing]) for timing in (AT_ONCE, DIGEST)
    ]
    return [(timing, types) for timing, types in grouped if types]


def typed_alerts(visit: ConsoleRequest) -> dict[str, object]:
    """What the form asks for. A number that cannot be read stays a text, which the operation refuses by its name."""
    numbers = {name: visit.form.get(name, "") for name in ALERT_NUMBERS}
    read = {name: int(text) if WHOLE_NUMBER.fullmatch(text) else text for name, text in numbers.items()}
    return {**{name: visit.form.get(name) == "on" for name in ALERT_SWITCHES}, **read}


async def post_settings(visit: ConsoleRequest) -> Response:
    """Keep the choice of alerts, or of mails."""
    match visit.form.get("do"):
        case "alerts":
            problem = await keep_alerts(visit)
        case "mails":
            problem = await keep_mails(visit)
        case _:
            raise unknown_form()
    return visit.go(f"/organisation/settings?done={visit.form['do']}") if problem is None else await show_settings(visit, problem)


async def keep_alerts(visit: ConsoleRequest) -> PageProblem | None:
    """Sets what the form asks for, unless somebody else has changed it since the form was shown; why not."""
    wanted, now = typed_alerts(visit), await visit.read("get_alerts")
    if now.problem is not None:
        return now.problem
    if now.body["settings"] == wanted:
        return None
    return (await visit.press("set_alerts", wanted)).problem


async def keep_mails(visit: ConsoleRequest) -> PageProblem | None:
    """Sets what the form asks for; what is chosen for kinds that it does not show stays. Why not, where it is refused."""
    now = await visit.read("get_mail_subscriptions")
    if now.problem is not None:
        return now.problem
    hour = visit.form.get("digest_hour", "")
    wanted: dict[str, object] = {
        "kinds": chosen_kinds(visit, cast(Mapping[str, str], now.body["kinds"])),
        "digest_hour": int(hour) if WHOLE_NUMBER.fullmatch(hour) else hour,
        "timezone": visit.form.get("timezone", ""),
        "language": visit.form.get("language", ""),
    }
    if all(now.body[name] == value for name, value in wanted.items()):
        return None
    return (await visit.press("set_mail_subscriptions", wanted)).problem


def chosen_kinds(visit: ConsoleRequest, kept: Mapping[str, str]) -> dict[str, str]:
    """What holds for each kind once the form is kept: an empty choice of it takes a kind away, and one more may be added."""
    asked = {name.removeprefix(KIND_FIELD): value for name, value in visit.form.items() if name.startswith(KIND_FIELD)}
    added = visit.form.get("add", "")
    if added:
        asked[added] = visit.form.get("add_timing", "")
    return {kind: timing for kind, timing in {**kept, **asked}.items() if timing}


SETTINGS_ROUTES: Mapping[str, PageRoute[ConsoleRequest]] = {"/organisation/settings": PageRoute(show_settings, post_settings)}
