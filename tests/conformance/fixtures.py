"""A test-only MCP server with the fixtures of the conformance suite. The tools are the suite's, the wiring is the service's."""

import json
from typing import Any

import anyio
from mcp.server.caching import CacheHint
from mcp.server.lowlevel.server import Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import PromptsListChanged, ToolsListChanged
from mcp_types import (
    INVALID_PARAMS,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    BlobResourceContents,
    CallToolRequestParams,
    CallToolResult,
    CompleteRequestParams,
    CompleteResult,
    Completion,
    EmptyResult,
    GetPromptRequestParams,
    GetPromptResult,
    InputRequiredResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    Prompt,
    PromptArgument,
    PromptMessage,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    SetLevelRequestParams,
    SubscribeRequestParams,
    TextResourceContents,
    Tool,
    UnsubscribeRequestParams,
)
from mcp_types.methods import CacheableMethod

from tests.conformance.asking import ASKING, Context, Handler, ask_user, form
from tests.conformance.content import PIXEL, audio, embedded, image, text, text_content
from transports.mcp.server import seal_request_state
from transports.mcp.settings import McpSettings

HINTS: dict[CacheableMethod, CacheHint] = {
    "tools/list": CacheHint(60_000, "private"),
    "prompts/list": CacheHint(60_000, "public"),
    "resources/list": CacheHint(60_000, "private"),
    "resources/templates/list": CacheHint(60_000, "private"),
    "resources/read": CacheHint(0, "private"),
}
EMPTY: dict[str, Any] = {"type": "object", "properties": {}}
SCHEMAS: dict[str, dict[str, Any]] = {
    "test_sampling": {"type": "object", "properties": {"prompt": {"type": "string"}}, "required": ["prompt"]},
    "test_elicitation": {"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]},
    "test_x_mcp_header": {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}},
    "json_schema_2020_12_tool": {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            }
        },
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": False,
    },
}
PROMPTS = {
    "test_simple_prompt": Prompt(name="test_simple_prompt", description="A prompt without arguments"),
    "test_prompt_with_arguments": Prompt(
        name="test_prompt_with_arguments",
        description="A prompt with arguments",
        arguments=[
            PromptArgument(name="arg1", description="First", required=True),
            PromptArgument(name="arg2", description="Second", required=True),
        ],
    ),
    "test_prompt_with_embedded_resource": Prompt(
        name="test_prompt_with_embedded_resource",
        description="A prompt that holds a resource",
        arguments=[PromptArgument(name="resourceUri", description="Address", required=True)],
    ),
    "test_prompt_with_image": Prompt(name="test_prompt_with_image", description="A prompt that holds a picture"),
    "test_input_required_result_prompt": Prompt(name="test_input_required_result_prompt", description="A prompt that asks first"),
}
CONTENTS = {
    "test_simple_text": [text("This is a simple text response for testing.")],
    "test_image_content": [image()],
    "test_audio_content": [audio()],
    "test_embedded_resource": [embedded("test://embedded-resource", "This is an embedded resource content.")],
    "test_multiple_content_types": [
        text("Multiple content types test:"),
        image(),
        embedded("test://mixed-content-resource", '{"test":"data","value":123}', "application/json"),
    ],
    "test_x_mcp_header": [text("The header and the argument agree.")],
    "json_schema_2020_12_tool": [text("The schema is shown as it was written.")],
}


async def log(ctx: Context, message: str) -> None:
    await ctx.session.send_log_message("info", message, "fixtures", related_request_id=ctx.request_id)  # pyright: ignore[reportDeprecated]  # the handshake era has it


async def fail(ctx: Context, params: CallToolRequestParams) -> CallToolResult:
    return CallToolResult(content=[text("This tool intentionally returns an error for testing")], is_error=True)


async def logging(ctx: Context, params: CallToolRequestParams) -> CallToolResult:
    for message in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await log(ctx, message)
        await anyio.sleep(0.02)
    return text_content("Tool with logging executed successfully")


