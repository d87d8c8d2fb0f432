"""Drawing an eSIM from stock, once per key for ever: look at the stock, commit what is sent, send it, commit what came of it.

What the eSIM is for, an `IssuanceTarget`, has rows of its own and answers its caller; the ledger knows nothing else about it.
"""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import anyio

from clients.ocs.client import Ocs
from clients.ocs.outcome import RETRY_LATER_SECONDS
from clients.ocs.packages import Affected, Package, Period
from clients.ocs.places import issuing
from operations.deps import Deps
from operations.ledger.esims import DrawnEsim, lpa_text
from operations.ledger.issuance_events import log_esim_rolled_back, log_issuance_failed, log_issuance_unknown
from operations.ledger.send_once import UNKNOWN, Dispatch, SendOutcome, answer_unknown_key, audit_settlement, send_once
from operations.ledger.stock_snapshot import look_at_stock
from operations.upstream.connection import Upstream
from operations.upstream.package_terms import set_package_terms
from registry.clock import DAY_SECONDS
from registry.errors import Conflict, OcsError, OcsNotFound, Refusal, StoreUnavailable
from registry.ids import Ids
from registry.ports import Conclusion
from storage.claims import reopen_claim
from storage.engine.sql import Connection
from storage.fleet_lines import mark_lines
from storage.intents import end_intent
from storage.issuance import (
    IssuanceRow,
    NewIssuance,
    begin_issuance,
    dispute_failure,
    find_issuance,
    holder_of_iccid,
    keep_issuance_unknown,
    mark_issuance_failed,
    mark_issuance_unknown,
    mark_issued,
    release_holder,
    unresolved_like,
    unsend_issuance,
)
from storage.line_tags import end_tags
from storage.package_adaptations import (
    ADAPTATION_LEASE_MS,
    PackageTerms,
    adapt_later,
    end_adaptation,
    forget_adaptation,
    insert_adaptation,
    make_adaptation_due,
)
from storage.replicas import REPLICA_LEASE_SECONDS
from storage.stock_snapshots import was_returned

OUTCOME_UNKNOWN, MANUAL_RECONCILIATION, NO_INVENTORY_CODE = "OUTCOME_UNKNOWN", "MANUAL_RECONCILIATION_REQUIRED", "no_inventory"
# Choice: a code of its own, since a program must tell a key that was used up by a refusal from one that was freed (ocs_error).
ISSUANCE_FAILED = "issuance_failed"


class IssuanceTarget(Protocol):
    """What an eSIM is drawn for. Every method but `sent` runs in the transaction of the ledger's row, and may run again."""

    warning: str | None
    """Another key of the same caller, account and template whose outcome is unknown."""

    @property
    def ids(self) -> Ids:
        """Makes the ids of its events."""
        ...

    def sent(self) -> tuple[int, object]:
        """Status and body of the answer, should nobody come back from the call."""
        ...

    def begin(self, connection: Connection) -> None:
        """Write the target's own rows, in the commit before the call."""
        ...

    def undo(self, connection: Connection) -> None:
        """Undo `begin`: the call surely never left."""
        ...

    def issued(self, connection: Connection, row: IssuanceRow, esim: DrawnEsim, now: float) -> Conclusion:
        """Keep the drawn `esim` of the ledger's `row`, emit its event, and answer with it. `now`: Unix seconds."""
        ...

    def failed(self, connection: Connection, row: IssuanceRow, refusal: Refusal) -> Conclusion:
        """Nothing was drawn for the ledger's `row`; `refusal` says why."""
        ...

    def adapting(self, connection: Connection, row: IssuanceRow, refusal: Refusal | None) -> Conclusion:
        """The eSIM of `row` is drawn, and its package is not as it was sold yet; `refusal`: what the charging system says to that.

        The eSIM is not handed out before.
        """
        ...

    def reopen(self, connection: Connection) -> None:
        """The target was told that nothing was drawn, and that is not certain any more."""
        ...

    def unknown(self, connection: Connection, row: IssuanceRow, code: str) -> Conclusion:
        """The outcome of `row` is not known; `code`: OUTCOME_UNKNOWN, or MANUAL_RECONCILIATION where no evidence will tell."""
        ...


