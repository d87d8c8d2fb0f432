"""What an eSIM is drawn for: its own rows, and what its caller is answered. The ledger knows nothing else about it."""

from typing import Protocol

from operations.services.issuing.drawn_esim import DrawnEsim
from registry.errors import Conflict, OcsError, Refusal
from registry.ports import Conclusion
from storage.connection import Connection
from storage.issuing.issuance import IssuanceRow

UNKNOWN, MANUAL, NO_INVENTORY = "OUTCOME_UNKNOWN", "MANUAL_RECONCILIATION_REQUIRED", "no_inventory"
# Choice: a code of its own, since a program must tell a key that was used up by a refusal from one that was freed (ocs_error).
NOT_ISSUED = "issuance_failed"


class Purpose(Protocol):
    """Every method but `sent` runs in the transaction of the ledger's row, and may run again."""

    warning: str | None
    """Another key of the same caller, account and template whose outcome is unknown."""

    def sent(self) -> tuple[int, object]:
        """Status and body of the answer, should nobody come back from the call."""
        ...

    def begin(self, connection: Connection) -> None:
        """What belongs into the commit before the call."""
        ...

    def undo(self, connection: Connection) -> None:
        """The call surely never left."""
        ...

    def issued(self, connection: Connection, row: IssuanceRow, esim: DrawnEsim, now: float) -> Conclusion:
        """The eSIM is drawn: keep it, tell of it, answer with it."""
        ...

    def failed(self, connection: Connection, row: IssuanceRow, refusal: Refusal) -> Conclusion:
        """Nothing was drawn, for a reason."""
        ...

    def reopen(self, connection: Connection) -> None:
        """It was said to have failed, and that is not certain any more."""
        ...

    def unknown(self, connection: Connection, row: IssuanceRow, code: str) -> Conclusion:
        """Nobody knows, yet or by any evidence."""
        ...


class TakenBack(Conflict):
    """The eSIM of this key was given back, or may have been."""

    code = "issuance_taken_back"


GIVEN_BACK = ("rollback_pending", "rolled_back", "rollback_unknown", "released")


def require_kept(row: IssuanceRow | None) -> None:
    """Choice: a key whose eSIM went back to stock does not repeat its first answer, which would show what is another's by now."""
    if row is not None and row.state in GIVEN_BACK:
        raise TakenBack(
            f"The eSIM that this key drew is {row.state.replace('_', ' ')}: it was given back to stock, or may have been",
            hint="The key stays used, and draws nothing; use a new key for another eSIM",
        )


class NoInventory(Conflict):
    """The account has no free eSIM."""

    code = NO_INVENTORY


def no_inventory(account_id: int) -> NoInventory:
    """The charging system found none to draw."""
    return NoInventory(
        f"Account {account_id} has no free eSIM; nothing was drawn",
        hint="esim_status_per_account counts the free ones; take eSIMs back with rollback_esim_issuance, or ask your provider for more",
    )


def unknown_outcome(code: str = UNKNOWN) -> OcsError:
    """The refusal that keeps its key for ever."""
    if code == MANUAL:
        text = "Whether an eSIM was drawn could not be found out; a person at the service has to settle it. Keep the key"
        return OcsError(text, code=MANUAL, outcome_unknown=True, hint="It is never drawn a second time under this key")
    text = "The charging system did not say whether an eSIM was drawn. Keep the key: it is found out by itself, and never drawn twice"
    return OcsError(text, code=UNKNOWN, outcome_unknown=True, hint="Repeat the call with the same key later to learn what came of it")


def nothing_drawn() -> OcsError:
    """What reconciliation found."""
    return OcsError("The charging system drew no eSIM for this call; nothing was done", code=NOT_ISSUED, hint="Use a new key to draw one")
