"""Which calls of a credential wait for a person, and what that person is asked: exactly this input, and what was seen of the state.

No credential of a program decides. What is approved is executed under the credential that asked, if its terms are still the same then.
"""

import hashlib
from typing import Any, NamedTuple, Protocol

import orjson

from registry import policy
from registry.call import Call
from registry.caller import UNRESTRICTED, Approval, Caller, Money, SpendLimits
from registry.challenge import Challenge, Loss
from registry.clock import rfc3339_utc
from registry.errors import ApprovalRef, ApprovalRequired, BadRequest, Conflict, Restricted
from registry.operation import FINAL_FIELD, Due, Input, Operation, SpendKind
from registry.ports import CallRecord
from registry.redaction import SECRET_PATTERNS, readable_text, redact_patterns
from registry.spending import money_due

APPROVALS_PAGE = "/auth/approvals"
REASON_LENGTH = 500
SENTENCE_LENGTH = 2_000


class ApprovalTerms(NamedTuple):
    """What a person approves, in words for them. `digest`: of all that, of the input, and of what the call was seen to act on.

    `money`: what the call makes due at most; `open_ended`: money may be made due later that nobody can tell now. `lines`: of the stock.
    """

    sentence: str
    losses: tuple[Loss, ...]
    money: tuple[Money, ...]
    open_ended: bool
    lines: int
    digest: bytes


class ApprovalRequest(NamedTuple):
    """A call that waits. `arguments`: its input as JSON; `reason`: the asker's own words, which prove nothing."""

    operation: str
    caller: Caller
    idempotency_key: str
    fingerprint: bytes
    arguments: str
    terms: ApprovalTerms
    reason: str | None
    now: float


class WaitingApproval(NamedTuple):
    """A request that is kept until `expires_at`, Unix seconds."""

    id: str
    expires_at: float


class Approvals(Protocol):
    """Where requests are kept until a person decides."""

    async def ask(self, request: ApprovalRequest) -> WaitingApproval:
        """Keeps `request`, or finds the one that waits under its key, whose terms are then those of now. Whoever may decide is told.

        Raises Conflict where too many wait or one is being executed, ApprovalDeclined where it was declined, AlreadyAnswered where it
        was executed.
        """
        ...


class TermsFound(Exception):
    """Control flow: the end of an inquiry, which does nothing."""

    def __init__(self, terms: ApprovalTerms) -> None:
        super().__init__("terms")
        self.terms = terms


class ApprovalDeclined(Restricted, code="approval_declined"):
    """A person has declined the call; nothing was done."""


class TooManyApprovals(Conflict, code="too_many_approvals"):
    """As many calls of the credential wait for an approval as may."""


class TermsChanged(Conflict, code="approval_outdated"):
    """What was approved is not what the call would do now: nothing was done."""


def needs_approval(call: Call, caller: Caller, params: Input, due: Due | SpendKind) -> bool:
    """Whether the call waits for a person. `due`: what it makes due."""
    held, operation = caller.restrictions, call.operation
    if held is UNRESTRICTED or not operation.approvable or ends_itself(operation, caller, params):
        return False
    if held.approval is Approval.EVERY_WRITE:
        return True
    if held.approval is Approval.IRREVERSIBLE and (operation.irreversible or operation.confirmable or is_final(params)):
        return True
    return any(exceeds_free_amount(limit, due) for limit in held.limits)


def is_final(params: Input) -> bool:
    """Whether this call, of an operation whose other calls can be undone, says of itself that it cannot."""
    return bool(getattr(params, FINAL_FIELD, False))


def ends_itself(operation: Operation[Any, Any], caller: Caller, params: Input) -> bool:
    """Whether a credential ends itself. Choice: that needs nobody: it takes from the asker alone, and one that has leaked is ended now."""
    authority = operation.authority
    return authority is not None and authority.itself is not None and getattr(params, authority.itself) == caller.key_id


