"""What keeps an issuance of unknown outcome from being settled by evidence, in words for a person. Codes are kept with the row."""

from collections.abc import Mapping
from typing import Literal

Obstacle = Literal[
    "waiting",
    "several_lines",
    "equal_keys",
    "line_of_another",
    "unexplained_lines",
    "similar_lines",
    "incomplete_list",
    "incomplete_look",
    "no_look",
    "answer_named_another",
    "late_answer",
    "slow",
    "unreadable",
]
REASONS: Mapping[Obstacle, str] = {
    "waiting": "nothing in the account shows the draw; it has failed once that was so for 15 minutes",
    "several_lines": "more than one line of the account shows this draw",
    "equal_keys": "one line shows this draw, and other issuances that are not settled asked for the same template and window",
    "line_of_another": "the line that shows this draw belongs to another issuance",
    "unexplained_lines": "lines left the stock, and nothing tells what became of them",
    "similar_lines": "no line shows this draw, but one has the template with another window or from another time",
    "incomplete_list": "the charging system does not list every line of the account, or lists lines that cannot be understood",
    "incomplete_look": "the list of free eSIMs just before the draw was not whole",
    "no_look": "there is no list of the free eSIMs from just before the draw",
    "answer_named_another": "the answer named an eSIM that was another issuance's",
    "late_answer": "an answer that names an eSIM came after this had been settled as failed",
    "slow": "the charging system tells of the account too slowly to look into all of it in one turn; the next turn goes on",
    "unreadable": "the charging system could not be asked about the account",
}
NOT_LOOKED_INTO = "not_looked_into"


def reason_of(obstacle: str | None) -> str:
    """The words for a code that is kept; a code of another release stands for itself."""
    if obstacle is None:
        return "it was not looked into yet"
    return next((text for code, text in REASONS.items() if code == obstacle), obstacle.replace("_", " "))
