"""The one path of every call:

authenticate -> throttle -> authorize -> validate -> access -> replay? -> open (claim, confirm, charge) -> run -> close (settle, record)

An operation that reads is charged from a leased block and recorded in a buffer. One that writes only our own store commits
open, write and close as ONE transaction, through `ctx.settle`. One that calls a provider stands between two commits. One that
draws something from a provider is staged: open, then `ctx.dispatch`, which commits what is about to be sent, then close.
"""

import base64
import hashlib
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Generic, TypeVar

import anyio
import anyio.lowlevel
import orjson
from pydantic import BaseModel

from registry import approvals, policy, restrictions, spending
from registry.approvals import Approvals, TermsFound
from registry.authentication import authenticate
from registry.binding import binding_of
from registry.call import Call, CallState, Reply
from registry.caller import UNRESTRICTED, Approval, Caller, Role
from registry.catalogue import Catalogue
from registry.challenge import Challenge, clip_text, what_it_will_do
from registry.clock import ACTIVE_REQUEST, DAY_SECONDS, ActiveRequest, Clock
from registry.context import Context, Replacement, outcome_not_stored
from registry.errors import ConfirmTokenRequired, Internal, NotFound, OcsError, PreconditionFailed, ProviderError, Refusal, StoreUnavailable
from registry.ids import Ids
from registry.operation import NOTHING_DUE, Document, Due, Input, Operation, Secret, SpendKind, StreamedAnswer
from registry.policy import IDEMPOTENCY_KEY, key_spellings
from registry.ports import (
    AlreadyAnswered,
    AuditRecord,
    CallRecord,
    Directory,
    Journal,
    KeyLimit,
    Quota,
    Sessions,
    SharedSecrets,
    Site,
    StoredAnswer,
)
from registry.rate_limits import RateLimiter
from registry.schema import output_schema
from registry.signals import CallSignals
from registry.versions import ChangeAuthor, ChangeLookup, ObjectVersion, entity_tag, name_author, required_version, version_differs

PipelineDeps = TypeVar("PipelineDeps")
LARGE_BODY = 32 * 1024
"""Bytes of a body that takes a millisecond or more to read."""


def encode_answer(value: Any) -> bytes:
    """The answer's JSON; plain dictionaries are the fast way, models serialise themselves."""
    if isinstance(value, Document):
        return value.content
    return orjson.dumps(value, default=encode_model)


def encode_model(value: Any) -> Any:
    """What orjson does not know: pydantic models."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", by_alias=True)
    raise TypeError(f"an answer holds a {type(value).__name__}, which is not JSON")


def encode_provider_answer(operation: Operation[Any, Any], value: Any) -> bytes:
    """The answer's JSON. What came from a provider may be nested too deeply to be written again, or hold a number too large."""
    try:
        return encode_answer(value)
    except orjson.JSONEncodeError:
        if not operation.upstream:
            raise
    raise OcsError(
        "The provider's answer is nested too deeply, or holds a number too large, so it cannot be passed on",
        outcome_unknown=not operation.read_only,
    )


