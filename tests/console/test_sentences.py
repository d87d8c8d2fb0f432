"""Every sentence that the API may say on a page has a German one: what the source can refuse, hint, skip, leave out and warn of.

What the source says in a way that is not read off it is named in `READ_ELSEWHERE`, with what reads it.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

import orjson
import pytest
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from clients.ocs.outcome import METHOD_MEANINGS, OCS_UNKNOWN_OUTCOME, OTHER_STATUS_TEXT, STATUS_MEANINGS, ZONE_METHOD_HINT
from operations.catalogue import CATALOGUE
from operations.changes.change_sets import SET_CANCELLED
from operations.changes.sending.change_work import APPROVER_LOST_RIGHTS, ASKER_GONE
from operations.changes.tags import TAG_REFUSALS
from operations.intelligence.line_diagnosis import UNREAD_FACTS
from operations.ledger.issuance import INTENT_BACK_IN_STOCK
from operations.subscribers.issuance_list import describe_failure
from registry.catalogue import AnyOperation
from registry.errors import CommitUnknown, Internal, KeyUnknown
from registry.validation_errors import RULE_TEXTS, models_in_type
from storage.engine.postgres import ALL_CONNECTIONS_BUSY
from storage.engine.session import NO_ANSWER
from storage.engine.sqlite_file import OUTAGE_REASONS
from tests.console.english_sentences import CONSOLE, PLACE, SOURCE_ROOT, EnglishSource
from transports.web.console.app import ConsoleApp, console_texts
from transports.web.console.translations import FIELD_HINTS, HINT_END, SENTENCE_END, find_hint, find_message, find_sentences, words_and_stop
from transports.web.pages.request import PROBLEM_WORDS, worded_problem

GERMAN = console_texts("de")
CALLERS = ("transports/web/console", "operations/changes/plans")
"""Folders that name operations: what pages ask and press, and what the rows of change sets call."""
PROGRAMS_ONLY = (
    *("registry.guard", "registry.binding", "registry.authentication", "registry.approvals", "registry.catalogue", "registry.versions"),
    *("registry.policy", "registry.restrictions", "registry.spending", "storage.engine", "storage.sealing", f"{CONSOLE}.assets"),
)
"""What refuses bodies, headers, credentials and limits of programs, and stores that do not open: no form can bring it about."""
OF_CREDENTIALS = re.compile(
    r"\bcredential\b|API key is|idempotency|`reseller|--|\bstream of events\b|keyring|sealed value|assistant|toolsets|\bcursor\b"
    "|an event names things"
)
"""Sentences about what only a key, a program or whoever runs the service can do."""
OF_A_CALLER = ("registry.policy", "registry.restrictions", "registry.spending", "registry.approvals.terms_changed")
"""What refuses a call by who makes it: a page shows it of a call that was approved, and of a report."""
OF_ITS_KEY = ("registry.policy.check_idempotency_key", "registry.policy.bad_idempotency_key")
AT_WORK = (
    ("operations.intelligence.schedule_reports", "ScheduleRuns"),
    ("storage.engine.session", "session_refusal"),
    ("storage.engine.sqlite_file", "transaction_refusal"),
)
"""What no handler leads to, and still says something that a page shows."""
READ_ELSEWHERE: Mapping[str, str] = {
    "clients.ocs.outcome.ocs_refused": "the answers of the charging system",
    "operations.intelligence.lines.fleet_view.view_fleet": "what the reading of the fleet was refused with",
    "operations.intelligence.schedules.refusal_of_input": "what the question of a schedule refuses",
    "operations.invoicing.billing_config._only_what_is_theirs": "fields that no form sends",
    "operations.ledger.issuance.before_issuance": "what a read of the charging system is refused with",
    "operations.ledger.webhooks.bad_webhook_address": "what is wrong with an address",
    "operations.storefronts.storefront_plans.upsert_storefront_plan": "rules of fields",
    "operations.upstream.resellers.not_listed": "the hints of lists of a reseller",
    "operations.upstream.template_terms.require_promise_kept": "differences between a plan and its template",
    "registry.pipeline._confirm": "what a call will do (test_translations.py)",
    "registry.validation_errors.refuse_field_rule": "rules of fields",
    "registry.validation_errors.refuse_first_problem": "rules and descriptions of fields",
    "transports.web.site.answer": "where a reader of the console starts",
}
"""The functions of which a sentence is nothing but what is known when it is said, and what is read instead."""
FIELD = re.compile(r"(?:[a-z][\w.\[\]]*|" + PLACE + r"): ")
ENGLISH = re.compile(r"\b(?:the|is|of|it|and|not|your|this|with|has|have|are|that|by|from|be|send|leave|or|been|which|to)\b")
MORE = re.compile(rf" \(and {PLACE} more\)")
GAP_FOLDERS = ("operations.intelligence", "operations.fleet")
GAP_SAYS = re.compile(r"could not be|did not answer|have not been|has not been|not read|did not show|is kept for|not been listed")


@pytest.fixture(scope="module")
def source() -> EnglishSource:
    return EnglishSource([*((each.handler.__module__, each.id) for each in called_operations()), *AT_WORK])


def called_operations() -> list[AnyOperation]:
    """Those that the console, or a row of a change set, calls by name."""
    text = "".join(path.read_text() for folder in CALLERS for path in sorted((SOURCE_ROOT / folder).glob("*.py")))
    return [each for each in CATALOGUE.operations.values() if f'"{each.id}"' in text]


def untranslated(sentences: Iterable[str], *, programs: bool = False) -> list[str]:
    """Those that have no German, or German with English in its places; one that is nothing but a place is said by something else.

    `programs`: also those about what only programs can do.
    """
    told = {each.strip() for each in sentences if "  " not in each and not is_place(each) and (programs or not OF_CREDENTIALS.search(each))}
    return sorted(each for each in told if ENGLISH.search(find_sentences(GERMAN, each) or "the"))


def is_place(text: str) -> bool:
    """Whether a sentence is nothing but what is known when it is said."""
    return not re.sub(rf"{PLACE}|\W|Input", "", text)


def as_on_pages(sentences: Iterable[str]) -> Iterator[str]:
    """Messages as pages word them, beside their field and without its name."""
    for each in sentences:
        field = FIELD.match(each)
        yield worded_problem(400, "", field[0][:-2] if field else "", MORE.sub("", each), "").text


def test_every_refusal_of_what_a_page_asks_has_german(source: EnglishSource) -> None:
    refusals = [each for each in source.told_refusals() if not each.place.startswith(PROGRAMS_ONLY)]
    assert len(refusals) > 200
    assert not untranslated(as_on_pages(text for each in refusals for text in each.messages))


def test_every_hint_of_a_refusal_has_german(source: EnglishSource) -> None:
    refusals = [each for each in source.told_refusals() if not each.place.startswith(PROGRAMS_ONLY)]
    hints = [hint for each in refusals for hint in each.hints] + list(source.told("FieldRule", "hint"))
    assert not untranslated(worded_problem(400, "", "", "", hint).hint for hint in hints)
    assert not untranslated(text for texts in PROBLEM_WORDS.values() for text in texts)


def test_every_rule_of_a_field_has_german(source: EnglishSource) -> None:
    rules = {re.sub(r"\{\w+\}", PLACE, UNIT.sub(r"\1", rule)) for rule in RULE_TEXTS.values()}
    rules |= {text for name in ("ValueError", "FieldRule") for text in source.told(name, 0)}
    assert not untranslated(as_on_pages(iter(rules)))
    assert find_sentences(GERMAN, 'Got "x"; must be >= 1') == 'Angegeben ist "x"; es muss mindestens 1 sein'


UNIT = re.compile(r"\{(characters|entries)\}")


def test_every_reason_of_a_row_of_a_change_set_has_german(source: EnglishSource) -> None:
    told = [*source.told("SkippedRow", 1), *source.told("RowOutcome", 3), *source.told("_failed", 1), *TAG_REFUSALS.values()]
    assert len(told) > 40
    assert not untranslated(iter([*told, SET_CANCELLED, ASKER_GONE, APPROVER_LOST_RIGHTS]))


def test_every_reason_of_an_incomplete_figure_has_german(source: EnglishSource) -> None:
    told = [text for text in source.told_sentences(GAP_FOLDERS) if GAP_SAYS.search(text)]
    assert len(told) > 20
    assert not untranslated(iter([*told, *UNREAD_FACTS.values()]))


def test_whatever_is_not_read_off_the_source_is_named_with_what_reads_it(source: EnglishSource) -> None:
    said: set[str] = set()
    for each in source.told_refusals():
        texts = (part for text in (*each.messages, *each.hints) for part in SENTENCE_END.split(FIELD.sub("", text, count=1)))
        said |= {each.place for part in texts if PLACE in part and is_place(part)}
    assert {each for each in said if not each.startswith(PROGRAMS_ONLY)} == READ_ELSEWHERE.keys()


def test_every_answer_of_the_charging_system_has_german() -> None:
    told = [each.text for each in (*STATUS_MEANINGS.values(), *METHOD_MEANINGS.values())]
    assert not untranslated(as_on_pages([*told, OTHER_STATUS_TEXT.format(code=PLACE), ZONE_METHOD_HINT, OCS_UNKNOWN_OUTCOME]))


def test_every_fault_of_the_service_has_german(source: EnglishSource) -> None:
    told = [Internal().message, KeyUnknown("key_1").message, CommitUnknown().message, NO_ANSWER, ALL_CONNECTIONS_BUSY]
    stores = [text for each in source.told_refusals() if each.place.startswith("storage.engine.s") for text in each.messages]
    assert len(stores) > 5
    assert not untranslated(as_on_pages([*told, *OUTAGE_REASONS.values(), *stores]))
    assert not untranslated([ConsoleApp.start_hint])


def test_all_that_is_wrong_with_an_address_of_a_webhook_has_german(source: EnglishSource) -> None:
    told = [text for name in ("BadReceiverUrl", "BadReceiverHost") for text in source.told(name, 0, layer="clients")]
    assert len(told) > 10
    assert not untranslated(as_on_pages(told))


def test_hints_of_lists_of_a_reseller_name_operations_so_that_no_page_shows_them(source: EnglishSource) -> None:
    hints = list(source.told("ResellerList", 3))
    assert len(hints) > 4
    assert {worded_problem(400, "", "", "", hint).hint for hint in hints} == {""}


def test_every_refusal_of_a_caller_that_a_page_shows_later_has_german(source: EnglishSource) -> None:
    told = [
        text
        for each in source.told_refusals()
        for text in each.messages
        if each.place.startswith(OF_A_CALLER)
        or (not each.place.startswith(PROGRAMS_ONLY) and re.search(r"\bcredential\b|API key is", text))
        if not each.place.startswith(OF_ITS_KEY)
    ]
    assert len(told) > 40
    assert not untranslated(as_on_pages(told), programs=True)


def test_every_difference_between_a_plan_and_its_template_has_german(source: EnglishSource) -> None:
    told = [*source.told("TermsDifference", 1), *source.told("PlanWarning", "message")]
    told += source.told_entries("message", ("operations.upstream.template_terms",))
    assert len({each[:30] for each in told}) > 10
    # two texts of one function share a name there, and the second is put together: forms that mix the two are none, nor is one country more
    assert not untranslated(each for each in told if not each.endswith(" ") and not re.search(f"promised{PLACE}|more, which is", each))


def test_every_sentence_of_an_order_or_an_esim_that_waits_has_german(source: EnglishSource) -> None:
    told = [*source.told_entries("message", ("operations.storefronts", "storage.intents")), *source.told("intent_error_json", 1)]
    assert len(told) > 10
    assert not untranslated([*told, orjson.loads(INTENT_BACK_IN_STOCK)["message"], describe_failure(PLACE)["message"]], programs=True)


def test_every_reason_of_a_report_that_failed_and_how_each_was_made_has_german(source: EnglishSource) -> None:
    reasons, methods = list(source.told("failed_report", 0)), list(source.told_constants("_METHOD", GAP_FOLDERS))
    assert (len(reasons) > 3, len(methods) > 10) == (True, True)
    assert not untranslated([*reasons, *methods], programs=True)


def fields_below(model: type[BaseModel], around: tuple[type[BaseModel], ...] = ()) -> Iterator[FieldInfo]:
    """The fields of an input and of what it is made of."""
    for field in model.model_fields.values() if model not in around else ():
        yield field
        for inner in models_in_type(field.annotation):
            yield from fields_below(inner, (*around, model))


def test_every_description_that_a_page_shows_beside_a_field_has_german() -> None:
    described = {field.description or "" for each in called_operations() for field in fields_below(each.params)}
    hints = {worded_problem(400, "", "", "", each).hint for each in described} - {""}
    assert len(hints) > 200
    also = {worded_problem(400, "", "", "x (and 2 more)", f'Write "{PLACE}", in lower case. {each}').hint for each in hints}
    assert not sorted(each for each in hints | also if ENGLISH.search(find_hint(GERMAN, each) or "the"))
    said = {FIELD_HINTS + words_and_stop(part)[0] for each in hints for part in HINT_END.split(each)}
    assert not {key for key in GERMAN.words if key.startswith(FIELD_HINTS)} - said


def test_the_name_of_a_field_stays_before_what_a_program_was_told() -> None:
    assert find_message(GERMAN, "webhook.url: missing; it is required.") == "webhook.url: Fehlt und muss angegeben werden."
    assert find_message(GERMAN, "You have no change set with this id") == "Eine Sammeländerung mit dieser Nummer haben Sie nicht"
    assert find_message(GERMAN, "url: nobody has translated this") is None


@pytest.mark.parametrize(
    ("english", "german"),
    [
        ("Your account has no line with this ICCID", "Ihr Konto hat keine Leitung mit dieser ICCID"),
        (
            "This set is applied, so there is nothing left to stop.",
            "Diese Sammeländerung hat den Status ausgeführt; es gibt also nichts mehr anzuhalten.",
        ),
        (
            "The charging system could not be read (HTTP 500); it is asked again at 2027-01-15T09:42:00Z.",
            "Das Abrechnungssystem war nicht zu lesen (HTTP 500); es wird wieder gefragt: 15. Januar 2027, 09:42 Uhr (UTC).",
        ),
        ("1234 lines have not been looked into since they were read; that goes on now.", "1.234 Leitungen sind seit dem Lesen noch nicht"),
        ("No event {a} in your organisation", "Ihre Organisation hat kein Ereignis {a}"),
        (
            "Your account has no package template 55010: no eSIM can be issued until there is one",
            "Ihr Konto hat keine Paketvorlage 55010: Solange",
        ),
        (
            "The price, 1234.50 EUR, is below what the template costs, 2000.00 EUR",
            "Der Preis von 1.234,50\u00a0€ liegt unter dem, was die Vorlage kostet: 2.000,00\u00a0€",
        ),
        (
            "5000 MB are promised, and a package of the template holds 1073 MB (of 10^6 bytes); 30 days are promised, and a package of the "
            "template runs 7; the template does not work in NO, SE and 3 more, which are promised. Nothing was stored",
            "Versprochen sind 5.000 MB, und ein Paket der Vorlage hat 1.073 MB (zu 10^6 Bytes); versprochen sind 30 Tage, und ein Paket "
            "der Vorlage läuft 7; die Vorlage funktioniert nicht in NO, SE und 3 weiteren Ländern, und das ist versprochen. Es",
        ),
    ],
)
def test_names_numbers_and_moments_stand_in_the_german_sentence(english: str, german: str) -> None:
    assert (find_sentences(GERMAN, english) or "").startswith(german)


def test_a_sentence_that_nobody_has_translated_is_left_and_a_long_one_takes_no_time() -> None:
    assert find_sentences(GERMAN, "Nobody has translated this. Repeat it in a second") is None
    assert find_sentences(GERMAN, "Got " + "; must be " * 90) is not None
    assert find_sentences(GERMAN, "a" * 5000) is None