class IssuanceTakenBack(Conflict):
    """The eSIM of this key was given back, or may have been."""

    code = "issuance_taken_back"


GIVEN_BACK_STATES = ("rollback_pending", "rolled_back", "rollback_unknown", "released")


def require_not_given_back(row: IssuanceRow | None) -> None:
    """Choice: a key whose eSIM went back to stock does not repeat its first answer, which would show what is another's by now."""
    if row is not None and row.state in GIVEN_BACK_STATES:
        raise IssuanceTakenBack(
            f"The eSIM that this key drew is {row.state.replace('_', ' ')}: it was given back to stock, or may have been",
            hint="The key stays used, and draws nothing; use a new key for another eSIM",
        )


class NoInventory(Conflict):
    """The account has no free eSIM."""

    code = NO_INVENTORY_CODE


def no_free_esim(account_id: int) -> NoInventory:
    """The refusal where the account `account_id` has none to draw."""
    return NoInventory(
        f"Account {account_id} has no free eSIM; nothing was drawn",
        hint="esim_status_per_account counts the free ones; take eSIMs back with rollback_esim_issuance, or ask your provider for more",
    )


def no_esim_drawn() -> OcsError:
    """The refusal where it is proved that nothing was drawn."""
    return OcsError(
        "The charging system drew no eSIM for this call; nothing was done", code=ISSUANCE_FAILED, hint="Use a new key to draw one"
    )


PACKAGE_ADAPTING, PACKAGE_NOT_ADAPTED = "package_adapting", "package_not_adapted"
ANY_WORKER, ADAPTER = "", "adaptation"
ADAPTATION_PATIENCE_SECONDS = 10.0
"""Choice: for how long whoever issues an eSIM waits for its package to be set to what was sold."""
ADAPTATION_PAUSES = (5, 30, 300, 3600, 6 * 3600)
UNRESOLVED_WARNING_SECONDS = DAY_SECONDS
# Choice: with these codes the charging system itself does not vouch for having done nothing (3 server fault, 5 and 7 its database).
UNPROVEN_OCS_CODES = frozenset({3, 5, 7})
OCS_NOT_IN_THIS_STATE, OCS_TRAFFIC_LIMIT = 14, 100
INTENT_BACK_IN_STOCK = (
    '{"code":"released","message":"This eSIM was returned to stock at the charging system, and belongs to another issuance now"}'
)


@dataclass(frozen=True, slots=True)
class IssuanceOrder:
    """What is to be drawn. `period` is the wire's dates; without either window the package runs from its first use.

    `patient`: whoever sends it tries again by itself, so that a traffic limit frees the key instead of using it up.
    `terms`: what the package is set to once it is there, where it is not to stay as its template makes it.
    """

    key: str
    account_id: int
    template_id: int
    intent: str | None = None
    validity_days: int | None = None
    period: Period | None = None
    patient: bool = False
    terms: PackageTerms | None = None


@contextmanager
def before_issuance() -> Generator[None]:
    """Wraps reads of the charging system before an eSIM is drawn: an OcsError among them says then that none was."""
    with issuing():
        try:
            yield
        except OcsError as refusal:
            if type(refusal) is not OcsError or refusal.hint is not None:  # what the caller has to change, or what says it all
                raise
            raise OcsError(
                f"{refusal.message.removesuffix('.')}. No eSIM was drawn",
                ocs_code=refusal.ocs_code,
                code=refusal.error_code,
                hint="Repeat the call with the same key",
                before_execution=refusal.before_execution,
                details=refusal.details,
                retry_after=int(refusal.headers.get("Retry-After", RETRY_LATER_SECONDS)),
            ) from None


