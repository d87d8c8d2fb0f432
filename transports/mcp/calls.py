"""One tools/call: the pipeline's call, the question for a confirmation, and the tool result that a reply becomes. It decides nothing."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, cast

import orjson
from mcp.server.context import ServerRequestContext as McpContext
from mcp_types import CallToolRequestParams, CallToolResult, ElicitRequest, ElicitRequestFormParams, ElicitResult, InputRequiredResult
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from operations.deps import Deps
from registry.answer import FaultReport, answer_call, gather_reply, record_refusal
from registry.binding import with_defaults
from registry.call import Call, Progress, Reply, no_progress
from registry.catalogue import AnyOperation
from registry.characters import HIDDEN_CHARACTERS
from registry.errors import ApprovalRequired, BadRequest, ConfirmTokenRequired
from registry.pipeline import Pipeline
from registry.redaction import READABLE_CHARACTERS_LIMIT, clean_texts, readable_text
from registry.schema import OutputSchema, output_schema
from transports.mcp.request_caller import RequestCaller
from transports.mcp.settings import MCP_SERVER_NAME
from transports.mcp.tools import Tools

ToolResult: TypeAlias = dict[str, object]
"""A tool result as it goes over the wire; what is None is left out there."""
SUSPECT_CHARACTERS = re.compile(rf"[{HIDDEN_CHARACTERS}\x7f]|\\u00[01]|\\[bf]")
LONG_STRING = re.compile(rf'\\|"[^"\\]{{{READABLE_CHARACTERS_LIMIT + 1}}}')
"""Where a string may be too long: one that does not end soon, or an escape, behind which it may go on. It is looked for from quotes alone:
tried at every character of a long text it would take seconds.
"""
FREE_TEXT_META_KEY = f"{MCP_SERVER_NAME}/free_text"
"""In `_meta` of a result: where in it stand texts that people or other systems wrote, as patterns such as `data[].name`."""
TOOL_META_KEY = f"{MCP_SERVER_NAME}/tool"
"""In `_meta` of a challenge: the tool that a card calls again. Not every host tells a card which tool it is for."""
REPLAY_REMARK = "This is the stored answer of an earlier call with the same idempotency_key; nothing was done again."


def tool_result(reply: Reply, answer: OutputSchema, *, verbatim: bool = False) -> ToolResult:
    """The result. The first text is the body and nothing else; what a model has to know of it stands in a second one.

    `verbatim`: what encodes the result takes JSON as it is (orjson.Fragment), and the body was written by orjson, so that it is neither
    decoded nor encoded again where nothing in it has to be cleaned.
    """
    if isinstance(reply.refusal, ApprovalRequired):
        return approval_notice(reply.refusal, readable_body(reply, None))
    if reply.refusal is not None and reply.refusal.status == CHALLENGE_STATUS:
        return challenge_result(reply.refusal.message, cast("dict[str, object]", readable_body(reply, None)))
    if reply.refusal is not None or reply.status >= 400:
        return refusal_result(readable_body(reply, None), reply_remarks(reply), result_meta(reply))
    text = reply.body.decode() if verbatim else ""
    if text and text != "null" and not has_suspect_text(text):
        body = text if answer.wrap is None else f'{{"{answer.wrap}":{text}}}'
        value: object = orjson.Fragment(body)
    else:
        value = readable_body(reply, answer.wrap)
        body = orjson.dumps(value).decode() if value is not None else ""
    return {
        "resultType": "complete",
        "content": [{"type": "text", "text": part} for part in (body, *reply_remarks(reply))],
        "structuredContent": value,
        "isError": False,
        "_meta": result_meta(reply, free_text_of(reply, answer)),
    }


def free_text_of(reply: Reply, answer: OutputSchema) -> Sequence[str]:
    """Where the answer holds text that people or other systems wrote. Stored and streamed answers are decoded for it."""
    if reply.free_text is not None:
        return reply.free_text
    return answer.free_text_of(orjson.loads(reply.body)) if answer.free_text and reply.body else ()


def refusal_result(body: object, more: Sequence[str] = (), meta: dict[str, object] | None = None) -> ToolResult:
    """A refusal, so that the model can read it and correct the call.

    It has no structured content: several clients hold that against the output schema of the tool, also of an error, and throw.
    """
    content = [{"type": "text", "text": part} for part in (orjson.dumps(body).decode(), *more)]
    return {"resultType": "complete", "content": content, "isError": True, "_meta": meta}


def approval_notice(refusal: ApprovalRequired, body: object) -> ToolResult:
    """What a model is told of a call that waits for a person: in words, then the body as over HTTP. There is nothing to accept.

    Choice: the argument that gets the result is named here, where it is needed. In the schema of every tool that may have to wait it would
    cost each model that reads the list, every time.
    """
    sentence = readable_text(refusal.message).rstrip()
    words = (
        f"Not done yet: {sentence} A person has to approve it at {refusal.approval['page']}; nothing that you do approves it. "
        f'Once that is done, call this tool again with the same arguments and idempotency_key="{refusal.approval["idempotency_key"]}", '
        "which every tool takes that writes, also where its schema does not name it: it gets the result. Without it the call asks anew. "
        "approval_reason, too, is taken: a sentence for that person on what the call is for."
    )
    return asked_back(words, body)


def challenge_result(message: str, body: Mapping[str, object], meta: dict[str, object] | None = None) -> ToolResult:
    """What a call is asked back with: a sentence that a model and a person read as what it is, and the body as over HTTP."""
    return asked_back(f"Not done yet: {readable_text(message)}", body, meta)


def asked_back(sentence: str, body: object, meta: dict[str, object] | None = None) -> ToolResult:
    """A sentence, and in the last line the JSON. Choice: one text, since some clients show a model only the first of an error."""
    line = " ".join(sentence.splitlines())
    return {
        "resultType": "complete",
        "content": [{"type": "text", "text": f"{line}\n{orjson.dumps(body).decode()}"}],
        "isError": True,
        "_meta": meta,
    }


def reply_remarks(reply: Reply) -> list[str]:
    """What stands behind the body, in one text: models do not see `_meta`."""
    parts = [REPLAY_REMARK] if is_replay(reply) else []
    if reply.next_cursor is not None:
        parts += [reply.note] if reply.note else []
        parts.append(f'There is more: call again with the same arguments and starting_after="{reply.next_cursor}"')
    return [" ".join(parts)] if parts else []


def is_replay(reply: Reply) -> bool:
    """Whether the answer was stored by an earlier call with the same key."""
    return "Idempotent-Replayed" in reply.headers


def readable_body(reply: Reply, wrap: str | None) -> object:
    """The decoded body, without characters that only a machine reads and without the rest of texts that have no end."""
    text = reply.body.decode()
    value = cast(object, orjson.loads(text)) if text else None
    if has_suspect_text(text):
        value = clean_texts(value)
    return value if wrap is None else {wrap: value}


def has_suspect_text(text: str) -> bool:
    """Whether JSON may hold characters that only a machine reads, or a string that is too long."""
    return bool(SUSPECT_CHARACTERS.search(text) or (len(text) > READABLE_CHARACTERS_LIMIT and LONG_STRING.search(text)))


def result_meta(reply: Reply, free_text: Sequence[str] = ()) -> dict[str, object] | None:
    """What HTTP says in headers and a program needs: where the list goes on, that the answer is a replay, when to come again.

    `free_text`: the patterns of where the answer holds it.
    """
    meta: dict[str, object] = {}
    if reply.next_cursor is not None:
        meta["next"] = reply.next_cursor
    if is_replay(reply):
        meta["replayed"] = True
    if "Retry-After" in reply.headers:
        meta["retryAfter"] = int(reply.headers["Retry-After"])
    if free_text:
        meta[FREE_TEXT_META_KEY] = list(free_text)
    return meta or None


CHALLENGE_STATUS = 202
"""Of refusals that ask: the call waits for a confirmation or an approval, and has done nothing."""
CONFIRM_FIELD = "confirm"
DECLINED_TEXT = "The user declined, so nothing was done and nothing was charged. Do not call the tool again unless the user asks for it."
CONFIRM_FORM: dict[str, object] = {
    "type": "object",
    "properties": {CONFIRM_FIELD: {"type": "boolean", "title": "Do it", "description": "Yes, carry this out now.", "default": False}},
    "required": [CONFIRM_FIELD],
}


def can_elicit(ctx: McpContext) -> bool:
    """Whether the protocol puts a person between the question and the answer: only modern clients that show forms."""
    capabilities = ctx.session.client_capabilities
    if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS or capabilities is None or capabilities.elicitation is None:
        return False
    return capabilities.elicitation.form is not None or capabilities.elicitation.url is None


def elicited_decision(params: CallToolRequestParams) -> bool | None:
    """What the person said; None when this call brings no answer to our question."""
    if params.request_state is None:
        return None
    response = (params.input_responses or {}).get(CONFIRM_FIELD)
    if not isinstance(response, ElicitResult):
        return None
    return response.action == "accept" and (response.content or {}).get(CONFIRM_FIELD) is True


def elicitation(challenge: ConfirmTokenRequired) -> InputRequiredResult:
    """Ask the person. The token travels sealed, bound to this principal, tool and arguments."""
    form = ElicitRequestFormParams(message=f"{challenge.message} Carry it out?", requested_schema=CONFIRM_FORM)
    return InputRequiredResult(input_requests={CONFIRM_FIELD: ElicitRequest(params=form)}, request_state=challenge.confirm_token)


def confirm_instruction(challenge: ConfirmTokenRequired, call: Call) -> ToolResult:
    """The challenge as over HTTP, with the token; its hint tells the model to ask the person, and how to go on."""
    hint = (
        "Nothing has been done yet. Tell the user what will happen and ask whether to go on. Only after the user agreed, call this tool "
        f"again with the same arguments and this confirm_token, within {challenge.expires_in_seconds} seconds"
    )
    body = cast("dict[str, object]", clean_texts({**challenge.body(call.request_id), "hint": hint}))
    return challenge_result(challenge.message, body, {TOOL_META_KEY: call.operation.id})


ToolArguments: TypeAlias = Mapping[str, object]
CallerOf: TypeAlias = Callable[[McpContext], RequestCaller]


class ToolCalls:
    def __init__(self, pipeline: Pipeline[Deps], who: CallerOf, report: FaultReport, *, insists_on_elicitation: bool = False) -> None:
        self._pipeline, self._report, self._insists_on_elicitation = pipeline, report, insists_on_elicitation
        self.tools, self.who = Tools(pipeline.catalogue), who

    async def call_tool(self, ctx: McpContext, params: CallToolRequestParams) -> CallToolResult | InputRequiredResult:
        requester = self.who(ctx)
        operation = self.tools.find(requester, params.name)
        call = self.call(requester, operation, progress=ctx.session.report_progress)
        refusal = self._fill(requester, call, params.arguments or {})
        if refusal is not None:
            return self._shown(call, refusal)
        said = elicited_decision(params) if operation.confirmable else None
        if said is False:
            # The token is left to expire: nobody else can use it.
            return cast(CallToolResult, refusal_result({"error": DECLINED_TEXT, "code": "confirm_declined", "request_id": call.request_id}))
        if said:
            call.confirm_token = params.request_state
        elif self._insists_on_elicitation and can_elicit(ctx):
            call.confirm_token = None
        return self._render(ctx, call, await self.run(requester, call))

    async def plain(self, requester: RequestCaller, operation: AnyOperation, arguments: ToolArguments) -> ToolResult:
        """The result of a call that asks the client nothing, in its wire form."""
        call = self.call(requester, operation)
        reply = self._fill(requester, call, arguments) or await self.run(requester, call)
        return tool_result(reply, output_schema(operation.result), verbatim=reply.encoded_here)

    def call(
        self, requester: RequestCaller, operation: AnyOperation, arguments: ToolArguments | None = None, progress: Progress = no_progress
    ) -> Call:
        """A call of this requester, not yet run."""
        return Call(
            operation=operation,
            surface="mcp",
            request_id=requester.request_id or self._pipeline.ids.new("req_"),
            caller=requester.caller,
            arguments=arguments or {},
            client=requester.client,
            message_size=requester.message_size,
            progress=progress,
            names_free_text=True,
        )

    async def run(self, requester: RequestCaller, call: Call) -> Reply:
        reply = await requester.admit(call, await gather_reply(await answer_call(self._pipeline, call, self._report), call.request_id))
        requester.tell(call, reply)
        return reply

    def _fill(self, requester: RequestCaller, call: Call, arguments: ToolArguments) -> Reply | None:
        """The arguments, among them what HTTP sends as headers; or why they cannot be taken."""
        operation, given = call.operation, with_defaults(call.operation.tool_defaults, arguments)
        try:
            call.idempotency_key = take_text(given, "idempotency_key") if operation.once is not None else None
            call.confirm_token = take_text(given, "confirm_token") if operation.confirmable else None
            call.reason = take_text(given, "approval_reason") if operation.approvable else None
        except BadRequest as refusal:
            reply = record_refusal(self._pipeline, call, refusal)
            self._pipeline.signals.answered(call, reply, 0.0)
            requester.tell(call, reply)
            return reply
        call.arguments = given
        return None

    def _render(self, ctx: McpContext, call: Call, reply: Reply) -> CallToolResult | InputRequiredResult:
        if isinstance(reply.refusal, ConfirmTokenRequired):
            asks = can_elicit(ctx)
            return elicitation(reply.refusal) if asks else cast(CallToolResult, confirm_instruction(reply.refusal, call))
        return self._shown(call, reply)

    def _shown(self, call: Call, reply: Reply) -> CallToolResult:
        # The server takes a mapping as it is, and checks it: a model would be checked and written once more before that.
        return cast(CallToolResult, tool_result(reply, output_schema(call.operation.result)))


def take_text(arguments: dict[str, object], name: str) -> str | None:
    """Take a text out of the arguments; the input model does not know it."""
    value = arguments.pop(name, None)
    if value is None or isinstance(value, str):
        return value
    raise BadRequest(f"{name}: must be a string", param=name, hint="Put it in quotes")
