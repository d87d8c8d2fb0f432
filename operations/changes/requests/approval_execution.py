"""What was approved is executed once: under the credential that asked, its restrictions and its quota, where both parties may do it then.

The claim of the call's idempotency key makes it once, whoever tries and however often a process dies between.
"""

from collections.abc import Callable
from typing import Final

import orjson

from operations.changes.requests.approval_requests import open_content
from operations.deps import Deps
from registry.approvals import ApprovalTerms
from registry.call import Mandate, Reply
from registry.caller import Caller
from registry.clock import DAY_SECONDS
from registry.errors import Conflict, OcsError, ProviderError, Refusal, Restricted, StoreUnavailable, Unauthorized
from storage.approvals import ApprovalRow, approvals_left_alone, end_approval, leave_approval, take_approval
from storage.directory import find_approver, find_asker
from storage.sealing import approval_field

LONGEST_RESUMED_SECONDS: Final = DAY_SECONDS
"""Choice: what nothing could execute within a day of its approval is not done any more. Claims live longer, so none is executed twice."""
UNSENT_TRIED_SECONDS: Final = 600.0
"""Choice: for how long after its approval a call that did not reach the provider is tried again; then the asker hears why."""
TRY_LATER_CODES = frozenset({"rate_limited", "idempotency_in_progress", "store_unavailable"})
RIGHT_LOST_CODES = frozenset({"approval_outdated", "org_not_connected"})


class ApprovalVoid(Conflict, code="approval_void"):
    """The call cannot be made any more as it was asked for: it was not approved, and nothing was done."""


async def read_asker(deps: Deps, row: ApprovalRow, now: float) -> Caller:
    """Who asked, with what they may do now. Raises Unauthorized where their credential or their membership has ended."""
    found = await deps.store.read(find_asker, credential=row.credential, owner=row.organisation, now=now)
    if found is None:
        raise Unauthorized("The credential that asked has ended, or its person has left the organisation", presented=True)
    return found


async def read_approver(deps: Deps, row: ApprovalRow, person: str) -> Caller:
    """Who approves, with what they may do now. Raises Restricted for somebody who is no member any more."""
    found = await deps.store.read(find_approver, person=person, owner=row.organisation)
    if found.owner != row.organisation:
        raise Restricted("You are no member of the organisation that this is about")
    return found


async def terms_for_asker(deps: Deps, row: ApprovalRow, asker: Caller) -> ApprovalTerms | None:
    """What the call would do now; None where its key has an answer. Raises the refusal that the asker would get. Waits for the network."""
    content = open_content(deps.keyring, approval=row.id, organisation=row.organisation, sealed=row.request)
    try:
        return await deps.internal_calls.inquire(row.operation, content["arguments"], caller=asker, idempotency_key=row.idempotency_key)
    except ProviderError as refusal:
        if not refusal.outcome_unknown:  # else the call was made with this key, and nobody knows what came of it
            raise
        return None


async def check_approver(deps: Deps, row: ApprovalRow, approver: Caller, asker: Caller) -> None:
    """Raises Restricted where `approver` may not make this call themselves now, or is barred from deciding. Waits for the network."""
    if asker.restrictions.another_person and approver.principal == asker.principal:
        raise Restricted(
            "The credential that asks is yours, and it was made so that somebody else approves its calls",
            hint="Ask a colleague who may do it: the page Members names them",
        )
    content = open_content(deps.keyring, approval=row.id, organisation=row.organisation, sealed=row.request)
    try:
        await deps.internal_calls.inquire(row.operation, content["arguments"], caller=approver, idempotency_key=deps.ids.new("idk_"))
    except Refusal as refusal:
        if is_temporary(refusal):
            raise
        raise Restricted(f"You may not do this yourself: {refusal.message}", hint="Ask a colleague who may do it") from None


def is_temporary(refusal: Refusal) -> bool:
    """Whether the same call may work later: somebody who cannot be asked now, too much at once, a call that is under way."""
    if refusal.error_code in TRY_LATER_CODES or refusal.status == 503:
        return True
    return isinstance(refusal, ProviderError) and refusal.status >= 500


