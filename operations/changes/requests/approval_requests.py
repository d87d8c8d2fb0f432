"""Requests for an approval: kept sealed, told to whoever may decide, found again when the call is repeated."""

from typing import cast

import orjson
from typing_extensions import TypedDict

from clients.mail.letter import Letter
from operations.deps import Deps
from operations.event_types.declaration import new_event
from operations.event_types.work import WORK_APPROVAL_REQUESTED, RequestedApproval
from operations.letters import queue_letter, seal_letter
from registry.approvals import ApprovalDeclined, ApprovalRequest, TooManyApprovals, WaitingApproval
from registry.challenge import Loss
from registry.clock import rfc3339_utc
from registry.errors import ApprovalAmount, Conflict
from registry.ports import AlreadyAnswered, StoredAnswer
from storage.allowances import allowance_for, take_allowances
from storage.approvals import OPEN_APPROVALS_LIMIT, ApprovalRow, find_approval, insert_approval, latest_approval, renew_approval
from storage.claims import call_in_progress
from storage.engine.sql import Connection
from storage.event_log import log_event
from storage.members import list_people
from storage.people import mail_address_of
from storage.sealing import Keyring, approval_field

APPROVAL_MAILS_PER_HOUR = 20
"""Requests of an organisation that are mailed. Choice: whoever asks for more than that must not fill the mailboxes of those who decide."""
MAILED_APPROVALS_PAGE = "/console/approvals"
"""Where the link of the mail leads: what else waits for the person stands there, too."""
MAILED_PEOPLE_LIMIT = 10
SEARCHED_PEOPLE_LIMIT = 1000
STORED_SOON_SECONDS = 60.0
"""After a decision, until its result is surely stored."""


class ApprovalContent(TypedDict):
    """What of a request is sealed: the input of the call, and what a person is shown of it."""

    arguments: dict[str, object]
    sentence: str
    losses: list[Loss]
    money: list[ApprovalAmount]
    open_ended: bool
    lines: int
    reason: str | None


def open_content(keyring: Keyring, *, approval: str, organisation: str, sealed: str) -> ApprovalContent:
    """What a request is about. Raises KeyUnknown."""
    return cast(ApprovalContent, orjson.loads(keyring.open(sealed, org_id=organisation, field=approval_field(approval))))


def seal_content(keyring: Keyring, content: ApprovalContent, *, approval: str, organisation: str) -> str:
    return keyring.seal(orjson.dumps(content).decode(), org_id=organisation, field=approval_field(approval))


def content_of(request: ApprovalRequest, reason: str | None) -> ApprovalContent:
    terms = request.terms
    return {
        "arguments": cast("dict[str, object]", orjson.loads(request.arguments)),
        "sentence": terms.sentence,
        "losses": list(terms.losses),
        "money": [{"amount": amount, "currency": currency} for amount, currency in terms.money],
        "open_ended": terms.open_ended,
        "lines": terms.lines,
        "reason": reason,
    }


def state_at(row: ApprovalRow, now: float) -> str:
    """The state at `now` (Unix seconds): what waits too long has expired, whether or not anybody has noted it."""
    return "expired" if row.state == "waiting" and row.expires_at <= now else row.state


def approval_letter(address: str, row: ApprovalRow, base_url: str) -> Letter:
    """The mail that leads to the page. It holds nothing that a program has written, and opening its link decides nothing."""
    text = (
        f"A program that holds the credential {row.credential} of your organisation asks to do something that a person has to approve:\n\n"
        f"    {row.operation}\n\n"
        f"Nothing has been done. Look what it is, and approve or decline it, until {rfc3339_utc(row.expires_at)}:\n\n"
        f"{base_url}{MAILED_APPROVALS_PAGE}?approval={row.id}\n\n"
        "The page asks you to sign in. If you do not know the program, decline and revoke its key.\n"
    )
    return Letter(address, "A call waits for your approval", text)


