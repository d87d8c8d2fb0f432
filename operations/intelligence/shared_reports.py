"""A scheduled report as strangers read it who were given its link."""

from typing import Annotated, Literal, cast

import orjson
from pydantic import Field
from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.intelligence.reports.page import ORGANISATION_NAME_LENGTH, ReportContent, report_headers, report_html, visible_line
from operations.intelligence.reports.redaction import (
    RedactionScan,
    RoundedNumber,
    public_sentence,
    redact_html,
    redact_json,
    redact_sheet,
    redact_text,
)
from operations.intelligence.reports.sheet import ReportBody, Sheet
from operations.secret_tokens import secret_digest
from registry.errors import NotFound
from registry.free_text import FreeText
from registry.operation import Auth, Document, Example, Input, Scope, operation
from storage.schedule_reports import SharedLink, shared_by


class SharedReportLeak(Exception):
    """Something in a report for strangers was not what it should be, and was blotted out: a fault of ours."""


class ShareRef(Input):
    """Which link, and what to answer."""

    token: Annotated[str, Field(description="The end of `share_url`.")]
    format: Annotated[
        Literal["json", "html"] | None,
        Field(description="`html`: a page to read and to print. Left out: the page for browsers (Accept: text/html), else JSON."),
    ] = None


class SharedReport(TypedDict):
    """A report without identifiers. Before the first report is finished, `ready` is false and what a report would say is null."""

    object: Literal["intelligence.shared_report"]
    organization: Annotated[FreeText, Field(description="Who shares it")]
    composite: Annotated[str, Field(description="The operation that made it")]
    ready: bool
    generated_at: Annotated[str | None, Field(description="RFC 3339, UTC")]
    method: Annotated[str | None, Field(description="How the figures were made, in a sentence")]
    sampled: Annotated[int | None, Field(description="Lines that were looked into")]
    of: Annotated[int | None, Field(description="Lines there were")]
    sheet: Annotated[Sheet | None, Field(description="The figures, charts and tables; `[redacted]` stands for what is left out")]


SHARED_REPORT_EXAMPLE: SharedReport = {
    "object": "intelligence.shared_report",
    "organization": "Fjord Travel",
    "composite": "high_cost_subscribers",
    "ready": True,
    "generated_at": "2027-01-15T12:00:00Z",
    "method": "Cost of each line by network, added up from the charging system's records.",
    "sampled": 120,
    "of": 120,
    "sheet": {
        "title": "Lines that cost most",
        "headline": "3 lines made half of the cost",
        "figures": [{"label": "Cost", "kind": "money", "value": 412.5}],
        "charts": [],
        "tables": [
            {
                "title": "Lines",
                "columns": [{"label": "Line", "kind": "line"}, {"label": "Country", "kind": "country"}, {"label": "Cost", "kind": "money"}],
                "rows": [["Line 1", "NO", 96.4]],
                "note": None,
            }
        ],
    },
}


async def find_shared_report(ctx: Ctx, params: ShareRef) -> SharedLink:
    """The report behind the link; raises NotFound. The request's line in the log names the organisation that shares it.

    Choice: any text is looked up by its digest, so that a malformed token takes as long as a wrong one.
    """
    found = await ctx.deps.store.read(shared_by, digest=secret_digest(params.token), now=ctx.now)
    if found is None:
        raise NotFound("There is no report at this link", hint="It was mistyped, or whoever shared it has ended it: ask them for another")
    ctx.act_for(found.link.organisation)
    return found


@operation(
    "GET",
    "/v1/intelligence/share/{token}",
    scope=Scope.NONE,
    auth=Auth.PUBLIC,
    enumeration_guarded=True,
    access=find_shared_report,
    title="Get shared report",
    raises=[NotFound],
    examples=[Example("What was I sent?", {"token": "pX2v0Qm4Jc8s1bWkLr7tYzE5uHnD9gAf3iOe6oVxMqU"}, SHARED_REPORT_EXAMPLE)],
)
async def get_intelligence_share(ctx: Ctx, params: ShareRef, shared: SharedLink) -> SharedReport | Annotated[Document, "text/html"]:
    """Get the newest report behind a share link, subscriber identifiers redacted.

    Public: the link is the key. A browser is shown a page that carries the organisation's name, and so is `format=html`.

    Lines are numbered for each report anew; names, notes and everything else that is not a figure, a day, a country, a network or a
    word of ours is left out. Deleting the schedule ends the link at once. A link without a finished report yet answers `ready: false`.
    """
    answer, faults = shared_report_answer(shared)
    is_page = params.format == "html" or (params.format is None and ctx.call.prefers_page)
    shown = ReportContent(
        answer["organization"], answer["sheet"], answer["generated_at"], answer["method"], answer["sampled"], answer["of"]
    )
    content = report_html(shown) if is_page else orjson.dumps(answer, default=short_json_number)
    found = redact_html(content) if is_page else redact_json(content)
    tell_leak(ctx, shared.link.composite, faults, found)
    return Document(found.content, "text/html; charset=utf-8" if is_page else "application/json", report_headers())


def shared_report_answer(shared: SharedLink) -> tuple[SharedReport, list[str]]:
    """The answer, and the kinds of values that did not look like their kind."""
    link, report = shared
    organisation, _ = redact_text(visible_line(link.name, ORGANISATION_NAME_LENGTH))  # it may hold its own address: no fault of ours
    answer: SharedReport = {
        "object": "intelligence.shared_report",
        "organization": organisation,
        "composite": link.composite,
        "ready": report is not None,
        "generated_at": None,
        "method": None,
        "sampled": None,
        "of": None,
        "sheet": None,
    }
    if report is None:
        return answer, []
    body = cast(ReportBody, orjson.loads(report.body))
    made, told = redact_sheet(body["sheet"]), body["finding"]
    method = public_sentence(told["method"])
    answer["generated_at"], answer["method"] = told["generated_at"], method
    answer["sampled"], answer["of"], answer["sheet"] = told["sampled"], told["of"], made.sheet
    return answer, [*made.faults, *([] if method is not None else ["method"])]


def short_json_number(value: object) -> orjson.Fragment:
    """A number with very many digits, shortened to four: written out it would look like an identifier."""
    if not isinstance(value, RoundedNumber):
        raise TypeError(f"a shared report holds a {type(value).__name__}")
    return orjson.Fragment(f"{float(value):.3e}")


def tell_leak(ctx: Ctx, composite: str, faults: list[str], found: RedactionScan) -> None:
    """Reports to the operator what was removed as an identifier, without the identifier itself."""
    parts = [f"no {kind}" for kind in sorted(set(faults))]
    parts += [f"{found.hits} like identifiers"] if found.hits else []
    if parts:
        ctx.deps.internal_calls.tell(ctx.call, SharedReportLeak(f"values left out of a shared report of {composite}: {', '.join(parts)}"))
