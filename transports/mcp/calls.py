"""One tools/call as a Call: the door hands it to the pipeline and renders what comes back. It decides nothing."""

from collections.abc import Mapping
from typing import TypeAlias

from mcp_types import CallToolRequestParams, CallToolResult, InputRequiredResult

from operations.deps import Deps
from registry.answer import Report, answer, gathered, refused
from registry.call import Call, Reply
from registry.catalogue import AnyOperation
from registry.errors import BadRequest, ConfirmTokenRequired
from registry.pipeline import Pipeline
from transports.mcp import confirm
from transports.mcp.result import tool_result
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
        call = self.call(ctx, visitor, operation, {})
        try:
            self._fill(call, {**operation.tool_defaults, **(params.arguments or {})})
        except BadRequest as refusal:
            return tool_result(refused(self._pipeline, call, refusal), self._tools.answer(operation))
        said = confirm.decision(params) if operation.confirm else None
        if said is False:
            return confirm.declined(call.request_id)
        if said:
            call.confirm_token = params.request_state
        elif self._settings.insist_on_elicitation and confirm.can_ask(ctx):
            call.confirm_token = None
        return self._render(ctx, call, await self.run(call))

    def call(self, ctx: Context, visitor: Visitor, operation: AnyOperation, arguments: Arguments) -> Call:
        """A call of this visitor, not yet run."""
        return Call(
            operation=operation,
            surface="mcp",
            request_id=visitor.request_id or self._pipeline.ids.new("req_"),
            caller=visitor.caller,
            arguments=arguments,
            client=visitor.client,
            progress=ctx.session.report_progress,
        )

    async def run(self, call: Call) -> Reply:
        """The one way in."""
        return await gathered(await answer(self._pipeline, call, self._report), call.request_id)

    def _fill(self, call: Call, arguments: dict[str, object]) -> None:
        """What HTTP sends as headers comes among the arguments here."""
        if call.operation.once is not None:
            call.idempotency_key = text(arguments, "idempotency_key")
        if call.operation.confirm:
            call.confirm_token = text(arguments, "confirm_token")
        call.arguments = arguments

    def _render(self, ctx: Context, call: Call, reply: Reply) -> CallToolResult | InputRequiredResult:
        if isinstance(reply.refusal, ConfirmTokenRequired):
            return confirm.question(reply.refusal) if confirm.can_ask(ctx) else confirm.instruction(reply.refusal, call.request_id)
        return tool_result(reply, self._tools.answer(call.operation))


def text(arguments: dict[str, object], name: str) -> str | None:
    """Take a text out of the arguments; the input model does not know it."""
    value = arguments.pop(name, None)
    if value is None or isinstance(value, str):
        return value
    raise BadRequest(f"{name}: must be a string", param=name, hint="Put it in quotes")