class ApprovalRequests:
    """The pipeline's Approvals."""

    def __init__(self, deps: Deps) -> None:
        self._deps = deps

    async def ask(self, request: ApprovalRequest) -> WaitingApproval:
        """The request under its key that waits; a new one where there is none. Raises as Approvals says."""
        store = self._deps.store
        owner, key = request.caller.owner, request.idempotency_key
        found = await store.read(latest_approval, organisation=owner, operation=request.operation, key=key)
        if found is None or state_at(found, request.now) in ("expired", "void"):
            found = await store.write(self._keep, request=request)
            self._deps.post()
        return await self._waiting(request, found)

    def _keep(self, connection: Connection, *, request: ApprovalRequest) -> ApprovalRow:
        """One commit: the request, and the mails to those who may decide. Returns the one that is open then."""
        deps, caller, now = self._deps, request.caller, request.now
        approval, owner = deps.ids.new("apr_"), caller.owner
        row = ApprovalRow(
            id=approval,
            organisation=owner,
            principal=caller.principal,
            credential=caller.key_id,
            operation=request.operation,
            idempotency_key=request.idempotency_key,
            fingerprint=request.fingerprint,
            digest=request.terms.digest,
            request=seal_content(deps.keyring, content_of(request, request.reason), approval=approval, organisation=owner),
            state="waiting",
            created=now,
            expires_at=now + deps.rate_limiter.limits.approval_seconds,
            decided_by=None,
            decided_at=None,
            replica="",
            status=None,
            outcome=None,
        )
        waiting = insert_approval(connection, row=row, now=now)
        kept = latest_approval(connection, organisation=owner, operation=request.operation, key=request.idempotency_key)
        if kept is None or state_at(kept, now) in ("expired", "void"):
            raise TooManyApprovals(
                f"{waiting} calls of this credential wait for an approval, and at most {OPEN_APPROVALS_LIMIT} may; nothing was done",
                hint="Ask whoever runs this for you to decide those that wait, or call again when some have expired",
            )
        if kept.id == approval:
            if caller.organisation:
                named: RequestedApproval = {
                    "approval": approval,
                    "operation": row.operation,
                    "credential": row.credential,
                    "expires": rfc3339_utc(row.expires_at),
                }
                log_event(connection, event=new_event(WORK_APPROVAL_REQUESTED, named, organisation=owner, ids=deps.ids, now=now))
            self._tell(connection, row, request)
        return kept

    def _tell(self, connection: Connection, row: ApprovalRow, request: ApprovalRequest) -> None:
        """Mails the admins and the key's maker, unless those may not decide, or too many were mailed within the hour."""
        deps, caller = self._deps, request.caller
        allowance = allowance_for("approval_mail", row.organisation, APPROVAL_MAILS_PER_HOUR)
        if take_allowances(connection, wanted=[allowance], now=row.created) is not None:
            return
        if caller.organisation:
            people = list_people(connection, organisation=caller.organisation, now=row.created, after=None, most=SEARCHED_PEOPLE_LIMIT)
            told = [each for each in people if each.active and (each.role == "admin" or each.id == caller.principal)]
            barred = caller.principal if caller.restrictions.another_person else ""
            addresses = [each.email for each in told if each.email is not None and each.id != barred]
        else:
            own = mail_address_of(connection, person=caller.principal)
            addresses = [] if own is None else [own]
        for address in addresses[:MAILED_PEOPLE_LIMIT]:
            letter = approval_letter(address, row, deps.site.base_url)
            queue_letter(connection, seal_letter(letter, ids=deps.ids, keyring=deps.keyring, expires_at=row.expires_at), deps.clock)

    async def _waiting(self, request: ApprovalRequest, found: ApprovalRow) -> WaitingApproval:
        """`found`, where it waits for this very call; else the refusal, or the answer, of what became of it."""
        if found.fingerprint != request.fingerprint or found.credential != request.caller.key_id:
            raise Conflict(
                "This idempotency key was used with other input, or by another credential, for a call that a person was asked to approve; "
                "nothing was done",
                code="idempotency_key_reused",
                param="idempotency_key",
                hint="Use a new key for a new request",
            )
        if found.state == "declined":
            raise ApprovalDeclined(
                "A person has declined this call; nothing was done",
                hint="Ask whoever runs this for you before you try anything like it. The same call under a new idempotency key asks again",
            )
        if found.state == "waiting":
            await self._renew(request, found)
            return WaitingApproval(found.id, found.expires_at)
        if found.state == "executed":
            raise self._answered(request, found)
        raise call_in_progress()

    async def _renew(self, request: ApprovalRequest, found: ApprovalRow) -> None:
        """What waits is shown as it is now. A reason counts once: it does not change under whoever reads it."""
        keyring, owner = self._deps.keyring, found.organisation
        held = open_content(keyring, approval=found.id, organisation=owner, sealed=found.request)
        if found.digest == request.terms.digest and (held["reason"] is not None or request.reason is None):
            return
        content = content_of(request, held["reason"] or request.reason)
        sealed = seal_content(keyring, content, approval=found.id, organisation=owner)
        await self._deps.store.write(renew_approval, approval=found.id, request=sealed, terms=request.terms.digest, now=request.now)

    def _answered(self, request: ApprovalRequest, found: ApprovalRow) -> Exception:
        """The answer that the approved call got, where no claim of its key holds it: it was refused, or that was too long ago."""
        if found.outcome is not None and found.status is not None:
            body = self._deps.keyring.open(found.outcome, org_id=found.organisation, field=approval_field(found.id))
            return AlreadyAnswered(StoredAnswer(found.status, body.encode()))
        if found.decided_at is not None and request.now - found.decided_at < STORED_SOON_SECONDS:
            return call_in_progress()
        return Conflict(
            "This call was approved and executed long ago, and its answer is not kept any more; nothing was done now",
            code="idempotency_key_expired",
            param="idempotency_key",
            hint="Look what came of it; use a new key for a new request",
        )


async def waiting_row(deps: Deps, approval: str, owner: str) -> ApprovalRow | None:
    """The request with this id, if it is of `owner`: an organisation, or a person without one."""
    found = await deps.store.read(find_approval, approval=approval)
    return found if found is not None and found.organisation == owner else None
