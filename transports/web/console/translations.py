"""English sentences of ours, which declarations and composites say, in the reader's language; each as it is where it has no translation.

The words are few, with names and numbers in them. A translation is found by the words without these, and they stand in its places. What
came from outside is never looked up: it is only ever what stands in a place.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

from operations.languages import DEFAULT_LANGUAGE, LanguageTexts
from registry.catalogue import AnyOperation
from registry.challenge import Loss, name_losses, what_it_will_do

SAID_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?", re.ASCII)
SENTENCE_END = re.compile(r"(?<=[.!?]) (?=[A-Z0-9])")
PLACES = "abcdefgh"
UNREAD = re.compile(r"(?s)(.*?)(?: (What exactly would be lost cannot be read now \(\w+\)\.))?", re.ASCII)
"""What follows the summary of an operation in the question about a call: its arguments, and that its losses cannot be read."""
IN_BRACKETS = r"\((?:[^()]|\([^()]*\))*\)"
QUOTED = rf"“[^”]*”(?: {IN_BRACKETS})?"
LOSSES_MARK, PLACE_MARK = "\x01", "\x00"
NAMED = re.compile(
    rf"{LOSSES_MARK}|{QUOTED}(?:, {QUOTED})*(?: and \d+ more)?|{IN_BRACKETS}"
    r"|[+-]?\d[\d,]*\.\d\d [A-Z]{3}\b"
    r"|\d{5,}(?:, \d{5,})*(?:, and more)?|\d+(?: [A-Z]{3} in minor units)?|\b\w*_\w+\b|\b[A-Z][A-Z0-9]{3,}\b",
    re.ASCII,
)
"""What a question names: quotations with their facts, brackets, amounts, lines, numbers, ids, names of operations, and codes."""
PIECE_END = re.compile(r"(?<=[.!?:]) ")
MORE_THINGS = re.compile(r"\band (?:(\d+) )?more$", re.ASCII)
EURO_AMOUNT = re.compile(r"([+-]?)(\d[\d,]*)\.(\d\d) ([A-Z]{3})\b", re.ASCII)

PLACE_NAME = re.compile(r"\{([a-h])\}")
SENTENCES, FIELD_HINTS = "sentences.", "field_hints."
"""Begin the keys of what a refusal, a row of a change set or a gap of figures says, and of what describes a field of an operation; behind
them stands the English one, of the former with places."""
HINT_END = re.compile(r"(?<=[.!?]) (?=\S)")
"""Where a sentence of a hint ends. What describes a field may begin with a value that it can have, in small letters."""
FIELD_NAME = re.compile(r"[a-z][\w.\[\]]*: ", re.ASCII)
WHOLE_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)
LONGEST_SENTENCE = 1000
GROUPED_DIGITS = 9
"""Of a number that is grouped by thousands; a longer one is a name, such as an ICCID."""
NAMES_BY_NUMBER = re.compile(r"\b(?:account|code|line|package|port|port from|template) $")
"""What stands before a number that is a name, too."""


class SentencePattern(NamedTuple):
    """An English sentence: what stands before, between and behind its places, their names, and the translation."""

    pieces: Sequence[str]
    names: Sequence[str]
    said: str

    def values_in(self, text: str) -> Sequence[str] | None:
        """What stands in the places of `text`; None where it is another sentence. Each piece is looked for once, from left to right."""
        first, last, values = self.pieces[0], self.pieces[-1], list[str]()
        end, place = len(text) - len(last), len(first)
        if not text.startswith(first) or not text.endswith(last):
            return None
        for piece in (*self.pieces[1:-1], None):
            found = end if piece is None else text.find(piece, place + 1, end)
            if found <= place:
                return None
            values.append(text[place:found])
            place = found + len(piece or "")
        return values


@cache
def sentence_patterns(texts: LanguageTexts) -> Sequence[SentencePattern]:
    """The sentences with places, those with most words of their own first."""
    found: list[SentencePattern] = []
    for key, said in texts.words.items():
        parts = PLACE_NAME.split(key.removeprefix(SENTENCES)) if key.startswith(SENTENCES) else []
        if len(parts) > 1:
            found.append(SentencePattern(parts[::2], parts[1::2], said))
    return sorted(found, key=lambda each: -sum(map(len, each.pieces)))


def find_sentences(texts: LanguageTexts, text: str) -> str | None:
    """The translation of one or more sentences; None where one of them has none."""
    if len(text) > LONGEST_SENTENCE:
        return None
    said = [find_sentence(texts, each) for each in SENTENCE_END.split(text)]
    if None in said:
        said = [find_sentence(texts, text)]  # a sentence in which a name ends as sentences do
    return None if None in said else " ".join(each[:1].upper() + each[1:] for each in said if each)


def find_hint(texts: LanguageTexts, text: str) -> str | None:
    """The translation of a hint, of which some sentences may describe a field; None where one of them has none."""
    if len(text) > LONGEST_SENTENCE:
        return None
    said: list[str | None] = []
    for each in HINT_END.split(text):
        words, stop = words_and_stop(each)
        known = texts.words.get(FIELD_HINTS + words)
        said.append(find_sentence(texts, each) if known is None else known + stop)
    return find_sentences(texts, text) if None in said else " ".join(each[:1].upper() + each[1:] for each in said if each)


def find_message(texts: LanguageTexts, text: str) -> str | None:
    """The translation of what was said to a program, before which the name of its field stays; None where there is none."""
    field = FIELD_NAME.match(text)
    said = None if field is None else find_sentences(texts, text[field.end() :])
    return find_sentences(texts, text) if field is None or said is None else field[0] + said


def words_and_stop(text: str) -> tuple[str, str]:
    """A sentence as the keys of translations have it, and the stop that it ends with, if it does."""
    words, stop = (text[:-1], text[-1]) if text[-1:] in (".", "?") else (text, "")
    return words[:1].upper() + words[1:], stop


def find_sentence(texts: LanguageTexts, text: str) -> str | None:
    """The translation of a sentence with or without its stop, or of words in one; None where there is none."""
    words, stop = words_and_stop(text)
    said = texts.words.get(SENTENCES + words)
    if said is not None:
        return said + stop
    for pattern in sentence_patterns(texts):
        values = pattern.values_in(words if pattern.pieces[0] else text[: len(words)])
        if values is not None:
            placed = zip(pattern.names, values, pattern.pieces[:-1], strict=True)
            return pattern.said.format(**{name: said_value(texts, each, before) for name, each, before in placed}) + stop
    return None


def said_value(texts: LanguageTexts, value: str, before: str = "") -> str:
    """What stands in a place behind `before`: a moment, an amount, a number or words of ours as the language writes them, all else as it
    is."""
    if WHOLE_MOMENT.fullmatch(value):
        return texts.moment(value)
    if (amount := EURO_AMOUNT.fullmatch(value)) is not None:
        return said_amount(texts, amount)
    if SAID_NUMBER.fullmatch(value):
        named = len(value) > GROUPED_DIGITS or value.startswith("0") or NAMES_BY_NUMBER.search(before)
        return value if named else said_number(texts, value)
    return find_sentence(texts, value) or value


def said_text(texts: LanguageTexts, text: str) -> str:
    """Words of ours with numbers in them, sentence by sentence, in the reader's language."""
    return " ".join(said_sentence(texts, sentence) for sentence in SENTENCE_END.split(text))


