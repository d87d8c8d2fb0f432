"""Drawing an eSIM for an order of a shop, which nobody waits for: what comes of it is the order's, and told by mail."""

from dataclasses import dataclass

from operations.deps import Deps
from operations.services.issuing.drawn_esim import DrawnEsim
from operations.services.issuing.esim_profile import seal_profile
from operations.services.issuing.issuance import drawn_event
from operations.services.issuing.purpose import MANUAL, UNKNOWN
from operations.services.shop.order_letters import tell_failed, tell_late, tell_ready, tell_review
from registry.errors import Conflict, Refusal
from registry.ports import Conclusion
from storage.connection import Connection
from storage.issuing.issuance import IssuanceRow
from storage.shop.order_queue import Esim, fail_order, make_ready, reopen_order, review_order, send_order, unsend_order
from storage.webhooks.events import emit

FULFIL = "fulfil_storefront_order"
"""The ledger's name of what draws for orders; the key is the order's number."""
DONE = 200


class NotOurs(Conflict):
    """Another worker has the order, or it moved on; nothing was sent."""

    code = "order_not_ours"


@dataclass(slots=True)
class OrderPurpose:
    """`lease` is the worker's claim on the order; without one it only settles what was sent before."""

    deps: Deps
    order: str
    organisation: str
    lease: str | None = None
    warning: str | None = None

    def sent(self) -> tuple[int, object]:
        """Nobody is answered."""
        return DONE, self.order

    def begin(self, connection: Connection) -> None:
        """The order is provisioning, under this worker's lease and once."""
        now = self.deps.clock.now()
        if self.lease is None or not send_order(connection, order=self.order, token=self.lease, owner=self.deps.replica, now=now):
            raise NotOurs("The order is another worker's, or not to be sent; nothing was sent")

    def undo(self, connection: Connection) -> None:
        """It is paid, and to be sent."""
        unsend_order(connection, order=self.order)

    def issued(self, connection: Connection, row: IssuanceRow, esim: DrawnEsim, now: float) -> Conclusion:
        """The buyer has the eSIM, and esim.issued tells of it, once.

        Choice: an eSIM that is named once the money is on its way back is the ledger's alone, to be given back to stock by a person.
        """
        sealed = seal_profile(esim.profile, keyring=self.deps.keyring, organisation=self.organisation, intent=self.order)
        if make_ready(connection, order=self.order, esim=Esim(esim.iccid, sealed, esim.package_id), now=now):
            emit(connection, event=drawn_event(row, plan=None, now=now, ids=self.deps.ids), ids=self.deps.ids)
            tell_ready(connection, self.deps, self.order)
        return Conclusion(DONE, self.order, False, "ok")

    def failed(self, connection: Connection, row: IssuanceRow, refusal: Refusal) -> Conclusion:
        """Nothing was drawn: the buyer gets the money back."""
        if fail_order(connection, order=self.order, code=refusal.error_code, now=self.deps.clock.now()):
            tell_failed(connection, self.deps, self.order)
        return Conclusion(DONE, self.order, False, refusal.error_code)

    def reopen(self, connection: Connection) -> None:
        """It had failed, and now an eSIM is named for it: the refund waits for a person, unless it has been begun. That one stands."""
        if reopen_order(connection, order=self.order, code=MANUAL, now=self.deps.clock.now()):
            tell_review(connection, self.deps, self.order)
        else:
            tell_late(connection, self.deps, self.order)

    def unknown(self, connection: Connection, row: IssuanceRow, code: str = UNKNOWN) -> Conclusion:
        """The operator is told, once; no second eSIM is drawn."""
        if review_order(connection, order=self.order, code=code, now=self.deps.clock.now()):
            tell_review(connection, self.deps, self.order)
        return Conclusion(DONE, self.order, True, code)
