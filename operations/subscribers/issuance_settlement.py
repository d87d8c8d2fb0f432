"""Settling an issuance whose outcome is unknown, by an admin of the organisation who has looked what became of it."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from operations.deps import Ctx
from operations.ledger.reconciliation import IssuanceNotSettled
from operations.ledger.rollback import LedgerData, render_ledger_row
from operations.ledger.settlements import (
    IssuanceStatement,
    SettlementAgainstEvidence,
    SettlementReason,
    SettlementTooEarly,
    check_issuance_statement,
    is_unresolved,
    settle_as_said,
    settlement_of,
)
from operations.subscribers.inventory import EXAMPLE_ISSUANCE_KEY, IssuanceRef, find_own_issuance
from operations.upstream.connection import require_connected
from operations.vocabulary import Iccid
from registry.caller import Role
from registry.challenge import Challenge, describe_loss, quote_name
from registry.errors import NotFound, OcsError, OrgNotConnected
from registry.operation import Auth, Example, FieldRule, Scope, SpendKind, operation
from storage.engine.sql import Connection
from storage.issuance import IssuanceRow


class IssuanceOutcome(IssuanceRef):
    """Which issuance, and what became of it."""

    outcome: Annotated[Literal["issued", "not_issued"], Field(description="issued: the eSIM was drawn for it. not_issued: none was.")]
    iccid: Annotated[Iccid | None, Field(description="The eSIM that was drawn, with issued alone. 18-22 digits.")] = None
    reason: SettlementReason

    @model_validator(mode="after")
    def _named_with_issued_alone(self) -> Self:
        if (self.outcome == "issued") != (self.iccid is not None):
            wrong = "says issued, and iccid is missing" if self.iccid is None else "says not_issued, and iccid names an eSIM"
            raise FieldRule(
                f"outcome: {wrong}",
                param="iccid",
                hint="Give iccid with issued: the eSIM that was drawn. Leave it out with not_issued",
            )
        return self


async def issuance_to_settle(ctx: Ctx, params: IssuanceOutcome) -> IssuanceStatement:
    """The statement, checked as long as there is something to settle; a replay of one that was settled reads nothing."""
    await require_connected(ctx)
    row = (await find_own_issuance(ctx, params)).row
    esim = await check_issuance_statement(ctx, row, params.iccid) if is_unresolved(row) else None
    ctx.see_state(f"{row.key} {row.state}")
    return IssuanceStatement(row, esim)


def require_unknown_outcome(row: IssuanceRow) -> None:
    """Raises IssuanceNotSettled for an issuance whose outcome is known, and for one that is being taken back."""
    if row.state == "rollback_unknown":
        raise IssuanceNotSettled(
            f"{row.key} is rollback_unknown: an eSIM was issued, and whether it was taken back is unknown; nothing was settled",
            hint=f"Whoever runs the service settles that: reseller issuance settle KEY --org {row.organisation}, "
            "with --rolled-back or --still-issued",
        )
    if not is_unresolved(row):
        raise IssuanceNotSettled(
            f"{row.key} is {row.state}, so there is nothing to settle",
            hint="Only outcome_unknown and manual_reconciliation_required are settled",
        )


async def name_statement(_ctx: Ctx, params: IssuanceOutcome, said: IssuanceStatement) -> Challenge:
    """What the key answers from then on."""
    require_unknown_outcome(said.row)
    order = quote_name(said.row.key)
    if params.iccid is None:
        return Challenge(
            f"This will settle the issuance {order} as failed, for good: no eSIM was drawn for it. It cannot be undone.",
            (describe_loss("issuance", said.row.key, account=str(said.row.account_id)),),
        )
    esim = describe_loss("esim", params.iccid, order=said.row.key, account=str(said.row.account_id))
    return Challenge(
        f"This will settle the issuance {order} as issued, for good: with the eSIM {quote_name(params.iccid)}. It cannot be undone.",
        (esim,),
    )


@operation(
    "POST",
    "/v1/subscribers/issue-from-inventory/{idempotencyKey}/settlement",
    spends=SpendKind.NOTHING,
    irreversible=True,
    scope=Scope.ANY,
    role=Role.ADMIN,
    auth=Auth.SESSION,
    confirm=True,
    moves=True,
    access=issuance_to_settle,
    challenge=name_statement,
    title="Settle eSIM issuance",
    raises=[NotFound, IssuanceNotSettled, SettlementTooEarly, SettlementAgainstEvidence, OrgNotConnected, OcsError],
    examples=[
        Example(
            "The account shows no draw at that time",
            {"idempotencyKey": EXAMPLE_ISSUANCE_KEY, "outcome": "not_issued", "reason": "No line left the stock on 20 November"},
            {
                "data": {
                    "idempotency_key": EXAMPLE_ISSUANCE_KEY,
                    "status": "failed",
                    "iccid": None,
                    "package_id": None,
                    "account_id": 8101,
                    "updated_at": "2026-11-21T09:30:00Z",
                }
            },
        )
    ],
)
async def settle_issuance(ctx: Ctx, params: IssuanceOutcome, said: IssuanceStatement) -> LedgerData:
    """Say how an issuance ended whose outcome is unknown. It is for good.

    For admins who are signed in: no API key settles. Look at the charging system first; the key answers from then on what you said.

    Only where nothing was found out for 24 hours (409 `settlement_too_early` before), and nothing that the charging system shows speaks
    against it (409 `settlement_against_evidence`): where exactly one line shows the draw, only that one is taken, and where all lines
    that left the stock are others', only not_issued. `iccid` is a line of the issuance's account, not in stock, with a package of its
    template, which no other issuance has (409 `issuance_not_settled`). Nothing is sent to the charging system. An intent or an order that
    the issuance was for ends with it: the eSIM goes to its buyer, or what was paid goes back. What is refused here, whoever runs the
    service can settle by `reseller issuance settle`. Your name and the reason are kept with the issuance and in the audit log.
    """
    settlement = settlement_of(ctx, said, params.reason)

    def settle(connection: Connection, *, now: float) -> LedgerData:
        require_unknown_outcome(said.row)  # what was settled when it was looked at was not checked against anything
        return {"data": render_ledger_row(settle_as_said(connection, deps=ctx.deps, said=said, settlement=settlement, now=now))}

    settled = await ctx.settle_result(settle, now=ctx.now)
    ctx.deps.post()
    ctx.deps.wake_worker()
    return settled