class Pipeline(Generic[PipelineDeps]):
    """Runs calls. Raises Refusal for every call that is answered with an error body."""

    def __init__(
        self,
        *,
        catalogue: Catalogue,
        deps: PipelineDeps,
        clock: Clock,
        ids: Ids,
        directory: Directory,
        journal: Journal,
        quota: Quota,
        sessions: Sessions | None,
        secrets: SharedSecrets,
        rate_limiter: RateLimiter,
        site: Site,
        approvals: Approvals,
    ) -> None:
        self.catalogue, self.deps, self.clock, self.ids = catalogue, deps, clock, ids
        self.directory, self.journal, self.quota, self.sessions = directory, journal, quota, sessions
        self.secrets, self.rate_limiter, self.site = secrets, rate_limiter, site
        self.approvals = approvals
        self.signals = CallSignals()
        self._large = anyio.Lock()

    async def run(self, call: Call) -> Reply:
        """One call from credential to answer; it is a request of its own, unless another one makes it."""
        own = call.surface not in ("schedule", "change") and ACTIVE_REQUEST.get() is None  # nobody waits for a report that is due
        token = ACTIVE_REQUEST.set(ActiveRequest(self.clock)) if own else None
        try:
            return await self._run(call)
        except Refusal as refusal:  # what it cost to refuse a large body or to look for what is not there is charged
            if isinstance(refusal, NotFound) and call.operation.enumeration_guarded:
                await self.rate_limiter.missed(call)
            if isinstance(refusal, PreconditionFailed):
                await self._name_author(call, refusal)
            if call.state >= CallState.VALID and refusal.status < 500:
                self._charge_large_body(call)
            raise
        finally:
            if token is not None:
                ACTIVE_REQUEST.reset(token)

    async def _run(self, call: Call) -> Reply:
        operation = call.operation
        now, call.started = self.clock.now(), self.clock.monotonic()
        caller = await authenticate(call, self.directory, self.sessions, self.secrets, self.site, now)
        call.identified = caller
        await self.rate_limiter.call(call, caller)
        if operation.enumeration_guarded:
            await self.rate_limiter.guess(call, caller)
        if operation.proof is not None:
            await self.rate_limiter.body(caller, call.client)
            try:
                caller = call.identified = await operation.proof(self.deps, call, now)
            except Refusal:
                self._charge_refused_body(call)
                raise
        await policy.authorize(call, caller, self.directory, self.site)
        key_restrictions = caller.restrictions
        if key_restrictions is not UNRESTRICTED:
            restrictions.check_restricted_operation(
                operation, key_restrictions, self.catalogue.operations_in(key_restrictions.toolsets or ())
            )
            restrictions.check_authority(operation, caller)
        if call.if_match_text is not None:
            call.if_match = required_version(operation, call.if_match_text)
        if call.arguments is None and operation.takes_body:  # a tool's message was let in as one
            await self.rate_limiter.body(caller, call.client)
        params = await self._valid_input(call)
        call.state = CallState.VALID
        if key_restrictions is not UNRESTRICTED:
            restrictions.check_restricted_input(operation, params, key_restrictions)
            restrictions.check_authority(operation, caller, params)
        context = Context(deps=self.deps, call=call, caller=caller, now=now, journal=self.journal, encode=encode_answer)
        if call.idempotency_key is not None and call.idempotency_key[:1] == '"':
            await self._unquote_key(call, caller, now)
        granted = await self._access(operation, context, params)
        if operation.read_only:
            if key_restrictions.limits:
                await self._count(context)
            return await self._read(context, params, granted)
        given, params = params, context.plain_input or params
        context.params = params
        entry = context.entry = self._entry(context, params)
        if entry.idempotency_key is not None:
            stored = await self.journal.stored(entry)
            if stored is not None:
                return self._replay(context, stored)
        if key_restrictions.limits or key_restrictions.approval is not Approval.NONE:
            context.due = await self._due(context, params, granted)
            self._hold_to_limits(context, entry)
        if context.staged and not operation.provided:  # a replay reaches nothing
            await self.rate_limiter.upstream(context.caller.owner)
        try:
            await self._approve(context, entry, given, params, granted)
            if (operation.confirm or context.replacement is not None) and call.mandate is None:
                await self._confirm(context, entry, params, granted)
            run = self._provide if operation.provided or context.staged else self._write
            return await run(context, entry, params, granted)
        except AlreadyAnswered as won:
            return self._replay(context, won.stored)

    def _charge_refused_body(self, call: Call) -> None:
        """Charges the sender of a body that is refused, since such a call costs no quota."""
        if call.identified is not None and (call.raw is not None or call.surface == "mcp"):
            self.rate_limiter.refused_body(call.identified, call.client, call.size)

    async def _valid_input(self, call: Call) -> Input:
        try:
            return await self._validate(call)
        except Refusal:
            self._charge_refused_body(call)
            raise

    async def _validate(self, call: Call) -> Input:
        """Pure and early: a malformed call burns no quota, mints no token, claims no key."""
        binding = binding_of(call.operation)
        if call.operation.approvable:
            approvals.check_reason(call.reason)
        if call.arguments is not None:  # a field that is no key of the call says more than the key that is missing
            params = binding.validate(binding.arguments(call.arguments))
            policy.check_idempotency_key(call)
            return params
        policy.check_idempotency_key(call)
        body = await call.body() if binding.has_body else b""
        query = call.query if call.operation.proof is None else ""  # what it holds was the proof's
        if len(body) <= LARGE_BODY:
            return binding.validate(binding.gather(call.path, query, body) or b"{}")
        async with self._large:  # one at a time, and everybody else's turn after each step: a loop that is held is held for all
            raw = binding.gather(call.path, query, body)
            await anyio.lowlevel.checkpoint()
            params = binding.validate(raw)
            await anyio.lowlevel.checkpoint()
            return params

    async def _unquote_key(self, call: Call, caller: Caller, now: float) -> None:
        """A key in quotes is the key that they hold, unless it was used, with its quotes, before quotes were read."""
        *former, key = key_spellings(call.idempotency_key or "")
        if not former:
            return
        call.former_keys = tuple(former)
        call.idempotency_key = await self.journal.first_known(caller.owner, call.operation.id, former, now) or key
        if not IDEMPOTENCY_KEY.fullmatch(call.idempotency_key):
            raise policy.bad_idempotency_key(policy.idempotency_key_name(call), former[0])

    async def _access(self, operation: Operation[Any, Any], context: Context[PipelineDeps], params: Input) -> tuple[Any, ...]:
        """What depends on the input; a refusal that had to ask the upstream costs one call."""
        held = context.caller.restrictions
        looks = held.account_ids is not None or (operation.bounded and held.iccids is not None)
        try:
            granted = () if operation.access is None else (await operation.access(context, params),)
            if looks:
                restrictions.check_account_was_seen(operation, seen=context.account_seen)
            if held.tags is not None:
                restrictions.check_tags_were_seen(operation, seen=context.tags_seen)
            return granted
        except Refusal as refusal:
            if context.reached_upstream and not context.call.prepaid_by_parent and not is_uncharged(refusal):
                await self._charge(context)
            raise

    async def _read(self, context: Context[PipelineDeps], params: Input, granted: tuple[Any, ...]) -> Reply:
        operation = context.call.operation
        charged = operation.charged and not context.call.prepaid_by_parent
        if charged:
            await self._charge(context)
        try:
            if operation.versioned is not None:
                await self._read_version(context, params)
            result = await operation.handler(context, params, *granted)
            policy.check_answer_form(context.call, result)
        except Refusal as refusal:
            if charged and (not context.reached_upstream or is_uncharged(refusal)):
                self._give_back(context)
            raise
        stored = None if isinstance(result, StreamedAnswer) else StoredAnswer(operation.status, encode_provider_answer(operation, result))
        if context.caller.kind != "public" and not context.call.draws_page:
            self._record(context, "ok", operation.status)
        if stored is None:
            return Reply(operation.status, b"", media_type=result.media_type, headers=version_headers(context, 200), stream=result)
        return self._reply(context, stored, result)

    async def _write(self, context: Context[PipelineDeps], entry: CallRecord, params: Input, granted: tuple[Any, ...]) -> Reply:
        """The handler settles: claim, confirm, charge, its own rows, the answer and the audit row are one commit."""
        operation = context.call.operation
        result = await operation.handler(context, params, *granted)
        if context.reply is None:
            raise RuntimeError(f"{operation.id} finished without settling: nothing was committed, charged or recorded")
        context.call.usage, context.call.state = entry.usage, CallState.RECORDED
        return self._reply(context, context.reply, result)

    async def _provide(self, context: Context[PipelineDeps], entry: CallRecord, params: Input, granted: tuple[Any, ...]) -> Reply:
        """Commit the claim, call the provider, commit the answer. Once begun it runs to its end, whoever hangs up."""
        with anyio.CancelScope(shield=True):
            return await self._dispatch(context, entry, params, granted)
        raise RuntimeError("a scope that nobody cancels has ended early")

    async def _dispatch(self, context: Context[PipelineDeps], entry: CallRecord, params: Input, granted: tuple[Any, ...]) -> Reply:
        call, journal = context.call, self.journal
        await journal.open(entry)
        call.usage = entry.usage
        try:
            result, stored = await self._asked(context, entry, params, granted)
            if call.state is not CallState.RECORDED:
                await self._keep(context, entry, stored, outcome="ok", unknown=False)
            return self._reply(context, stored, result)
        finally:
            if call.state < CallState.RELEASED:
                await self._fault(context, entry)

    async def _fault(self, context: Context[PipelineDeps], entry: CallRecord) -> None:
        """A fault of ours. Before anything was sent it frees the key; afterwards the outcome is not known."""
        if context.staged:
            await self._release(context, entry, refund=True)
            return
        context.closing[:] = context.lost
        fault = encode_answer(Internal().body(entry.request_id))
        await self._keep(context, entry, StoredAnswer(500, fault), outcome="internal", unknown=True)

    async def _release(self, context: Context[PipelineDeps], entry: CallRecord, *, refund: bool) -> None:
        try:
            await self.journal.release(entry, context.undoing, refund=refund)
        except StoreUnavailable:
            context.call.state = CallState.RELEASED  # it is owed, and paid as soon as the store works: nothing else may be made of the call
            raise
        context.call.state = CallState.RELEASED

    async def _asked(
        self, context: Context[PipelineDeps], entry: CallRecord, params: Input, granted: tuple[Any, ...]
    ) -> tuple[Any, StoredAnswer]:
        """The handler's answer; a refusal of its own is kept or frees the key, before it goes on."""
        operation = context.call.operation
        try:
            result = await operation.handler(context, params, *granted)
            return result, context.reply or StoredAnswer(operation.status, encode_provider_answer(operation, result))
        except Refusal as refusal:
            if context.call.state is not CallState.RECORDED:  # it has concluded what it refuses
                await self._close_refused(context, entry, refusal)
            raise

    async def _close_refused(self, context: Context[PipelineDeps], entry: CallRecord, refusal: Refusal) -> None:
        """An error that followed execution is the key's answer; one before it frees the key."""
        unknown = isinstance(refusal, ProviderError) and refusal.outcome_unknown
        sure = isinstance(refusal, ProviderError) and refusal.before_execution
        sent = context.call.state is CallState.DISPATCHED or (context.reached_upstream and not context.staged)
        executed = sent and not sure
        if unknown or executed:
            stored = StoredAnswer(refusal.status, encode_answer(refusal.body(entry.request_id)))
            await self._keep(context, entry, stored, outcome=refusal.error_code, unknown=unknown)
        else:  # what was asked before it was refused is paid for, as a refusal by access is
            await self._release(context, entry, refund=sure or not context.reached_upstream)

    async def _keep(self, context: Context[PipelineDeps], entry: CallRecord, stored: StoredAnswer, *, outcome: str, unknown: bool) -> None:
        """The second commit. When the store fails now, the provider has been asked and nobody can say with what result."""
        entry.unsent = context.staged
        try:
            await self.journal.close(entry, stored, outcome=outcome, unknown=unknown, writes=context.closing, lost=context.lost)
        except StoreUnavailable:
            raise outcome_not_stored() from None
        finally:
            context.call.state = CallState.RECORDED

    async def _due(self, context: Context[PipelineDeps], params: Input, granted: tuple[Any, ...]) -> Due | SpendKind:
        """What the call makes due; a refusal that had to ask the upstream costs one call, as one by access does."""
        mandate, asked_before = context.call.mandate, context.reached_upstream
        if mandate is not None and mandate.reserved:
            return NOTHING_DUE
        try:
            return await spending.due_of(context.call.operation, context, params, granted)
        except Refusal as refusal:
            if context.reached_upstream and not context.call.prepaid_by_parent and not is_uncharged(refusal):
                await self._charge(context)
            raise
        finally:
            context.reached_upstream = asked_before  # what is refused from here on has sent nothing yet

    def _hold_to_limits(self, context: Context[PipelineDeps], entry: CallRecord) -> None:
        """Refuses what breaks a limit whatever was spent before, and notes what the opening is to take from the others."""
        call, due, limits = context.call, context.due, spending.limits_of(context.caller)
        if call.mandate is not None and call.mandate.reserved:
            return
        if isinstance(due, SpendKind):
            due = NOTHING_DUE  # a person has to approve it
        spending.check_due(due, limits)
        entry.charges = spending.spending_charges(limits, due, call.operation.id, entry.now)

    async def _count(self, context: Context[PipelineDeps]) -> None:
        """Counts a read that the credential may make only so often a day."""
        limits, operation = spending.limits_of(context.caller), context.call.operation
        charges = spending.spending_charges(limits, NOTHING_DUE, operation.id, context.now)
        if charges:
            await self.journal.charge(charges, context.now)

    async def _approve(
        self, context: Context[PipelineDeps], entry: CallRecord, given: Input, params: Input, granted: tuple[Any, ...]
    ) -> None:
        """Stops a call that a person has to approve first. One that was approved goes on, if it would still do what they saw."""
        call, caller, mandate = context.call, context.caller, context.call.mandate
        if mandate is None:
            if not call.inquiry and not approvals.needs_approval(call, caller, params, context.due):
                return
        elif not mandate.terms:  # a row of a change set: its plan holds the state
            return
        if call.if_match is not None and mandate is None and not call.inquiry:
            raise approvals.waits_under_no_condition()
        terms = approvals.approval_terms(call, params, await challenge_of(context, params, granted), context.due, seen_state(context))
        if mandate is not None:
            if mandate.terms != terms.digest:
                raise approvals.terms_changed()
            return
        if call.inquiry:
            raise TermsFound(terms)
        key = entry.idempotency_key or self.ids.new("idk_")
        fingerprint = entry.fingerprint or call_fingerprint(context, params)
        request = approvals.approval_request(call, caller, entry, given, terms, key, fingerprint)
        raise approvals.approval_required(call, request, await self.approvals.ask(request), self.site.base_url)

    async def _confirm(self, context: Context[PipelineDeps], entry: CallRecord, params: Input, granted: tuple[Any, ...]) -> None:
        """Without a token: mint one and stop. With one: it is consumed in the transaction that opens the call."""
        call = context.call
        if call.confirm_token is not None:
            entry.confirm = hashlib.sha256(call.confirm_token.encode()).digest()
            return
        challenge = await challenge_of(context, params, granted)
        token = base64.urlsafe_b64encode(self.ids.bytes(32)).decode().rstrip("=")
        seconds = self.rate_limiter.limits.confirm_seconds
        await self.journal.challenge(entry, hashlib.sha256(token.encode()).digest(), self.clock.now() + seconds)
        operation = call.operation
        raise ConfirmTokenRequired(
            challenge.sentence,
            confirm_token=token,
            expires_in_seconds=seconds,
            route=f"{operation.method} {operation.path}",
            losses=challenge.losses,
        )

    async def _charge(self, context: Context[PipelineDeps]) -> None:
        """One call from the organisation's leased block."""
        caller, now = context.caller, context.now
        tier, period, own = self.rate_limiter.limits.tiers[caller.tier], policy.quota_period(now), caller.restrictions.calls_per_day
        if own is not None and await self.quota.take(caller.counter, own, period, now) is None:
            raise policy.key_limit_exceeded(own, period, self.site, now)
        usage = await self.quota.take(caller.owner, tier.calls_per_day, period, now)
        if usage is None:
            if own is not None:
                self.quota.give_back(caller.counter, period)
            raise policy.daily_quota_exceeded(tier.calls_per_day, tier.calls_per_day, period, self.site, now)
        context.call.usage = usage

    def _give_back(self, context: Context[PipelineDeps]) -> None:
        """Gives the charge of `context`'s call back, because the call had no effect."""
        caller, period = context.caller, policy.quota_period(context.now)
        self.quota.give_back(caller.owner, period)
        if caller.restrictions.calls_per_day is not None:
            self.quota.give_back(caller.counter, period)

    def _entry(self, context: Context[PipelineDeps], params: Input) -> CallRecord:
        call, caller, now = context.call, context.caller, context.now
        replacement = context.replacement
        replaces = replacement is not None
        operation, limit, period = call.operation, self.rate_limiter.limits.tiers[caller.tier].calls_per_day, policy.quota_period(now)
        once, own = operation.once, caller.restrictions.calls_per_day
        over: Callable[[int], Any] = lambda used: policy.daily_quota_exceeded(limit, used, period, self.site, now)  # noqa: E731
        keyed = call.idempotency_key or operation.confirm or replaces
        of_input = call_fingerprint(context, params) if keyed else b""
        return CallRecord(
            surface=call.surface,
            operation=operation.id,
            request_id=call.request_id,
            organisation=caller.organisation,
            principal=caller.principal,
            key_id=caller.key_id,
            scope=int(operation.scope) | context.needed,
            recheck=(operation.moves or replaces) and caller.kind in ("key", "session"),
            now=now,
            started=call.started,
            idempotency_key=call.idempotency_key,
            fingerprint=of_input,
            expires_at=None if once is None or once.forever else int(now) + self.rate_limiter.limits.claim_days * DAY_SECONDS,
            confirm=None,
            cost=1 if operation.charged else 0,
            period=period,
            limit=limit,
            over_quota=over,
            key_limit=None if own is None else KeyLimit(caller.counter, own, policy.key_limit_exceeded(own, period, self.site, now)),
            confirm_fingerprint=of_input if context.replacement is None else confirm_fingerprint(of_input, context.replacement),
            admin=(replacement is not None and replacement.for_admins) or operation.role is Role.ADMIN,
            staged=context.staged,
            former_keys=call.former_keys,
        )

    def _charge_large_body(self, call: Call) -> None:
        """Charge a large body that was read for a call that costs no quota: a refusal, or an answer that was stored before."""
        if call.identified is not None and call.size > LARGE_BODY:
            self.rate_limiter.refused_body(call.identified, call.client, call.size)

    def _replay(self, context: Context[PipelineDeps], stored: StoredAnswer) -> Reply:
        self._charge_large_body(context.call)
        self._record(context, "replayed", stored.status)
        return Reply(stored.status, stored.body, headers={"Idempotent-Replayed": "true"})

    def _record(self, context: Context[PipelineDeps], outcome: str, status: int) -> None:
        self.journal.record(audit_record(context.call, context.caller, outcome, status, context.now, self.clock.monotonic()))

    def _reply(self, context: Context[PipelineDeps], stored: StoredAnswer, result: Any) -> Reply:
        if isinstance(result, Document):
            return Reply(stored.status, result.content, media_type=result.media_type, headers=dict(result.headers))
        # Here the answer is at hand: to decode its body once more would take longer than all the rest of a short answer.
        told = output_schema(context.call.operation.result).free_text_of(result) if context.call.names_free_text else None
        headers = version_headers(context, stored.status)
        return Reply(stored.status, stored.body, headers=headers, next_cursor=context.next_cursor, note=context.note, free_text=told)

    async def _read_version(self, context: Context[PipelineDeps], params: Input) -> None:
        """The version of what a read shows, before it is read: where it changes in between, the caller has an old tag and not an old body.

        RFC 9110 section 13.1.1: a read, too, is refused where its condition does not hold.
        """
        versioned, wanted = context.call.operation.versioned, context.call.if_match
        assert versioned is not None
        found = await self.journal.read(versioned.read, context, params, False)
        context.entity_tag = None if found is None else entity_tag(versioned.what, found)
        if found is not None and wanted is not None and not wanted.holds(context.entity_tag):
            raise version_differs(versioned, found, wanted)

    async def _name_author(self, call: Call, refusal: PreconditionFailed) -> None:
        """Completes the refusal with who made the change; looked up here alone, since only who is refused has to know."""
        versioned, caller, version = call.operation.versioned, call.identified, refusal.version
        if versioned is None or caller is None or not isinstance(version, ObjectVersion):
            return
        with suppress(StoreUnavailable):  # the refusal stands without the name of who came before
            author = await self.journal.last_change(ChangeLookup(caller.organisation, versioned.changed_by, version))
            name_author(refusal, versioned.what, author_shown_to(caller, author))


