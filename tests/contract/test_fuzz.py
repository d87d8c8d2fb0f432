"""Schemathesis against the whole application, in process: every check, no failure, no fault of ours."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import orjson
import schemathesis
from schemathesis.config import GenerationConfig, PhasesConfig, ProjectConfig, ProjectsConfig, SchemathesisConfig, StatefulPhaseConfig
from schemathesis.config._auth import AuthConfig
from schemathesis.engine import from_schema
from schemathesis.engine.events import EngineFinished, NonFatalError, ScenarioFinished
from schemathesis.python.asgi import HOST as TEST_SERVER
from schemathesis.python.asgi import shutdown_lifespans

from tests.contract.stage import GUARD, INTERNAL, NEVER, OPERATIONS, SHOP, House, open_house
from transports.http.asgi import Receive, Scope, Send
from transports.openapi.responses import media_types

EXAMPLES = 20
ALLOWED = {501, 502, 503}
NEVER_OFFERED = {f"{o.method} {o.path}": NEVER[o.id] for o in OPERATIONS if o.id in NEVER}
REFUSED_METHOD = {o.path for o in OPERATIONS if o.id == GUARD}
STREAMS = {f"{o.method} {o.path}" for o in OPERATIONS if "text/event-stream" in media_types(o)}


@dataclass
class Stand:
    """The application for a test client of another loop: its house stands as long as the client's lifespan."""

    folder: Path
    house: House | None = None
    secret: str = ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._stand(receive, send)
            return
        assert self.house is not None
        await self.house.world.door(scope, receive, send)

    async def _stand(self, receive: Receive, send: Send) -> None:
        await receive()
        async with open_house(self.folder, TEST_SERVER) as house:
            self.house = house
            self.secret = (await house.stage()).who.secret
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})


def configuration(secret: str) -> SchemathesisConfig:
    """Every check; the same cases in every run."""
    auth = AuthConfig(
        openapi={"bearerAuth": {"bearer": secret}, "internalBearer": {"bearer": INTERNAL}, "storefrontBearer": {"bearer": SHOP}}
    )
    generation = GenerationConfig(max_examples=EXAMPLES, deterministic=True, database="none", no_shrink=True)
    # Sequences of calls run by command; here each operation is asked by itself.
    phases = PhasesConfig(stateful=StatefulPhaseConfig(enabled=False))
    project = ProjectConfig(auth=auth, generation=generation, phases=phases, continue_on_failure=True, workers=1)
    return SchemathesisConfig(projects=ProjectsConfig(default=project), seed=1)


# Rules between fields, each by words of its refusal: a schema speaks of one field at a time.
BETWEEN_FIELDS = (
    "give at least one",
    "give at most one",
    "and so is",
    "exclude each other",
    "were both sent",
    "were given together",
    "either bitrate or bitrateString",
    "lines leave the account of the path",
    "as many digits as rangeStart",
    "share their first",
    "without that mode it means nothing",
    "the mode custom needs it",
    "is not after",
    "is after the end",
    "days; at most",
    "the recurrence means nothing",
    "a recurring template needs",
    "active throttling needs it",
    "active throttling needs a threshold",
    "a threshold is a percentage together with a speed",
    "a template cannot be without it",
    "cannot be set below 0",
    "is required when phoneType is real",
    "is final: the line can never be used again",
    "give exactly one of the two",
    "it is required with amount_off",
    "goes with amount_off alone",
    "it is required when interval is",
    "goes with the interval",
    "it is required without product_id",
    "it is set together with",
    "the last message is the assistant's",
)
# Rules of one field that JSON Schema has no words for.
BEYOND_SCHEMA = (
    "is no ISO 8601 time in UTC",  # a date-time, but of one zone
    "not a cursor of this list",  # whatever a page before has given
    "the network knows no such level",  # bit/s by level; 0 is none
    "got only blanks",
    "no row has such members",  # which ones rows have, the charging system knows
    "is a one-time package",  # what a package is, the network knows
    "must be at least 1 character",  # a comma in a query parts two entries, and leaves an empty one
    "starting_after: ",  # an entry of the list, which a page before has named
    "must be one e-mail address",  # as browsers understand it
    "no affiliate has this code",  # nor has any other text that was not handed out
    "there is no such toolset",  # the deployment says which there are
    "must be one line without control characters",
    "website: must be an address",
    "it is not a time such as",  # the network's own form, without an offset
    "no country has this code",  # which of all pairs of letters are one
    "is before 2010, when no record is of",  # of a date-time; of a number the schema says it
    "is more than 5 minutes ahead of",  # what time it is
    "which has passed; it must be after",
    "must have at most two decimals",  # JSON Schema divides in binary: 33.33 is no multiple of 0.01 there
    "return_url: must be an https address",  # as browsers understand it
    "state: it is unknown, used, older than 10 minutes",  # the call before gave it
    "the code is wrong, was used before or has expired",  # the processor gave it
    "is no time zone of the IANA database",  # which there are
)