async def draw_esim(ctx: Dispatch, upstream: Upstream, order: IssuanceOrder, target: IssuanceTarget) -> Conclusion:
    """Look at the stock, and send the one draw of a key. Raises what surely came before the call; the key is free then."""
    deps = ctx.deps
    with issuing():
        if not deps.draws:
            raise no_network_to_draw_from()
        with before_issuance():
            look = await look_at_stock(deps, upstream, order.account_id)
        row = NewIssuance(
            organisation=ctx.organisation,
            key=order.key,
            operation=ctx.operation_id,
            claim_key=ctx.claim_key,
            principal=ctx.principal,
            account_id=order.account_id,
            template_id=order.template_id,
            validity_days=order.validity_days,
            period=None if order.period is None else f"{order.period['start']}/{order.period['end']}",
            intent=order.intent,
            owner=deps.replica,
            lease=ctx.request_id,
            stock=look.id,
        )
        draw = EsimDraw(deps, upstream, order, target, row)
        concluded = await send_once(ctx, draw)
        return await adapt_drawn_package(ctx, draw, concluded) if concluded.outcome == PACKAGE_ADAPTING else concluded


@dataclass(slots=True)
class EsimDraw:
    """The draw of a key. `target` is what it is for, `row` the ledger's row of it."""

    deps: Deps
    upstream: Upstream
    order: IssuanceOrder
    target: IssuanceTarget
    row: NewIssuance
    believed: bool = True
    """False: another call's answer named the same ICCID a moment ago."""
    note: str | None = None
    """Why nothing was drawn, where the refusal does not say it."""
    drawn: DrawnEsim | None = None

    @property
    def lost_answer(self) -> tuple[int, object]:
        return self.target.sent()

    def begin(self, connection: Connection, *, now: float) -> None:
        """The row and what it is for; another unknown key of the same kind is noted, and blocks nothing (abuse case 4)."""
        row = self.row
        self.target.begin(connection)
        begin_issuance(connection, row=row, now=now)
        if self.order.terms is not None:
            insert_adaptation(connection, organisation=row.organisation, key=row.key, terms=self.order.terms, now=now)
        self.target.warning = unresolved_like(
            connection,
            organisation=row.organisation,
            principal=row.principal,
            account_id=row.account_id,
            template_id=row.template_id,
            since=now - UNRESOLVED_WARNING_SECONDS,
            key=row.key,
        )

    async def send(self, waited: float) -> SendOutcome[DrawnEsim]:
        order = self.order
        try:
            require_draw_in_time(self.deps, waited)
            made = await self.upstream.ocs.packages.affect_from_account(
                order.template_id, order.account_id, active_period=order.period, validity_days=order.validity_days
            )
        except OcsError as refusal:
            return await self._judge(refusal)
        except Refusal as refusal:
            return refusal
        esim = self.drawn = esim_from_answer(made)
        self.believed = self.deps.stock.is_first_to_name(esim.iccid, self.row)
        return esim

    async def _judge(self, refusal: OcsError) -> SendOutcome[DrawnEsim]:
        """Raises `refusal` where the call never left and the key is free."""
        if refusal.before_execution and (refusal.ocs_code is None or self.order.patient):
            if not await self._was_recovered():
                raise refusal
            self.note = "never sent"
            return no_esim_drawn()
        if is_unproven(refusal):
            return UNKNOWN
        # A template that was there a moment ago: so it is the eSIM that is missing.
        return no_free_esim(self.order.account_id) if isinstance(refusal, OcsNotFound) else draw_refusal(refusal)

    async def _was_recovered(self) -> bool:
        """Whether recovery has the row of a call that never left: its key is not free then, and answers that nothing was drawn."""
        try:
            row = await self.deps.store.read(find_issuance, organisation=self.row.organisation, key=self.row.key)
        except StoreUnavailable:
            return False  # the release is deferred, and frees what is this call's still
        return row is not None and row.state != "dispatching"

    def settle(self, connection: Connection, *, outcome: SendOutcome[DrawnEsim], now: float) -> Conclusion:
        target, named = self.target, {"organisation": self.row.organisation, "key": self.row.key}
        if outcome is UNKNOWN:
            return record_issuance_unknown(connection, target=target, **named, now=now)
        if isinstance(outcome, Refusal):
            return record_issuance_failed(connection, target=target, **named, refusal=outcome, now=now, note=self.note)
        lease = None if self.order.terms is None else self.row.lease
        return record_issued_esim(connection, target=target, **named, esim=outcome, now=now, believed=self.believed, adapts=lease)

    def unsend(self, connection: Connection, *, now: float) -> None:
        del now
        organisation, key = self.row.organisation, self.row.key
        if unsend_issuance(connection, organisation=organisation, key=key, lease=self.row.lease):
            self.target.undo(connection)
            if self.order.terms is not None:
                forget_adaptation(connection, organisation=organisation, key=key)


