"""What Schemathesis's checks cannot know, each with its reason."""

from tests.contract.stage import GUARD, NEVER, OPERATIONS, ROLLBACK_OPERATION
from transports.openapi.document import document_media_types

NEVER_OFFERED = {f"{o.method} {o.path}": NEVER[o.id] for o in OPERATIONS if o.id in NEVER}
REFUSED_METHOD = {o.path for o in OPERATIONS if o.id == GUARD}
GIVEN_BACK = next(f"{o.method} {o.path}" for o in OPERATIONS if o.id == ROLLBACK_OPERATION)
REPLACING = {f"{o.method} {o.path}" for o in OPERATIONS if o.replaces is not None}
KEPT = ("/v1/invoices/", "/api/orders/", "/v1/subscribers/issue-from-inventory/")
TOOLS = {f"POST /tools/{o.id}": f"{o.method} {o.path}" for o in OPERATIONS if o.tool}
"""What a tool is called by Schemathesis, and what the same operation is called over HTTP."""
STREAMS = {f"{o.method} {o.path}" for o in OPERATIONS if "text/event-stream" in document_media_types(o)}

JUDGE_INPUT = ("positive_data_acceptance", "negative_data_rejection", "missing_required_header")
# Refusals with a code of their own that no schema foresees.
NO_SCHEMA_SAYS = frozenset(
    {
        "invalid_json",  # the limits of all JSON (docs/security.md)
        "precondition_failed",  # versions are handed out, not made up
        "confirm_token_invalid",  # tokens and codes are handed out, not made up
        "form_code_incorrect",
        "ocs_token_refused",
        "event_unreadable",  # a signed event of a shape that the processor never sends
        "payments_refused",  # what the processor has, only it knows
        "refund_too_large",  # what is left of a charge
        "promise_exceeds_template",  # what a template has, only the charging system knows
        "method_not_allowed",  # the documented refusal of the GET that is none
    }
)
# Rules between fields, each by words of its refusal: a schema speaks of one field at a time.
BETWEEN_FIELDS = (
    "give at least one",
    "no type of events fits",  # the names that there are
    "it must be above days_to_open",
    "without a value; intents are found",
    "must be a cursor that a stream of events gave",
    "is past the end of your log",
    "there is no type",
    "asked for with an API key",  # only somebody who is signed in has a mail address
    "so that no event fits",
    "an endpoint without types",
    "Nothing is to change",
    "these types you may read no event",
    "there is no such operation",  # the names that there are
    "it is of one line, and no iccid is given",
    "give at most one",
    "and so is",
    "exclude each other",
    "were both sent",
    "were given together",
    "given together with",
    "the lines are there already",
    "and iccid is missing",
    "and iccid names an eSIM",
    "either bitrate or bitrateString",
    "lines leave the account of the path",
    "as many digits as rangeStart",
    "share their first",
    "without that mode it means nothing",
    "the mode custom needs it",
    "is not after",
    "is above maxDays",
    "is too much for adapt",
    "is after the end",
    "days; at most",
    "the recurrence means nothing",
    "a recurring template needs",
    "active throttling needs it",
    "active throttling needs a threshold",
    "a threshold is a percentage together with a speed",
    "cannot be set below 0",
    "is required when phoneType is real",
    "is final: the line can never be used again",
    "give exactly one of the two",
    "by exactly one of iccids, query and tagged",
    "which would mean every line",
    "it is required with amount_off",
    "goes with amount_off alone",
    "it is required when interval is",
    "goes with the interval",
    "it is required without product_id",
    "it is set together with",
    "the last message is the assistant's",
    "does not take it",  # a field that is another action's
    "; set_status takes ",
    "; set_package_status takes ",
    "missing; the action ",
    "say which lines by exactly one of",
    "takes no value of a line's own",
    "without a price: your organisation's rate is in its own currency",
)
# Rules of one field that JSON Schema has no words for.
BEYOND_SCHEMA = (
    "it is neither Unix seconds nor RFC 3339",  # a number in a query is written without an exponent
    "is no ISO 8601 time in UTC",  # a date-time, but of one zone
    "in quotes or not; got 2 characters",  # a string without content, in quotes
    "not a cursor of this list",  # whatever a page before has given
    "the network knows no such level",  # bit/s by level; 0 is none
    "got only blanks",
    "got no filter, which would mean every line",
    "lines.csv: line ",  # what a table holds
    "no line matches",  # which lines there are, the fleet knows
    "it is not that of this plan",  # a digest that a plan before has given
    "no row has such members",  # which ones rows have, the charging system knows
    "is a one-time package",  # what a package is, the network knows
    "stands for no type of events",  # which types there are
    "a tool answers JSON alone",  # the schema is one for every door
    "must be at least 1 character",  # a comma in a query parts two entries, and leaves an empty one
    "starting_after: ",  # an entry of the list, which a page before has named
    "must be one e-mail address",  # as browsers understand it
    "no affiliate has this code",
    "nobody in the affiliate programme has this code",  # nor has any other text that was not handed out
    "is not the charge's",  # the processor knows which currency it was
    "there is no such toolset",  # the deployment says which there are
    "must be one line without control characters",
    "it is not a time such as",  # the network's own form, without an offset
    "no country has this code",  # which of all pairs of letters are one
    "is before 2010, when no record is of",  # of a date-time; of a number the schema says it
    "is more than 5 minutes ahead of",  # what time it is
    "which has passed; it must be after",
    "must be in the future, and at most",
    "the product is priced in",  # which the call that made the product said
    "so the invoice is sent through it to a recipient",  # once the account is active, which the processor says
    "must have at most two decimals",  # JSON Schema divides in binary: 33.33 is no multiple of 0.01 there
    "address such as https://fjord.example",  # as browsers understand it
    "holds no user name and no password",
    "must hold more than space",  # of all that Unicode knows, and what is not assigned yet is nothing to see
    "nothing in it can be seen",
    "webhook_url: has a space",
    "webhook_url: not an absolute URL",  # nor which hosts are public
    "state: it is unknown, used, older than 10 minutes",  # the call before gave it
    "the code is wrong, was used before or has expired",  # the processor gave it
    "is no time zone of the IANA database",  # which there are
)


