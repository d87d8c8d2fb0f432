"""The second half of a two-step operation: a person is asked where the client can ask, else the model is told to."""

from mcp_types import CallToolRequestParams, ElicitRequest, ElicitRequestFormParams, ElicitResult, InputRequiredResult
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from registry.errors import ConfirmTokenRequired
from transports.mcp.result import Result, refusal_result
from transports.mcp.visitor import Context

FIELD = "confirm"
DECLINED = "The user declined, so nothing was done and nothing was charged. Do not call the tool again unless the user asks for it."
FORM: dict[str, object] = {
    "type": "object",
    "properties": {FIELD: {"type": "boolean", "title": "Do it", "description": "Yes, carry this out now.", "default": False}},
    "required": [FIELD],
}


def can_ask(ctx: Context) -> bool:
    """Whether the protocol puts a person between the question and the answer: only modern clients that show forms."""
    capabilities = ctx.session.client_capabilities
    if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS or capabilities is None or capabilities.elicitation is None:
        return False
    return capabilities.elicitation.form is not None or capabilities.elicitation.url is None


def decision(params: CallToolRequestParams) -> bool | None:
    """What the person said; None when this call brings no answer to our question."""
    if params.request_state is None:
        return None
    response = (params.input_responses or {}).get(FIELD)
    if not isinstance(response, ElicitResult):
        return None
    return response.action == "accept" and (response.content or {}).get(FIELD) is True


def question(challenge: ConfirmTokenRequired) -> InputRequiredResult:
    """Ask the person. The token travels sealed, bound to this principal, tool and arguments."""
    form = ElicitRequestFormParams(message=f"{challenge.message} Carry it out?", requested_schema=FORM)
    return InputRequiredResult(input_requests={FIELD: ElicitRequest(params=form)}, request_state=challenge.confirm_token)


def instruction(challenge: ConfirmTokenRequired, request_id: str) -> Result:
    """The challenge as over HTTP, with the token; its hint tells the model to ask the person, and how to go on."""
    hint = (
        "Nothing has been done yet. Tell the user what will happen and ask whether to go on. Only after the user agreed, call this tool "
        f"again with the same arguments and this confirm_token, within {challenge.expires_in_seconds} seconds"
    )
    return refusal_result({**challenge.body(request_id), "hint": hint})


def declined(request_id: str) -> Result:
    """The person said no. The token is left to expire: nobody else can use it."""
    return refusal_result({"error": DECLINED, "code": "confirm_declined", "request_id": request_id})