def version_headers(context: Context[Any], status: int) -> dict[str, str]:
    """The ETag of an answer of success. A stored answer that is replayed has none: what it was about may have changed since."""
    return {} if context.entity_tag is None or status >= 300 else {"ETag": context.entity_tag}


def author_shown_to(caller: Caller, author: ChangeAuthor | None) -> ChangeAuthor | None:
    """What `caller` is told of who made a change: a restricted credential lists neither people nor keys, so it knows none but its own."""
    if author is None or not caller.restricted:
        return author
    if author.principal != caller.principal:
        return None
    return author if author.key_id == caller.key_id else author._replace(key_id="")


def is_uncharged(refusal: Refusal) -> bool:
    """Whether a call that reached for a provider costs nothing all the same."""
    return isinstance(refusal, ProviderError) and refusal.uncharged


def seen_state(context: Context[Any]) -> tuple[str, ...]:
    """What the call was seen to act on, where it replaces something live that as well."""
    return context.seen if context.replacement is None else (*context.seen, context.replacement.state)


async def challenge_of(context: Context[Any], params: Input, granted: tuple[Any, ...]) -> Challenge:
    """What this call would do and what is lost by it. `granted`: what access returned. Waits for the network.

    Where it cannot be read now the sentence says so: whoever confirms decides with less, and can still repair what is broken.
    """
    operation = context.call.operation
    if context.replacement is not None and operation.challenge is None:
        return Challenge(context.replacement.sentence)
    if operation.challenge is None:
        return Challenge(confirm_sentence(operation, params))
    try:
        return await operation.challenge(context, params, *granted)
    except Refusal as refusal:
        unread = f"What exactly would be lost cannot be read now ({refusal.error_code})."
        return Challenge(f"{confirm_sentence(operation, params)} {unread}")