def excused(label: str, check: str, status: int, body: dict[str, object], *, message: str = "", replayed: bool = False) -> bool:
    """What the checks cannot know, each with its reason."""
    asked, label = label, TOOLS.get(label, label)
    said, param = str(body.get("error")), str(body.get("param"))
    if status == 402:  # who may not call it is told so first, whatever they sent; an admin never is, which the engine looks after
        return check in JUDGE_INPUT
    match check:
        case "not_a_server_error":  # some operations are never offered
            return body.get("code") == NEVER_OFFERED.get(label, "")
        case "negative_data_rejection":  # what is odd in a notification is not believed, and taken all the same; 413 and 414 refuse, too
            # What is only repeated is repeated before the token is looked at; so is an eSIM that was given back already.
            # Some calls ask for a token only where they would replace something live; else nobody looks at it.
            token = "`X-Confirm-Token` in header" in message and (replayed or label == GIVEN_BACK or label in REPLACING)
            return token or label == "POST /v1/webhooks/bridge4ip" or status in (413, 414)
        case "positive_data_acceptance":
            return (
                "ocs_code" in body  # the network refuses for a reason of its own: no schema has its names and states
                or body.get("code") in NO_SCHEMA_SAYS
                or body.get("code") == NEVER_OFFERED.get(label, "")
                or (param == "url" and "webhook_endpoints" in label)  # no schema says which hosts are public
                or param == "If-Match"  # its coverage phase sends 0 for a header whatever its pattern is
                or param == "cron"  # nor what a cron expression is
                or (param.startswith("input.") and label.endswith("/schedules"))  # the scheduled operation's own schema says it
                or param in ("occurred_at", "since", "until")  # no schema says that a date-time is not before 1970
                or (asked.startswith("GET ") and "got an array; must hold at most" in said)  # a comma parts two entries
                or (param in ("start", "end") and "; must be " in said)  # nor that a day is of this century
                or any(words in said for words in (*BETWEEN_FIELDS, *BEYOND_SCHEMA))
            )
        case "use_after_free":  # what money hangs on is voided or given back, and stays to be read
            return any(f"DELETE {path}" in message for path in KEPT)
        case "allow_header_conformance":  # what is documented because it is refused is not allowed
            return status == 405 and label.partition(" ")[2] in REFUSED_METHOD
        case "response_schema_conformance":  # this check holds each event against what OpenAPI 3.1 can only say of the whole text
            return status == 200 and label in STREAMS
        case _:
            return False