def said_sentence(texts: LanguageTexts, text: str) -> str:
    """A sentence, or a name. Of several forms the one for a first number of 1 has `_one` at its end.

    A text of several words behind commas, such as what was seen at once, is put together of theirs.
    """
    numbers = SAID_NUMBER.findall(text)
    found, words = words_key(text), texts.words
    for key in (*([f"insight_words.{found}_one"] if numbers[:1] == ["1"] else []), f"insight_words.{found}"):
        if key in words:
            return words[key].format(**dict(zip(PLACES, (said_number(texts, each) for each in numbers), strict=False)))
    other = next((words[key] for key in (f"problems.{found}", f"states.{text}", f"line.rule_{found}") if key in words), None)
    if other is not None:
        return other
    parts = text.split(", ")
    return ", ".join(said_sentence(texts, part) for part in parts) if len(parts) > 1 else text[:1].upper() + text[1:].replace("_", " ")


def words_key(text: str, places: re.Pattern[str] = SAID_NUMBER) -> str:
    """The name that a text has among the translations: its words, with n for each of its `places`."""
    return re.sub(r"[^a-z0-9]+", "_", places.sub("n", text).lower()).strip("_")


def said_number(texts: LanguageTexts, text: str) -> str:
    whole, point, part = text.replace(",", "").partition(".")
    return texts.whole(int(whole)) + (texts.words["format.decimal"] + part if point else "")