async def progress(ctx: Context, params: CallToolRequestParams) -> CallToolResult:
    for step in (0, 50, 100):
        await ctx.session.report_progress(step, 100, f"Completed step {step} of 100")
        await anyio.sleep(0.02)
    return text_content("Three steps were reported")


async def needs_sampling(ctx: Context, params: CallToolRequestParams) -> CallToolResult:
    declared = ctx.session.client_capabilities
    if declared is None or declared.sampling is None:
        message = "This tool needs a client that samples"
        raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, message, {"requiredCapabilities": {"sampling": {}}})
    return text_content("The client samples")


async def reconnect(ctx: Context, params: CallToolRequestParams) -> CallToolResult:
    await log(ctx, "Before disconnect")
    if ctx.close_sse_stream is not None:
        await ctx.close_sse_stream()
    await anyio.sleep(0.2)
    await log(ctx, "After reconnect")
    return text_content("Reconnection test completed")


async def ask_in_stream(ctx: Context, params: CallToolRequestParams) -> CallToolResult | InputRequiredResult:
    await ctx.session.report_progress(1, 2, "About to ask")
    return text_content("Answered") if params.input_responses else ask_user(user_name=form("What is your name?", "name"))


class Fixtures:
    """The handlers. Subscriptions live in this process only."""

    def __init__(self) -> None:
        self.bus = InMemorySubscriptionBus()
        self.tools: dict[str, Handler] = {
            **dict.fromkeys(CONTENTS, self.content),
            **ASKING,
            "test_error_handling": fail,
            "test_tool_with_logging": logging,
            "test_logging_tool": logging,
            "test_tool_with_progress": progress,
            "test_missing_capability": needs_sampling,
            "test_reconnection": reconnect,
            "test_streaming_elicitation": ask_in_stream,
            "test_trigger_tool_change": self.change_tools,
            "test_trigger_prompt_change": self.change_prompts,
        }

    async def content(self, ctx: Context, params: CallToolRequestParams) -> CallToolResult:
        return CallToolResult(content=list(CONTENTS[params.name]))

    async def change_tools(self, ctx: Context, params: CallToolRequestParams) -> CallToolResult:
        await self.bus.publish(ToolsListChanged())
        return text_content("Published")

    async def change_prompts(self, ctx: Context, params: CallToolRequestParams) -> CallToolResult:
        await self.bus.publish(PromptsListChanged())
        return text_content("Published")

    def schema(self, name: str) -> dict[str, Any] | None:
        return SCHEMAS.get(name, EMPTY) if name in self.tools else None

    async def list_tools(self, ctx: Context, params: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(
            tools=[Tool(name=name, description=f"Fixture {name}", input_schema=SCHEMAS.get(name, EMPTY)) for name in self.tools]
        )

    async def call_tool(self, ctx: Context, params: CallToolRequestParams) -> CallToolResult | InputRequiredResult:
        handler = self.tools.get(params.name)
        if handler is None:
            raise MCPError(INVALID_PARAMS, f"Unknown tool {params.name!r}")
        return await handler(ctx, params)

    async def list_resources(self, ctx: Context, params: PaginatedRequestParams | None) -> ListResourcesResult:
        kinds = {"static-text": "text/plain", "static-binary": "image/png", "watched-resource": "text/plain"}
        fixtures = [Resource(uri=f"test://{name}", name=name, description="Fixture", mime_type=kind) for name, kind in kinds.items()]
        return ListResourcesResult(resources=fixtures)

    async def list_templates(self, ctx: Context, params: PaginatedRequestParams | None) -> ListResourceTemplatesResult:
        template = ResourceTemplate(
            uri_template="test://template/{id}/data", name="template", description="Fixture", mime_type="application/json"
        )
        return ListResourceTemplatesResult(resource_templates=[template])

    async def read_resource(self, ctx: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
        uri = params.uri
        if uri == "test://static-binary":
            return ReadResourceResult(contents=[BlobResourceContents(uri=uri, mime_type="image/png", blob=PIXEL)])
        if uri in ("test://static-text", "test://watched-resource"):
            plain = TextResourceContents(uri=uri, mime_type="text/plain", text="This is the content of the static text resource.")
            return ReadResourceResult(contents=[plain])
        id = uri.removeprefix("test://template/").removesuffix("/data")
        if uri != f"test://template/{id}/data":
            raise MCPError(INVALID_PARAMS, "Resource not found", {"uri": uri})
        body = json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})
        return ReadResourceResult(contents=[TextResourceContents(uri=uri, mime_type="application/json", text=body)])

    async def list_prompts(self, ctx: Context, params: PaginatedRequestParams | None) -> ListPromptsResult:
        return ListPromptsResult(prompts=list(PROMPTS.values()))

    async def get_prompt(self, ctx: Context, params: GetPromptRequestParams) -> GetPromptResult | InputRequiredResult:
        given = params.arguments or {}
        if params.name == "test_input_required_result_prompt" and not params.input_responses:
            return ask_user(user_context=form("What context should the prompt use?", "context"))
        plain = {
            "test_simple_prompt": "This is a simple prompt for testing.",
            "test_prompt_with_arguments": f"Prompt with arguments: arg1='{given.get('arg1')}', arg2='{given.get('arg2')}'",
            "test_prompt_with_embedded_resource": "Please process the embedded resource above.",
            "test_prompt_with_image": "Please analyze the image above.",
            "test_input_required_result_prompt": "The context is known now.",
        }
        if params.name not in plain:
            raise MCPError(INVALID_PARAMS, f"Unknown prompt {params.name!r}")
        messages = [PromptMessage(role="user", content=text(plain[params.name]))]
        if params.name == "test_prompt_with_embedded_resource":
            resource = embedded(given.get("resourceUri", ""), "Embedded resource content for testing.")
            messages.insert(0, PromptMessage(role="user", content=resource))
        if params.name == "test_prompt_with_image":
            messages.insert(0, PromptMessage(role="user", content=image()))
        return GetPromptResult(messages=messages)

    async def complete(self, ctx: Context, params: CompleteRequestParams) -> CompleteResult:
        return CompleteResult(completion=Completion(values=["test", "testing"], total=2, has_more=False))

    async def subscribe(self, ctx: Context, params: SubscribeRequestParams) -> EmptyResult:
        return EmptyResult()

    async def unsubscribe(self, ctx: Context, params: UnsubscribeRequestParams) -> EmptyResult:
        return EmptyResult()

    async def set_level(self, ctx: Context, params: SetLevelRequestParams) -> EmptyResult:
        return EmptyResult()


def fixture_server(settings: McpSettings) -> Server:
    """The fixtures on a server that is sealed and hinted as the service's own is."""
    fixtures = Fixtures()
    server = Server(  # pyright: ignore[reportDeprecated]  # the suite asks the handshake era for logging levels
        "conformance-fixtures",
        version=settings.version,
        cache_hints=HINTS,
        get_tool_input_schema=fixtures.schema,
        on_list_tools=fixtures.list_tools,
        on_call_tool=fixtures.call_tool,
        on_list_resources=fixtures.list_resources,
        on_list_resource_templates=fixtures.list_templates,
        on_read_resource=fixtures.read_resource,
        on_subscribe_resource=fixtures.subscribe,
        on_unsubscribe_resource=fixtures.unsubscribe,
        on_subscriptions_listen=ListenHandler(fixtures.bus),
        on_list_prompts=fixtures.list_prompts,
        on_get_prompt=fixtures.get_prompt,
        on_completion=fixtures.complete,
        on_set_logging_level=fixtures.set_level,
    )
    seal_request_state(server, settings)
    return server
