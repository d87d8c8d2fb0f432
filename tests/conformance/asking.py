"""Fixture tools that ask the client for something: over the back channel (handshake era) and by multi-round trips (2026-07-28)."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequest,
    InputRequiredResult,
    ListRootsRequest,
    ListRootsResult,
    SamplingMessage,
)

from tests.conformance.content import text, text_content

Context = ServerRequestContext
Result = CallToolResult | InputRequiredResult
Handler = Callable[[Context, CallToolRequestParams], Awaitable[Result]]

STATUSES = ["active", "inactive", "pending"]
DEFAULTS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "User name", "default": "John Doe"},
        "age": {"type": "integer", "description": "User age", "default": 30},
        "score": {"type": "number", "description": "User score", "default": 95.5},
        "status": {"type": "string", "description": "User status", "enum": STATUSES, "default": "active"},
        "verified": {"type": "boolean", "description": "Verification status", "default": True},
    },
    "required": [],
}


def titled(**titles: str) -> list[dict[str, str]]:
    return [{"const": value, "title": title} for value, title in titles.items()]


ENUMS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
        "titledSingle": {"type": "string", "oneOf": titled(value1="First", value2="Second", value3="Third")},
        "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["Option One", "Option Two", "Option Three"]},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled(value1="First", value2="Second", value3="Third")}},
    },
    "required": [],
}
ANSWER: dict[str, Any] = {
    "type": "object",
    "properties": {"username": {"type": "string", "description": "User's response"}, "email": {"type": "string", "description": "Address"}},
    "required": ["username", "email"],
}


def form(message: str, field: str, kind: str = "string") -> ElicitRequest:
    schema = {"type": "object", "properties": {field: {"type": kind}}, "required": [field]}
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


def sample(prompt: str) -> CreateMessageRequest:
    messages = [SamplingMessage(role="user", content=text(prompt))]
    return CreateMessageRequest(params=CreateMessageRequestParams(messages=messages, max_tokens=100))


def ask_user(state: dict[str, Any] | None = None, /, **requests: InputRequest) -> InputRequiredResult:
    return InputRequiredResult(input_requests=requests, request_state=None if state is None else json.dumps(state))


def filled(params: CallToolRequestParams, key: str, field: str) -> object:
    """A field of an accepted form; None when it was not answered."""
    response = (params.input_responses or {}).get(key)
    if not isinstance(response, ElicitResult) or response.action != "accept":
        return None
    return (response.content or {}).get(field)


def state_of(params: CallToolRequestParams) -> dict[str, Any]:
    return {} if params.request_state is None else json.loads(params.request_state)


async def sampling(ctx: Context, params: CallToolRequestParams) -> Result:
    prompt = str((params.arguments or {}).get("prompt", ""))
    messages = [SamplingMessage(role="user", content=text(prompt))]
    answer = await ctx.session.create_message(messages, max_tokens=100, related_request_id=ctx.request_id)  # pyright: ignore[reportDeprecated]  # the handshake era has it
    return text_content(f"LLM response: {getattr(answer.content, 'text', '')}")


def elicits(opening: str, default_message: str, schema: dict[str, Any]) -> Handler:
    async def handler(ctx: Context, params: CallToolRequestParams) -> Result:
        message = str((params.arguments or {}).get("message", default_message))
        answer = await ctx.session.elicit_form(message, schema, related_request_id=ctx.request_id)
        return text_content(f"{opening}: action={answer.action}, content={json.dumps(answer.content or {})}")

    return handler


async def one_form(ctx: Context, params: CallToolRequestParams) -> Result:
    name = filled(params, "user_name", "name")
    return ask_user(user_name=form("What is your name?", "name")) if name is None else text_content(f"Hello, {name}!")


async def one_sample(ctx: Context, params: CallToolRequestParams) -> Result:
    answer = (params.input_responses or {}).get("sample")
    if isinstance(answer, CreateMessageResult):
        return text_content(f"Sampled: {getattr(answer.content, 'text', '')}")
    return ask_user(sample=sample("What is the capital of France?"))


async def roots(ctx: Context, params: CallToolRequestParams) -> Result:
    answer = (params.input_responses or {}).get("roots")
    return text_content(f"Found {len(answer.roots)} roots") if isinstance(answer, ListRootsResult) else ask_user(roots=ListRootsRequest())


async def with_state(ctx: Context, params: CallToolRequestParams) -> Result:
    if state_of(params).get("kind") == "state" and filled(params, "confirm", "ok") is True:
        return text_content("state-ok: the state came back whole")
    return ask_user({"kind": "state"}, confirm=form("Please confirm", "ok", "boolean"))


async def several(ctx: Context, params: CallToolRequestParams) -> Result:
    responses = params.input_responses or {}
    if {"user_name", "greeting", "roots"} <= responses.keys() and state_of(params):
        return text_content(f"All three are there: {filled(params, 'user_name', 'name')}")
    requests: dict[str, InputRequest] = {
        "user_name": form("What is your name?", "name"),
        "greeting": sample("Generate a greeting"),
        "roots": ListRootsRequest(),
    }
    return ask_user({"kind": "several"}, **requests)


async def rounds(ctx: Context, params: CallToolRequestParams) -> Result:
    state = state_of(params)
    name, color = filled(params, "step1", "name"), filled(params, "step2", "color")
    if state.get("round") == 2 and color is not None:
        return text_content(f"{state['name']} likes {color}")
    if state.get("round") == 1 and name is not None:
        return ask_user({"round": 2, "name": name}, step2=form("Step 2: What is your favorite color?", "color"))
    return ask_user({"round": 1}, step1=form("Step 1: What is your name?", "name"))


async def by_capability(ctx: Context, params: CallToolRequestParams) -> Result:
    """Asks only for what the client declared that it can answer."""
    declared = ctx.session.client_capabilities
    requests: dict[str, InputRequest] = {}
    if declared is not None and declared.sampling is not None:
        requests["sample"] = sample("Say hello")
    if declared is not None and declared.elicitation is not None:
        requests["name"] = form("What is your name?", "name")
    if not requests:
        raise MCPError(INVALID_PARAMS, "The client can answer nothing")
    return text_content("Answered") if params.input_responses else ask_user(**requests)


ASKING: dict[str, Handler] = {
    "test_sampling": sampling,
    "test_elicitation": elicits("User response", "Please answer", ANSWER),
    "test_elicitation_sep1034_defaults": elicits("Elicitation completed", "Please review the form", DEFAULTS),
    "test_elicitation_sep1330_enums": elicits("Elicitation completed", "Please choose", ENUMS),
    "test_input_required_result_elicitation": one_form,
    "test_input_required_result_sampling": one_sample,
    "test_input_required_result_list_roots": roots,
    "test_input_required_result_request_state": with_state,
    "test_input_required_result_multiple_inputs": several,
    "test_input_required_result_multi_round": rounds,
    "test_input_required_result_tampered_state": with_state,
    "test_input_required_result_capabilities": by_capability,
}