def excused(label: str, check: str, status: int, body: dict[str, object]) -> bool:
    """What the checks cannot know, each with its reason."""
    said, param = str(body.get("error")), str(body.get("param"))
    match check:
        case "not_a_server_error":  # promised: the network refuses for a reason of its own (mapping 0.3); some operations are never offered
            refused = status == 502 and body.get("ocs_code") not in (None, 3, 18)
            return refused or body.get("code") == NEVER_OFFERED.get(label, "")
        case "negative_data_rejection":  # what is odd in a notification is not believed, and taken all the same; 413 and 414 refuse, too
            return label == "POST /v1/webhooks/bridge4ip" or status in (413, 414)
        case "positive_data_acceptance":
            return (
                # The limits of all JSON (security.md 3.5); confirm tokens, mailed codes and tokens of the network are not made up.
                body.get("code") in ("invalid_json", "confirm_token_invalid", "form_code_incorrect", "ocs_token_refused")
                or body.get("code") == NEVER_OFFERED.get(label, "")
                or (param == "url" and "webhook_endpoints" in label)  # no schema says which hosts are public
                or param == "cron"  # nor what a cron expression is
                or (param.startswith("input.") and label.endswith("/schedules"))  # the scheduled operation's own schema says it
                or param == "occurred_at"  # no schema says that a date-time is not before 1970
                or (param in ("start", "end") and "; must be " in said)  # nor that a day is of this century
                or any(words in said for words in (*BETWEEN_FIELDS, *BEYOND_SCHEMA))
            )
        case "allow_header_conformance":  # what is documented because it is refused is not allowed
            return status == 405 and label.partition(" ")[2] in REFUSED_METHOD
        case "response_schema_conformance":  # this check holds each event against what OpenAPI 3.1 can only say of the whole text
            return status == 200 and label in STREAMS
        case _:
            return False


def failed(event: ScenarioFinished) -> list[str]:
    """The failures of one scenario that are ours."""
    found: list[str] = []
    for case, checks in event.recorder.checks.items():
        interaction = event.recorder.interactions.get(case)
        response = interaction.response if interaction else None
        for check in checks:
            info = check.failure_info
            status = response.status_code if response else 0
            if info is None or excused(event.label or "", check.name, status, body_of(response.content if response else None)):
                continue
            answered = response.content.decode(errors="replace")[:600] if response else "no answer"
            found.append(f"{event.label} {check.name}: {info.failure.title}\n{info.failure.message}\n{answered}\n{info.code_sample}")
    return found


def body_of(content: bytes | None) -> dict[str, object]:
    """The refusal, where the answer is one."""
    return orjson.loads(content) if content and content[:1] == b"{" else {}


def test_no_generated_call_breaks_a_promise(tmp_path: Path) -> None:
    stand = Stand(tmp_path)
    try:
        schemathesis.openapi.from_asgi("/openapi.json", stand)  # starts it
        schema = schemathesis.openapi.from_asgi("/openapi.json", stand, config=configuration(stand.secret))
        failures: list[str] = []
        statuses: Counter[int] = Counter()
        checked: set[str] = set()
        labels: set[str] = set()
        for event in from_schema(schema).execute():
            if isinstance(event, NonFatalError):
                failures.append(f"{event.label}: {event.value}")
            elif isinstance(event, ScenarioFinished):
                labels.add(event.label or "")
                checked.update(check.name for checks in event.recorder.checks.values() for check in checks)
                statuses.update(each.response.status_code for each in event.recorder.interactions.values() if each.response is not None)
                failures += failed(event)
            elif isinstance(event, EngineFinished):
                assert event.running_time > 0
        assert stand.house is not None
        assert stand.house.world.faults == []
    finally:
        shutdown_lifespans()
    assert not failures, f"{len(failures)} failures\n\n" + "\n\n".join(sorted(set(failures)))
    assert {status for status in statuses if status >= 500} <= ALLOWED
    assert sum(statuses.values()) > 20 * len(OPERATIONS), statuses
    assert len(labels) >= len(OPERATIONS)
    assert checked >= {"ignored_auth", "not_a_server_error", "response_schema_conformance", "status_code_conformance"}