def confirm_sentence(operation: Operation[Any, Any], params: Input) -> str:
    """What an operation that always asks first will do with this input, in one sentence."""
    fields = type(params).model_fields
    removed = {fields[name].alias or name: "null" for name in params.removed}  # first: the end may be cut off
    given = removed | params.model_dump(by_alias=True, exclude_none=True)
    given |= {info.alias or name: "***" for name, info in fields.items() if Secret in info.metadata and (info.alias or name) in given}
    told = [f"{name} {clip_text(str(value))}" for name, value in given.items() if value != {}]  # each in part: none hides those behind it
    shown = ", ".join(told)
    return what_it_will_do(operation.summary) + (f" ({shown})." if shown else ".")


def confirm_fingerprint(input_fingerprint: bytes, replacement: Replacement) -> bytes:
    """What the confirm token of a call that replaces something live is bound to: the input, and what is replaced."""
    return hashlib.sha256(input_fingerprint + b"|" + replacement.state.encode()).digest()


def call_fingerprint(context: Context[Any], params: Input) -> bytes:
    """What a repeated call must match: the input and, where the answer is its caller's alone, the credential."""
    found = policy.input_digest(params)
    if not context.personal:
        return found
    return hashlib.sha256(b"|".join((found, context.caller.principal.encode(), context.caller.key_id.encode()))).digest()


def audit_record(call: Call, caller: Caller, outcome: str, status: int, now: float, monotonic: float) -> AuditRecord:
    milliseconds = round((monotonic - call.started) * 1000, 3)
    return AuditRecord(
        now,
        caller.organisation,
        call.surface,
        call.operation.id,
        caller.principal,
        caller.key_id,
        outcome,
        status,
        milliseconds,
        call.request_id,
    )
