"""Reports that are mailed to whoever made their schedule: a summary, the share link, and the report as a PDF where that was asked for.

All of it is the report as strangers read it: only values of public kinds, lines by numbers.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, get_args

import orjson
from anyio import to_thread
from typing_extensions import TypedDict

from clients.mail.letter import Attachment, Letter
from operations.deps import Deps
from operations.intelligence.reports.redaction import format_value, redact_sheet
from operations.intelligence.reports.sheet import Chart, Column, PublicKind, Sheet, SheetValue, Table
from operations.languages import texts_in
from operations.ledger.event_letters import EVENT_MAIL_SECONDS, MailLink, MailPage, MailSection, event_mail_allowance, page_letter
from operations.ledger.mail_choices import Unsubscription, unsubscribe_address
from operations.ledger.mail_kinds import AT_ONCE, REPORT_MAIL_TYPE, reader_language
from operations.letters import queue_letter, seal_letter
from storage.allowances import take_allowances
from storage.engine.sql import Connection
from storage.mail_notices import MailNotice, end_notices, queue_notices
from storage.mail_subscriptions import MailReader, find_mail_reader
from storage.schedule_mails import ScheduleMail, find_schedule_mail
from storage.sealing import schedule_mail_field

MAILED_FIGURES = 8
MAILED_KINDS: Sequence[str] = get_args(PublicKind)
PDF_TABLE_ROWS = 200
"""Choice: who wants more rows than this reads them behind the link."""
REPORT_PDF_TEMPLATE = Path(__file__).parent / "templates" / "report.typ"


class MailedReport(NamedTuple):
    """A report as it is mailed. `sheet` is redacted, None where it could not be made; `pdf` where it was asked for."""

    schedule: str
    report: str
    sheet: Sheet | None
    pdf: bytes | None
    now: float


class PdfTable(TypedDict):
    """A table of the document: texts alone."""

    title: str
    columns: list[str]
    rows: list[list[str]]
    note: str


async def make_mailed_report(deps: Deps, *, schedule: str, report: str, sheet: Sheet | None, now: float) -> MailedReport | None:
    """The report as it is mailed; None where the schedule mails nothing. The PDF is set in a thread. `now`: Unix seconds."""
    mail = await deps.store.read(find_schedule_mail, schedule=schedule)
    if mail is None:
        return None
    shown = None if sheet is None else redact_sheet(sheet).sheet
    pdf = None if shown is None or mail.form != "pdf" else await to_thread.run_sync(typeset_report_pdf, shown, now)
    return MailedReport(schedule, report, shown, pdf, now)


def queue_report_mail(connection: Connection, deps: Deps, made: MailedReport) -> bool:
    """Queues the mail in the commit that ends the report; whether there is one.

    Nobody gets it whose membership has ended. Over the hour's limit of mails it is told in the mail that has all the others.
    """
    mail = find_schedule_mail(connection, schedule=made.schedule)
    reader = None if mail is None else find_mail_reader(connection, organisation=mail.organisation, person=mail.person)
    if mail is None or reader is None:
        return False
    now_ms = int(made.now * 1000)
    notice = MailNotice(mail.organisation, mail.person, made.report, REPORT_MAIL_TYPE, AT_ONCE, 0, int(made.now), now_ms)
    queue_notices(connection, notices=[notice])
    if take_allowances(connection, wanted=[event_mail_allowance(mail.person)], now=made.now) is not None:
        return False
    letter = report_letter(deps, mail, reader, made)
    sealed = seal_letter(letter, ids=deps.ids, keyring=deps.keyring, expires_at=made.now + EVENT_MAIL_SECONDS)
    queue_letter(connection, sealed, deps.clock)
    end_notices(connection, person=mail.person, events=[made.report], mail=sealed.id, now_ms=now_ms)
    return True


def report_letter(deps: Deps, mail: ScheduleMail, reader: MailReader, made: MailedReport) -> Letter:
    words, sheet = texts_in(reader_language(reader)), made.sheet
    stop = unsubscribe_address(deps, Unsubscription(mail.organisation, mail.person, f"{REPORT_MAIL_TYPE}:{mail.schedule}"))
    if sheet is None:
        sections, links = [MailSection(words.say("event_mail.report_failed"), [])], list[MailLink]()
    else:
        token = deps.keyring.open(mail.share, org_id=mail.organisation, field=schedule_mail_field(mail.schedule))
        public = [figure for figure in sheet["figures"] if figure["kind"] in MAILED_KINDS]
        figures = [(figure["label"], format_value(figure["kind"], figure["value"])) for figure in public[:MAILED_FIGURES]]
        sections = [MailSection(sheet["title"], [("", sheet["headline"]), *figures])]
        sections += [MailSection(words.say("event_mail.report_open"), [])]
        sections += [] if made.pdf is None else [MailSection(words.say("event_mail.report_attached"), [])]
        links = [MailLink(words.say("event_mail.report_link"), f"{deps.site.base_url}/v1/intelligence/share/{token}")]
    page = MailPage(
        subject=words.say("event_mail.report_failed_subject" if sheet is None else "event_mail.report_subject"),
        sections=sections,
        links=links,
        small=words.say("event_mail.reason"),
        unsubscribe=None if stop is None else MailLink(words.say("event_mail.stop"), stop),
        language=reader_language(reader),
    )
    file = None if made.pdf is None else Attachment("report.pdf", "application/pdf", made.pdf)
    return page_letter(reader.address, page, attachment=file)


def chart_table(chart: Chart) -> Table:
    """A chart as the table of its figures."""
    columns: list[Column] = [
        {"label": "", "kind": chart["places_kind"]},
        *(Column(label=format_value(chart["series_kind"], series["label"]), kind=chart["kind"]) for series in chart["series"]),
    ]
    rows: list[list[SheetValue]] = [
        [place, *(series["values"][at] for series in chart["series"])] for at, place in enumerate(chart["places"])
    ]
    return {"title": chart["title"], "columns": columns, "rows": rows, "note": None}


def pdf_table(table: Table) -> PdfTable:
    """A table as texts, its first rows."""
    kinds = [column["kind"] for column in table["columns"]]
    left_out = len(table["rows"]) - PDF_TABLE_ROWS
    notes = [table["note"] or "", f"{left_out} more rows stand behind the link." if left_out > 0 else ""]
    return {
        "title": table["title"],
        "columns": [column["label"] for column in table["columns"]],
        "rows": [[format_value(kind, cell) for kind, cell in zip(kinds, row, strict=True)] for row in table["rows"][:PDF_TABLE_ROWS]],
        "note": " ".join(note for note in notes if note),
    }


def typeset_report_pdf(sheet: Sheet, moment: float) -> bytes | None:
    """The redacted report as a PDF; `moment` (Unix seconds) is when it says that it was made. None where it cannot be set: the mail goes
    out without it.
    """
    import typst  # 78 MB of a library, loaded where a document is made

    tables = [*(chart_table(chart) for chart in sheet["charts"]), *sheet["tables"]]
    made = datetime.fromtimestamp(moment, UTC)
    shown: dict[str, object] = {
        "title": sheet["title"],
        "headline": sheet["headline"],
        "made": f"{made:%Y-%m-%d %H:%M} UTC",
        "figures": [[figure["label"], format_value(figure["kind"], figure["value"])] for figure in sheet["figures"]],
        "tables": [pdf_table(table) for table in tables if table["rows"]],
    }
    try:
        return typst.compile(
            REPORT_PDF_TEMPLATE,
            format="pdf",
            sys_inputs={"sheet": orjson.dumps(shown).decode()},
            pdf_standards="1.7",
            timestamp=made,
        )
    except typst.TypstError:
        return None