def is_unproven(refusal: OcsError) -> bool:
    """Whether the charging system may have done what was asked, for all that `refusal` says."""
    return refusal.outcome_unknown or refusal.ocs_code in UNPROVEN_OCS_CODES


def draw_refusal(refusal: OcsError) -> OcsError:
    """The charging system's refusal in the words of a draw: the general ones speak of a resource to read, and of calling again."""
    text, hint = f"{refusal.message} No eSIM was drawn", "Use a new key to try again; this one stays used"
    if refusal.ocs_code == OCS_NOT_IN_THIS_STATE:
        text = "The charging system cannot put a package of this template on an eSIM of this account; no eSIM was drawn"
        hint = "Use a new key to draw with another template: this one is probably of another sponsor than the account's stock, or recurring"
    elif refusal.ocs_code == OCS_TRAFFIC_LIMIT:
        text = "The traffic limit of the charging system refused the draw; no eSIM was drawn"
        hint = "Use a new key to try again after a pause; this one stays used"
    return refusal.retold(text, code=ISSUANCE_FAILED, hint=hint)


def require_draw_in_time(deps: Deps, waited: float) -> None:
    """A process that stood still may have lost its row to recovery, and recovery may have settled it: a call that late stays here.

    Choice: it has to be over before a lease that was renewed right before the dispatch ends. What stands still after this is sent
    all the same, and told by its answer (see `dispute_failed_issuance`).
    """
    if waited > REPLICA_LEASE_SECONDS - deps.ocs.total_seconds:
        raise OcsError(
            "The server stood still when it was about to send the call, so it was not sent; nothing was drawn",
            hint="Repeat the call with the same key",
            retry_after=1,
            before_execution=True,
        )


def no_network_to_draw_from() -> OcsError:
    """The refusal of a process without a network to draw from."""
    return OcsError(
        "The charging system is simulated inside the running server, and this process is another one; nothing was drawn",
        hint="Call the running server: --url and --key",
        before_execution=True,
    )


def record_issued_esim(
    connection: Connection,
    *,
    target: IssuanceTarget,
    organisation: str,
    key: str,
    esim: DrawnEsim,
    now: float,
    note: str | None = None,
    believed: bool = True,
    adapts: str | None = ANY_WORKER,
) -> Conclusion:
    """The eSIM becomes this key's, unless another key has it: an answer that says so is not believed.

    `adapts`: the lease of whoever sets its package to what was sold; ANY_WORKER: the next one to look. None: it stays as it is made.
    """
    found = current_issuance(connection, organisation, key)
    if found.state == "failed":
        return dispute_failed_issuance(connection, target, found, esim.iccid, now)
    if found.state != "issued" and not release_returned_iccid(connection, target.ids, found.stock, esim.iccid, now, believed=believed):
        return record_issuance_unknown(connection, target=target, organisation=organisation, key=key, now=now, replied=esim.iccid)
    row = mark_issued(connection, organisation=organisation, key=key, drawn=esim.drawn, now=now, note=note)
    if row is None:
        if found.state != "issued" or found.iccid != esim.iccid:
            return keep_recorded_outcome(connection, target, organisation, key)
        row = found  # reconciliation was faster
    mark_lines(connection, iccids=[esim.iccid], now=now, by=organisation)
    if adapts is not None and hold_adaptation(connection, row, lease=adapts, now=now):
        return target.adapting(connection, row, None)
    return target.issued(connection, row, esim, now)