def said_promise(texts: LanguageTexts, operation: AnyOperation | None, sentence: str, losses: Sequence[Loss] = ()) -> str:
    """What a call of `operation` will do, in the reader's language. The whole is as it was said where one part has no translation."""
    if texts.language == DEFAULT_LANGUAGE or operation is None:
        return sentence
    begin, known = what_it_will_do(operation.summary), texts.words.get(f"approvals_words.{operation.id}")
    if known is not None and sentence.startswith(begin):
        rest = UNREAD.fullmatch(sentence, len(begin))
        given, unread = ("", None) if rest is None else rest.groups()
        return known + given + (f" {said_pieces(texts, unread, losses)}" if unread else "")
    return said_pieces(texts, sentence, losses)


def said_pieces(texts: LanguageTexts, sentence: str, losses: Sequence[Loss]) -> str:
    """The sentences that operations write of their own: each is looked up up to its stop or its colon."""
    marked = sentence.replace(name_losses(tuple(losses)), LOSSES_MARK) if losses else sentence
    named, said = iter(NAMED.findall(marked)), list[str]()
    for piece in PIECE_END.split(NAMED.sub(PLACE_MARK, marked)):
        words, stop = (piece[:-1], piece[-1]) if piece[-1:] in (".", ":") else (piece, "")
        values = [said_name(texts, next(named), losses) for _ in range(words.count(PLACE_MARK))]
        pattern = "{a}" if words == PLACE_MARK else texts.words.get(f"approvals_words.{words_key(words, re.compile(PLACE_MARK))}")
        if pattern is None:
            return sentence
        said.append(pattern.format(**dict(zip(PLACES, values, strict=False))) + stop)
    return " ".join(said)


def said_name(texts: LanguageTexts, name: str, losses: Sequence[Loss]) -> str:
    """What a sentence names: things that are lost with their facts in the reader's language, and amounts as it writes them."""
    if name == LOSSES_MARK:
        name = name_losses(tuple(said_losses(texts, losses)))
    elif not name.startswith("“"):
        return EURO_AMOUNT.sub(lambda found: said_amount(texts, found), MORE_THINGS.sub(lambda _: said_more(texts, ""), name))
    return MORE_THINGS.sub(lambda found: said_more(texts, found[1]), name).replace("“", "„").replace("”", "“")


def said_more(texts: LanguageTexts, count: str) -> str:
    return texts.words["approvals_words.more"].format(a=f"{count} " if count else "")


def said_amount(texts: LanguageTexts, found: re.Match[str]) -> str:
    sign, whole, part, currency = found.groups()
    return sign + texts.money(int(whole.replace(",", "") + part), currency)


def said_losses(texts: LanguageTexts, losses: Sequence[Loss]) -> list[Loss]:
    """What is lost, its kind and the names of its facts in the reader's language."""
    return [said_loss(texts.words, loss) for loss in losses]


def said_loss(words: Mapping[str, str], loss: Loss) -> Loss:
    kind = words.get(f"approvals_words.lost_{loss['kind']}", loss["kind"])
    said: Loss = {"kind": kind, "name": loss["name"]}
    details = {words.get(f"approvals_words.fact_{name}", name): value for name, value in loss.get("details", {}).items()}
    return {**said, "details": details} if details else said
