"""Every sentence that the API may say on a page has a German one: what the source can refuse, hint, skip and leave out."""

import re
from collections.abc import Iterator

import pytest

from operations.catalogue import CATALOGUE
from operations.changes.change_sets import SET_CANCELLED
from operations.changes.sending.change_work import APPROVER_LOST_RIGHTS, ASKER_GONE
from operations.changes.tags import TAG_REFUSALS
from operations.intelligence.line_diagnosis import UNREAD_FACTS
from registry.validation_errors import RULE_TEXTS
from tests.console.english_sentences import CONSOLE, PLACE, SOURCE_ROOT, EnglishSource
from transports.web.console.app import console_texts
from transports.web.console.translations import find_sentences
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
FIELD = re.compile(r"(?:[a-z][\w.\[\]]*|" + PLACE + r"): ")
ENGLISH = re.compile(r"\b(?:the|is|of|it|and|not|your|this|with|has|have|are|that|by|from|be|send|leave|or|been|which|to)\b")
MORE = re.compile(rf" \(and {PLACE} more\)")
GAP_FOLDERS = ("operations.intelligence", "operations.fleet")
GAP_SAYS = re.compile(r"could not be|did not answer|have not been|has not been|not read|did not show|is kept for|not been listed")


@pytest.fixture(scope="module")
def source() -> EnglishSource:
    text = "".join(path.read_text() for folder in CALLERS for path in sorted((SOURCE_ROOT / folder).glob("*.py")))
    return EnglishSource([(each.handler.__module__, each.id) for each in CATALOGUE.operations.values() if f'"{each.id}"' in text])


def untranslated(sentences: Iterator[str]) -> list[str]:
    """Those that have no German, or German with English in its places; one that is nothing but a place is said by something else."""
    told = {
        each.strip()
        for each in sentences
        if "  " not in each and re.sub(rf"{PLACE}|\W|Input", "", each) and not OF_CREDENTIALS.search(each)
    }
    return sorted(each for each in told if ENGLISH.search(find_sentences(GERMAN, each) or "the"))


def as_on_pages(sentences: Iterator[str]) -> Iterator[str]:
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


@pytest.mark.parametrize(
    ("english", "german"),
    [
        ("Your account has no line with this ICCID", "Ihr Konto hat keine Leitung mit dieser ICCID"),
        (
            "This set is applied, so there is nothing left to stop.",
            "Dieser Plan hat den Stand ausgeführt; es gibt also nichts mehr anzuhalten.",
        ),
        (
            "The charging system could not be read (HTTP 500); it is asked again at 2027-01-15T09:42:00Z.",
            "Das Abrechnungssystem war nicht zu lesen (HTTP 500); es wird wieder gefragt: 15. Januar 2027, 09:42 Uhr (UTC).",
        ),
        ("1234 lines have not been looked into since they were read; that goes on now.", "1.234 Leitungen sind seit dem Lesen noch nicht"),
        ("No event {a} in your organisation", "Ihre Organisation hat kein Ereignis {a}"),
    ],
)
def test_names_numbers_and_moments_stand_in_the_german_sentence(english: str, german: str) -> None:
    assert (find_sentences(GERMAN, english) or "").startswith(german)


def test_a_sentence_that_nobody_has_translated_is_left_and_a_long_one_takes_no_time() -> None:
    assert find_sentences(GERMAN, "Nobody has translated this. Repeat it in a second") is None
    assert find_sentences(GERMAN, "Got " + "; must be " * 90) is not None
    assert find_sentences(GERMAN, "a" * 5000) is None