def exceeds_free_amount(limit: SpendLimits, due: Due | SpendKind) -> bool:
    """Whether what is due is more than may be made due without an approval, is in another currency, or cannot be told beforehand."""
    if due is SpendKind.OPEN:
        return limit.of_money or limit.approve_above is not None
    if limit.approve_above is None or isinstance(due, SpendKind):
        return False
    free, currency = limit.approve_above
    return any(money.amount > (free if money.currency == currency else 0) for money in money_due(due))


def approval_terms(call: Call, params: Input, challenge: Challenge, due: Due | SpendKind, seen: tuple[str, ...]) -> ApprovalTerms:
    """What a person is asked about this call. `seen`: what access saw of the things at hand."""
    made = due if isinstance(due, Due) else Due()
    open_ended = due is SpendKind.OPEN
    sentence = redact_patterns(readable_text(challenge.sentence), SECRET_PATTERNS)[:SENTENCE_LENGTH]
    due_facts = ([[amount, currency] for amount, currency in made.money], made.lines, open_ended)
    facts = (call.operation.id, policy.input_digest(params).hex(), sentence, challenge.losses, due_facts, seen)
    digest = hashlib.sha256(orjson.dumps(facts, option=orjson.OPT_SORT_KEYS)).digest()
    return ApprovalTerms(sentence, challenge.losses, made.money, open_ended, made.lines, digest)


def approval_request(
    call: Call, caller: Caller, entry: CallRecord, given: Input, terms: ApprovalTerms, key: str, fingerprint: bytes
) -> ApprovalRequest:
    """The request to store. `given`: the input as it was sent; `key`: the idempotency key that the call is repeated with."""
    arguments = given.model_dump(mode="json", by_alias=True, exclude_unset=True)
    sent = orjson.dumps(arguments).decode()
    return ApprovalRequest(call.operation.id, caller, key, fingerprint, sent, terms, check_reason(call.reason), entry.now)


def waits_under_no_condition() -> BadRequest:
    """The refusal of a condition that nobody would keep: a person decides later, and the call is then made with its input alone."""
    return BadRequest(
        "If-Match: a call of this credential waits for a person, and what waits is not kept with a version; nothing was asked",
        param="If-Match",
        hint="Send it without If-Match: the person who approves it sees what it will do",
    )


def approval_required(call: Call, request: ApprovalRequest, waiting: WaitingApproval, base_url: str) -> ApprovalRequired:
    """The answer of a call that waits."""
    reference: ApprovalRef = {
        "id": waiting.id,
        "sentence": request.terms.sentence,
        "money": [{"amount": amount, "currency": currency} for amount, currency in request.terms.money],
        "expires": rfc3339_utc(waiting.expires_at),
        "page": f"{base_url}{APPROVALS_PAGE}?approval={waiting.id}",
        "idempotency_key": request.idempotency_key,
    }
    return ApprovalRequired(
        request.terms.sentence,
        expires_in_seconds=max(0, int(waiting.expires_at - request.now)),
        route=f"{call.operation.method} {call.operation.path}",
        approval=reference,
    )


def check_reason(reason: str | None) -> str | None:
    """The asker's reason in one line of what a person can see. Raises BadRequest for an empty one, and one that is too long."""
    if reason is None:
        return None
    line = " ".join(readable_text(reason).split())
    if not reason or max(len(line), len(reason)) > REASON_LENGTH:
        raise BadRequest(
            f"The reason for the approval has {len(reason)} characters; it has at least one and at most {REASON_LENGTH}",
            param="approval_reason",
            hint="Say in a sentence or two what the call is for, or leave it out",
        )
    return redact_patterns(line, SECRET_PATTERNS) or None


def terms_changed() -> TermsChanged:
    """The refusal of a call that was approved when it would have done something else."""
    return TermsChanged(
        "What this call would do has changed since a person approved it; nothing was done",
        hint="Make the call again: it asks for another approval, of what it would do now",
    )
