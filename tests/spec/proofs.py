"""How each operation is proven: which tests are asked for it, and why a question does not arise."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from registry.catalogue import AnyOperation
from tests.contract.stage import NEVER
from tests.spec.ledgers import tsv_rows

ANY, RULES = "*", "Rules"


class Proof(NamedTuple):
    """A test, and what it proves of the operations that it is collected for, or of one."""

    column: str
    letter: str
    operation: str
    test: str
    says: str


def no_tool(operation: AnyOperation) -> str | None:
    return None if operation.tool else "no tool"


def nothing_to_repeat(operation: AnyOperation) -> str | None:
    if operation.read_only:
        return "reads, so there is nothing to repeat"
    return "never done: always refused" if operation.id in NEVER else None


def one_step(operation: AnyOperation) -> str | None:
    return None if operation.confirmable else "asks for no confirmation"


def always(_: AnyOperation) -> None:
    return None


COLUMNS: Mapping[str, Callable[[AnyOperation], str | None]] = {
    RULES: always,
    "HTTP": always,
    "MCP": no_tool,
    "CLI": always,
    "Idempotency": nothing_to_repeat,
    "Scope": always,
    "Confirm": one_step,
    "Errors": always,
}
"""What is asked of every operation, and why it is not asked of one."""
PROOFS = tuple(Proof(*row) for row in tsv_rows("spec/proofs.tsv"))
FILES = {proof.test.partition("::")[0] for proof in PROOFS}