async def execute_approved(deps: Deps, row: ApprovalRow) -> None:
    """Makes the call of a request that this process has taken, and notes what came of it; what may work later is left to the next look.

    Waits for the network. Nothing is raised that the call was refused with.
    """
    now = deps.clock.now()
    try:
        asker = await read_asker(deps, row, now)
        reply = await make_approved_call(deps, row, asker)
    except Refusal as refusal:
        reply = Reply(refusal.status, orjson.dumps(refusal.body(row.id)), refusal=refusal)
    refusal = reply.refusal
    if refusal is None:
        await end_request(deps, row, "executed", reply.status, None)
    elif refusal.error_code in TRY_LATER_CODES or refusal.status == 503 or (was_not_sent(refusal) and is_fresh(row, now)):
        await deps.store.write(leave_approval, approval=row.id, process=deps.replica)
    elif isinstance(refusal, ProviderError) and refusal.outcome_unknown:  # the answer of the key says what is known, now and later
        await end_request(deps, row, "executed", reply.status, None)
    else:
        await end_request(deps, row, "void" if is_right_lost(refusal) else "executed", reply.status, reply.body)


def was_not_sent(refusal: Refusal) -> bool:
    """Whether the call never reached the provider: the same call may work later. What a provider has refused is an answer."""
    if not isinstance(refusal, ProviderError) or not refusal.before_execution:
        return False
    return not isinstance(refusal, OcsError) or refusal.ocs_code is None


def is_fresh(row: ApprovalRow, now: float) -> bool:
    """Whether a call that never left is tried again. `now`: Unix seconds."""
    return now - (row.decided_at or 0.0) < UNSENT_TRIED_SECONDS


async def make_approved_call(deps: Deps, row: ApprovalRow, asker: Caller) -> Reply:
    """The answer of the call, or of its key where it was made before."""
    content = open_content(deps.keyring, approval=row.id, organisation=row.organisation, sealed=row.request)
    mandate = Mandate(row.id, terms=row.digest)
    return await deps.internal_calls.write(
        row.operation, content["arguments"], caller=asker, idempotency_key=row.idempotency_key, mandate=mandate
    )


def is_right_lost(refusal: Refusal) -> bool:
    """Whether the call was refused before it was tried, since somebody may not make it (any more), or it would do something else."""
    return refusal.status in (401, 402, 403, 429) or refusal.error_code in RIGHT_LOST_CODES


async def end_request(deps: Deps, row: ApprovalRow, final: str, status: int, body: bytes | None) -> None:
    """Notes how a request has ended; `body`: of the refusal, which the asker gets when they repeat the call."""
    field = approval_field(row.id)
    sealed = None if body is None else deps.keyring.seal(body.decode(), org_id=row.organisation, field=field)
    await deps.store.write(end_approval, approval=row.id, final=final, code=status, sealed=sealed)


class ApprovedCalls:
    """Executes what was approved by a process that has died since."""

    def __init__(self, deps: Deps, report: Callable[[str], None]) -> None:
        self._deps, self._report = deps, report

    async def step(self) -> None:
        """Once through what is left alone. Waits for the network."""
        deps = self._deps
        for row in await deps.store.read(approvals_left_alone, now=deps.clock.now()):
            if await deps.store.write(take_approval, approval=row.id, seen=row.replica, process=deps.replica):
                await self._resume(row)

    async def _resume(self, row: ApprovalRow) -> None:
        """Executes `row`, which this process has taken, if whoever approved it still may do it and it is not too old."""
        deps = self._deps
        try:
            asker = await read_asker(deps, row, deps.clock.now())
            answered = await terms_for_asker(deps, row, asker) is None
            if not answered:  # else it was executed before, and only that has to be noted
                await check_approver(deps, row, await read_approver(deps, row, row.decided_by or ""), asker)
                check_age(row, deps.clock.now())
        except StoreUnavailable:
            raise
        except Refusal as refusal:
            if is_temporary(refusal) and deps.clock.now() - (row.decided_at or 0.0) < LONGEST_RESUMED_SECONDS:
                await deps.store.write(leave_approval, approval=row.id, process=deps.replica)
            else:
                self._report(f"approval {row.id} of {row.operation} was not executed: {refusal.error_code}")
                await end_request(deps, row, "void", refusal.status, orjson.dumps(refusal.body(row.id)))
            return
        await execute_approved(deps, row)


def check_age(row: ApprovalRow, now: float) -> None:
    """Raises ApprovalVoid for what was approved too long ago. `now`: Unix seconds."""
    if now - (row.decided_at or 0.0) >= LONGEST_RESUMED_SECONDS:
        raise ApprovalVoid("This was approved more than a day ago, and nothing could execute it since; nothing was done")
