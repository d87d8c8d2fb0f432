"""A conversation with a language model that can look things up for whoever asks."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated, Literal

from pydantic import FailFast, Field, model_validator

from clients.model.failure import ModelError, ModelFailure
from clients.model.port import Message, Model
from operations.assistant.allowance import Allowance, over_allowance, read_allowance, reserve_call
from operations.assistant.events import event, kept_alive
from operations.assistant.talk import CALLS, CHARACTERS, Talk
from operations.assistant.tools import Toolbox
from operations.deps import Ctx
from registry.errors import BadRequest, QuotaExceeded, Refusal
from registry.model import Document, Events, FieldRule, Input
from registry.operation import Example, operation

BODY_LIMIT = 64 * 1024
CHAT_SECONDS = 300.0
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9._:/@+-]{1,100}$", description="One of the models this deployment has.")]


class Said(Input):
    """One message of the conversation."""

    role: Annotated[Literal["user", "assistant"], Field(description="Who said it.")]
    content: Annotated[str, Field(min_length=1, max_length=16_000, description="Text, 1-16000 characters.")]


class Chat(Input):
    """A conversation so far; it is kept nowhere, so the whole of it is sent each time."""

    messages: Annotated[
        list[Said], FailFast(), Field(min_length=1, max_length=64, description="1-64 messages, oldest first; the last is the user's.")
    ]
    model: Annotated[Name | None, Field(description="Another than the default model.")] = None

    @model_validator(mode="after")
    def ends_with_question(self) -> "Chat":
        """There is something to answer."""
        if self.messages[-1].role != "user":
            raise FieldRule("the last message is the assistant's", param="messages", hint="End with a message of role user")
        return self


@operation(
    "POST",
    "/v1/ai/chat",
    title="Chat with the assistant",
    tool=False,
    body_limit=BODY_LIMIT,
    raises=[BadRequest, QuotaExceeded],
    examples=[Example("Ask about the fleet", {"messages": [{"role": "user", "content": "How many of my lines are suspended?"}]})],
)
async def ai_chat(ctx: Ctx, params: Chat) -> Annotated[Document, "text/event-stream"] | Events:
    """Ask the assistant, which looks things up with your own rights.

    The answer is a stream of server-sent events. It spends one AI call, reserved before the model runs and kept whatever comes of it.

    `event: quota` comes first: `{limit, used, remaining, resets_at}` after this call. `event: delta` carries `{text}`, some more of the
    answer. One `event: done` ends the stream; its `operations` are those that the assistant called, with the status of each. `event: error`
    with `{error, code, request_id}` ends it in place of `done` when the answer stopped early. Lines that begin with a colon only keep the
    connection alive. Hanging up ends the model's work.

    The assistant calls operations that only read, as you: with your key's restrictions, your quota and your audit log, where the surface
    is `assistant`. Activation codes, other secrets and e-mail addresses are not shown to the model. Without a model there is an `error`
    with the code `model_unavailable`; when the day's AI calls are used up, the answer is 429.
    """
    model = ctx.deps.model
    if model is not None and params.model is not None and params.model not in model.names:
        raise BadRequest(
            f"model: there is no such model; it must be one of {', '.join(model.names)}", param="model", hint="Leave model out"
        )
    allowance = await reserve_call(ctx)
    if allowance is None:
        raise over_allowance(ctx, await read_allowance(ctx))
    late = failure(ctx, ModelError(ModelFailure.TIMEOUT))
    return Events(kept_alive(events(ctx, params, allowance, model), late=late, most=CHAT_SECONDS))


async def events(ctx: Ctx, params: Chat, allowance: Allowance, model: Model | None) -> AsyncGenerator[bytes]:
    """The stream."""
    yield event("quota", {**allowance})
    if model is None:
        yield failure(ctx, ModelError(ModelFailure.UNAVAILABLE, hint="This deployment has none: SERVICE_MODEL_URL names one"))
        return
    toolbox = Toolbox(ctx.deps.inside, ctx.caller, calls=CALLS, characters=CHARACTERS)
    said = [Message(message.role, message.content) for message in params.messages]
    talk = Talk(model, toolbox, said, now=ctx.now, name=params.model)
    try:
        async with aclosing(talk.texts()) as texts:
            async for text in texts:
                yield event("delta", {"text": text})
    except ModelError as error:
        yield failure(ctx, error)
        return
    yield event("done", {"operations": [used._asdict() for used in toolbox.used]})


def failure(ctx: Ctx, error: Refusal) -> bytes:
    """Why the answer stopped early."""
    return event("error", error.body(ctx.request_id))
