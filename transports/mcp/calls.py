"""One tools/call as a Call: the door hands it to the pipeline and renders what comes back. It decides nothing."""

from collections.abc import Mapping
from typing import TypeAlias, cast

from mcp_types import CallToolRequestParams, CallToolResult, InputRequiredResult

from operations.deps import Deps
from registry.answer import Report, answer, gathered, refused
from registry.call import Call, Progress, Reply, no_progress
from registry.catalogue import AnyOperation
from registry.errors import BadRequest, ConfirmTokenRequired
from registry.nulls import with_defaults
from registry.pipeline import Pipeline
from transports.mcp import confirm
from transports.mcp.result import Result, tool_result
from transports.mcp.settings import McpSettings
from transports.mcp.tools import Tools
from transports.mcp.visitor import Context, Visitor, Who

Arguments: TypeAlias = Mapping[str, object]


class Calls:
    """Runs tools."""

    def __init__(self, pipeline: Pipeline[Deps], tools: Tools, who: Who, settings: McpSettings, report: Report) -> None:
        self._pipeline, self._tools, self._who, self._settings, self._report = pipeline, tools, who, settings, report

    async def call_tool(self, ctx: Context, params: CallToolRequestParams) -> CallToolResult | InputRequiredResult:
        """The handler of tools/call."""
        visitor = self._who(ctx)
        operation = self._tools.find(visitor, params.name)
        call = self.call(visitor, operation, progress=ctx.session.report_progress)
        refusal = self._fill(call, params.arguments or {})
        if refusal is not None:
            visitor.tell(call, refusal)
            return self._shown(call, refusal)
        said = confirm.decision(params) if operation.confirmable else None
        if said is False:
            return cast(CallToolResult, confirm.declined(call.request_id))
        if said:
            call.confirm_token = params.request_state
        elif self._settings.insist_on_elicitation and confirm.can_ask(ctx):
            call.confirm_token = None
        return self._render(ctx, call, await self.run(visitor, call))

    async def plain(self, visitor: Visitor, operation: AnyOperation, arguments: Arguments) -> Result:
        """A call in which nothing can be asked of the client, as it goes over the wire."""
        call = self.call(visitor, operation)
        refusal = self._fill(call, arguments)
        if refusal is not None:
            visitor.tell(call, refusal)
        return tool_result(refusal or await self.run(visitor, call), self._tools.answer(operation))

    def call(self, visitor: Visitor, operation: AnyOperation, arguments: Arguments | None = None, progress: Progress = no_progress) -> Call:
        """A call of this visitor, not yet run."""
        return Call(
            operation=operation,
            surface="mcp",
            request_id=visitor.request_id or self._pipeline.ids.new("req_"),
            caller=visitor.caller,
            arguments=arguments or {},
            client=visitor.client,
            message_size=visitor.message_size,
            progress=progress,
        )

    async def run(self, visitor: Visitor, call: Call) -> Reply:
        """The one way in."""
        reply = await visitor.admit(call, await gathered(await answer(self._pipeline, call, self._report), call.request_id))
        visitor.tell(call, reply)
        return reply

    def _fill(self, call: Call, arguments: Arguments) -> Reply | None:
        """The arguments, among them what HTTP sends as headers; or why they cannot be taken."""
        operation, given = call.operation, with_defaults(call.operation.tool_defaults, arguments)
        try:
            call.idempotency_key = text(given, "idempotency_key") if operation.once is not None else None
            call.confirm_token = text(given, "confirm_token") if operation.confirmable else None
        except BadRequest as refusal:
            reply = refused(self._pipeline, call, refusal)
            self._pipeline.signals.answered(call, reply, 0.0)
            return reply
        call.arguments = given
        return None

    def _render(self, ctx: Context, call: Call, reply: Reply) -> CallToolResult | InputRequiredResult:
        if isinstance(reply.refusal, ConfirmTokenRequired):
            asks = confirm.can_ask(ctx)
            return confirm.question(reply.refusal) if asks else cast(CallToolResult, confirm.instruction(reply.refusal, call.request_id))
        return self._shown(call, reply)

    def _shown(self, call: Call, reply: Reply) -> CallToolResult:
        # The server takes a mapping as it is, and checks it: a model would be checked and written once more before that.
        return cast(CallToolResult, tool_result(reply, self._tools.answer(call.operation)))


def text(arguments: dict[str, object], name: str) -> str | None:
    """Take a text out of the arguments; the input model does not know it."""
    value = arguments.pop(name, None)
    if value is None or isinstance(value, str):
        return value
    raise BadRequest(f"{name}: must be a string", param=name, hint="Put it in quotes")
