"""One turn of the model, put together from the pieces it comes in. Nothing of them is believed: types, order and sizes are looked at."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from clients.model.failure import ModelError, ModelFailure
from clients.model.port import Delta, ToolCall
from clients.model.settings import ModelSettings

Json = dict[str, object]
# Control characters but tab and line feed, what turns text around or cannot be seen, and halves of characters.
# Joiners stay: some scripts need them.
UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ud800-\udfff\U000e0000-\U000e01ef]"
)
LONGEST_NAME = 64


@dataclass(slots=True)
class Asked:
    """A tool call that is still coming in."""

    id: str = ""
    name: str = ""
    arguments: str = ""


class Turn:
    """What came so far."""

    def __init__(self, limits: ModelSettings) -> None:
        self._limits = limits
        self._calls: dict[int, Asked] = {}
        self._characters = 0
        self._finish = ""

    def take(self, chunk: Json) -> Delta | None:
        """One piece; the text that it adds."""
        choices = chunk.get("choices")
        choice = cast("list[object]", choices)[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict):  # pieces that only count tokens have none
            return None
        choice = cast(Json, choice)
        finish, delta = choice.get("finish_reason"), choice.get("delta")
        self._finish = finish if isinstance(finish, str) else self._finish
        if not isinstance(delta, dict):
            return None
        delta = cast(Json, delta)
        asked, text = delta.get("tool_calls"), delta.get("content")
        for part in cast("list[object]", asked) if isinstance(asked, list) else []:
            self._add(part)
        return self._text(text) if isinstance(text, str) else None

    def end(self) -> Iterator[ToolCall]:
        """The tools it asks for; an answer that did not come to its end is none."""
        if self._finish == "length":
            raise ModelError(ModelFailure.TOO_LONG)
        if self._finish == "content_filter":
            raise ModelError(ModelFailure.REFUSED)
        if not self._finish:
            raise ModelError(ModelFailure.BROKEN)
        for index, call in sorted(self._calls.items()):
            yield ToolCall(call.id or f"call_{index}", call.name, call.arguments)

    def _text(self, text: str) -> Delta | None:
        self._characters += len(text)
        if self._characters > self._limits.text_characters:
            raise ModelError(ModelFailure.TOO_LONG)
        clean = UNSEEN.sub("", text)
        return Delta(clean) if clean else None

    def _add(self, part: object) -> None:
        """Some more of a tool call. An endpoint that does not number them sends each in one piece."""
        if not isinstance(part, dict):
            raise ModelError(ModelFailure.BROKEN)
        given = cast(Json, part)
        function = given.get("function")
        number, function = given.get("index"), cast(Json, function) if isinstance(function, dict) else Json()
        call = self._calls.setdefault(number if type(number) is int else len(self._calls), Asked())
        call.id = call.id or printable(given.get("id"))
        call.name = (call.name + printable(function.get("name")))[:LONGEST_NAME]
        arguments = function.get("arguments")
        call.arguments += UNSEEN.sub("", arguments) if isinstance(arguments, str) else ""
        if len(self._calls) > self._limits.calls or len(call.arguments) > self._limits.call_characters:
            raise ModelError(ModelFailure.TOO_LONG)


def printable(value: object) -> str:
    """A short word of the endpoint's, which goes back to it."""
    return "".join(c for c in value if c.isascii() and c.isprintable())[:LONGEST_NAME] if isinstance(value, str) else ""
