"""Drawing an eSIM for an operator, who names account, template and window."""

from dataclasses import dataclass
from typing import Annotated, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from operations.services.issuing.drawn_esim import DrawnEsim
from operations.services.issuing.issuance import drawn_event
from operations.services.issuing.purpose import UNKNOWN, unknown_outcome
from registry.errors import Refusal
from registry.ids import Ids
from registry.ports import Conclusion
from storage.connection import Connection
from storage.issuing.issuance import IssuanceRow
from storage.webhooks.events import emit

CREATED = 201


class IssuedEsim(TypedDict):
    """An eSIM from stock with its package, and what installs it: whoever holds the codes can install it."""

    iccid: str
    smdpServer: str | None
    activationCode: str | None
    urlQrCode: Annotated[str | None, Field(description="LPA:1$server$code")]
    subscriberId: int | None
    esimId: int | None
    subsPackageId: int | None
    userSimName: Annotated[str | None, Field(description="Null when it was found out later")]
    idempotencyKey: str
    status: Literal["issued"]
    unresolved_issuance: NotRequired[Annotated[str, Field(description="Another key of yours for this template: outcome unknown")]]


class IssuedData(TypedDict):
    """`data` holds the eSIM."""

    data: IssuedEsim


@dataclass(slots=True)
class InventoryPurpose:
    """The ledger's row is all there is of it."""

    key: str
    request_id: str
    ids: Ids
    warning: str | None = None

    def sent(self) -> tuple[int, object]:
        """Nobody knows."""
        refusal = unknown_outcome()
        return refusal.status, refusal.body(self.request_id)

    def begin(self, connection: Connection) -> None:
        """Nothing beside the row."""

    def undo(self, connection: Connection) -> None:
        """Nothing beside the row."""

    def issued(self, connection: Connection, row: IssuanceRow, esim: DrawnEsim, now: float) -> Conclusion:
        """esim.issued tells of it, once."""
        emit(connection, event=drawn_event(row, plan=None, now=now, ids=self.ids), ids=self.ids)
        shows: IssuedEsim = {
            "iccid": esim.iccid,
            "smdpServer": esim.smdp,
            "activationCode": esim.code,
            "urlQrCode": esim.qr,
            "subscriberId": esim.subscriber_id,
            "esimId": esim.sim_id,
            "subsPackageId": esim.package_id,
            "userSimName": esim.name,
            "idempotencyKey": self.key,
            "status": "issued",
        }
        if self.warning is not None:
            shows["unresolved_issuance"] = self.warning
        answer: IssuedData = {"data": shows}
        return Conclusion(CREATED, answer, False, "ok" if self.warning is None else "unresolved_issuance")

    def failed(self, connection: Connection, row: IssuanceRow, refusal: Refusal) -> Conclusion:
        """The refusal is the key's answer."""
        return Conclusion(refusal.status, refusal.body(self.request_id), False, refusal.error_code)

    def reopen(self, connection: Connection) -> None:
        """Nothing beside the row."""

    def unknown(self, connection: Connection, row: IssuanceRow, code: str = UNKNOWN) -> Conclusion:
        """Neither is it known, nor tried again."""
        refusal = unknown_outcome(code)
        return Conclusion(refusal.status, refusal.body(self.request_id), True, code)