def hold_adaptation(connection: Connection, row: IssuanceRow, *, lease: str, now: float) -> bool:
    """Whether the package of `row` is to be set to what was sold: by whoever has `lease`, or by the next worker."""
    named, now_ms = {"organisation": row.organisation, "key": row.key}, int(now * 1000)
    if lease == ANY_WORKER:
        return make_adaptation_due(connection, **named, due_ms=now_ms)
    return make_adaptation_due(connection, **named, due_ms=now_ms + ADAPTATION_LEASE_MS, lease=lease)


async def adapt_drawn_package(ctx: Dispatch, draw: EsimDraw, concluded: Conclusion) -> Conclusion:
    """Sets the package of an eSIM that was drawn a moment ago to what was sold, while whoever asked for it waits; else a worker does.

    Its lease was taken in the commit that said that the eSIM is drawn. The answer: `concluded`, or what came of it.
    """
    deps, esim, terms = draw.deps, draw.drawn, draw.order.terms
    if esim is None or terms is None or esim.package_id is None:
        return concluded
    outcome: SendOutcome[None] = UNKNOWN
    with anyio.move_on_after(ADAPTATION_PATIENCE_SECONDS):
        outcome = await try_package_terms(draw.upstream.ocs, esim.package_id, terms)
    attempt = AdaptationAttempt(draw.row.lease, 0, outcome)
    named = {"organisation": draw.row.organisation, "key": draw.row.key}
    try:
        settled = await deps.store.write(
            record_adaptation, deps=deps, target=draw.target, **named, esim=esim, attempt=attempt, now=deps.clock.now()
        )
    except StoreUnavailable:  # the lease ends, and a worker looks at the package
        return concluded
    if settled is None:
        return concluded
    ctx.revise(settled)
    return settled


async def try_package_terms(ocs: Ocs, package_id: int, terms: PackageTerms, seen: Package | None = None) -> SendOutcome[None]:
    """None: the package is set. A refusal of the charging system, or UNKNOWN where it may have been set, or could not be asked."""
    try:
        await set_package_terms(ocs, package_id, terms, seen)
    except OcsError as refusal:
        return UNKNOWN if refusal.before_execution or is_unproven(refusal) else refusal
    except Refusal as refusal:
        return refusal
    return None


class AdaptationAttempt(NamedTuple):
    """What came of setting a package to what was sold; `tries`: how often it had been tried by workers."""

    lease: str
    tries: int
    outcome: SendOutcome[None]


def record_adaptation(
    connection: Connection,
    *,
    deps: Deps,
    target: IssuanceTarget,
    organisation: str,
    key: str,
    esim: DrawnEsim,
    attempt: AdaptationAttempt,
    now: float,
) -> Conclusion | None:
    """Hands out the `esim` whose package is as it was sold; else says how it stands, and when a worker looks again.

    None: the lease was lost, or the eSIM is being given back. The key's stored answer follows.
    """
    row, named = current_issuance(connection, organisation, key), {"organisation": organisation, "key": key, "lease": attempt.lease}
    pause = ADAPTATION_PAUSES[min(attempt.tries, len(ADAPTATION_PAUSES) - 1)]
    if row.state != "issued" or attempt.outcome is not None:
        if not adapt_later(connection, **named, due_ms=int((now + pause) * 1000)) or row.state != "issued":
            return None
        concluded = target.adapting(connection, row, attempt.outcome if isinstance(attempt.outcome, Refusal) else None)
    else:
        if not end_adaptation(connection, **named):
            return None
        mark_lines(connection, iccids=[esim.iccid], now=now, by=organisation)
        concluded = target.issued(connection, row, esim, now)
        audit_settlement(
            connection, deps, organisation, row.operation, "package_adapted", now=now, status=concluded.status, by="adaptation"
        )
    if row.claim_key is not None:
        claim = (organisation, row.operation, row.claim_key)
        answer_unknown_key(connection, deps, *claim, concluded.status, concluded.body, unknown=concluded.unknown)
    return concluded


def release_returned_iccid(connection: Connection, ids: Ids, stock: str, iccid: str, now: float, *, believed: bool) -> bool:
    """Nobody has the ICCID, or whoever has it had lost it before this draw: it was in stock again."""
    holder = holder_of_iccid(connection, iccid=iccid)
    if holder is None:
        return believed
    if not was_returned(connection, stock=stock, holder=holder):
        return False
    released = release_holder(connection, holder=holder, now=now, note="seen in stock, and drawn again")
    if released is not None and released.state == "rolled_back":
        log_esim_rolled_back(connection, row=released._replace(iccid=iccid), ids=ids, now=now)
    end_tags(connection, organisation=holder.organisation, iccids=[iccid])
    if holder.intent is not None:
        end_intent(connection, intent=holder.intent, organisation=holder.organisation, error=INTENT_BACK_IN_STOCK)
    return True


def dispute_failed_issuance(connection: Connection, target: IssuanceTarget, row: IssuanceRow, iccid: str, now: float) -> Conclusion:
    """It was settled that nothing was drawn, and now an answer names an eSIM: a person has to look, and the key says so."""
    opened = dispute_failure(connection, organisation=row.organisation, key=row.key, replied=iccid, now=now)
    if opened is None:
        return keep_recorded_outcome(connection, target, row.organisation, row.key)
    if row.claim_key is not None:
        reopen_claim(connection, organisation=row.organisation, operation=row.operation, key=row.claim_key)
    target.reopen(connection)
    log_issuance_unknown(connection, row=opened, ids=target.ids, now=now, reason="late_answer")
    return target.unknown(connection, opened, MANUAL_RECONCILIATION)


def record_issuance_failed(
    connection: Connection, *, target: IssuanceTarget, organisation: str, key: str, refusal: Refusal, now: float, note: str | None = None
) -> Conclusion:
    """Settles the issuance `key` as failed, because nothing was drawn; `refusal` says why. `now`: Unix seconds."""
    row = mark_issuance_failed(connection, organisation=organisation, key=key, now=now, note=note or refusal.error_code)
    if row is None:
        return keep_recorded_outcome(connection, target, organisation, key)
    log_issuance_failed(connection, row=row, code=refusal.error_code, ids=target.ids, now=now)
    return target.failed(connection, row, refusal)


def record_issuance_unknown(
    connection: Connection, *, target: IssuanceTarget, organisation: str, key: str, now: float, replied: str | None = None
) -> Conclusion:
    row = mark_issuance_unknown(connection, organisation=organisation, key=key, now=now, replied=replied)
    if row is not None:
        log_issuance_unknown(connection, row=row, ids=target.ids, now=now)
    else:
        row = keep_issuance_unknown(connection, organisation=organisation, key=key, now=now, replied=replied)
    return keep_recorded_outcome(connection, target, organisation, key) if row is None else target.unknown(connection, row, OUTCOME_UNKNOWN)


def keep_recorded_outcome(connection: Connection, target: IssuanceTarget, organisation: str, key: str) -> Conclusion:
    """The row was settled otherwise while this process was away; what it says stands."""
    return target.unknown(connection, current_issuance(connection, organisation, key), MANUAL_RECONCILIATION)


def current_issuance(connection: Connection, organisation: str, key: str) -> IssuanceRow:
    """The row of an issuance that was begun, as it is in this transaction; rows are never deleted."""
    row = find_issuance(connection, organisation=organisation, key=key)
    if row is None:
        raise RuntimeError(f"there is no issuance {key}")
    return row


def esim_from_answer(made: Affected) -> DrawnEsim:
    """What the answer to a draw said. The wire's shape has checked that the ICCID and the package are there."""
    smdp, code = made.get("smdpServer"), made.get("activationCode")
    return DrawnEsim(
        iccid=made.get("iccid", ""),
        smdp=smdp,
        code=code,
        qr=made.get("urlQrCode") or lpa_text(smdp, code),
        subscriber_id=made.get("subscriberId"),
        sim_id=made.get("esimId"),
        package_id=made.get("subsPackageId"),
        name=made.get("userSimName"),
    )
