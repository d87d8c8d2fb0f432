"""How a model fails, in our words: what the endpoint says of it is never read to anybody."""

from enum import StrEnum
from typing import TYPE_CHECKING

from registry.errors import ProviderError

if TYPE_CHECKING:  # slow to import: whoever fails has imported it
    import openai

OPERATOR = "Whoever runs the service checks it: `reseller doctor`"


class ModelFailure(StrEnum):
    """The code that callers see."""

    UNAVAILABLE = "model_unavailable"
    CROWDED = "upstream_unavailable"
    REFUSED = "model_refused"
    BUSY = "model_busy"
    TIMEOUT = "model_timeout"
    BROKEN = "model_broken"
    TOO_LONG = "model_too_long"


TEXTS = {
    ModelFailure.UNAVAILABLE: "The language model cannot be reached",
    ModelFailure.CROWDED: "Too many calls wait for the language model, so it was not asked; ask again later",
    ModelFailure.REFUSED: "The language model refused the request",
    ModelFailure.BUSY: "The language model takes no more requests at the moment; ask again later",
    ModelFailure.TIMEOUT: "The language model did not answer in time; ask again, or ask for less",
    ModelFailure.BROKEN: "The language model's answer broke off, or cannot be read; ask again",
    ModelFailure.TOO_LONG: "The language model's answer is longer than is taken; ask for less",
}


class ModelError(ProviderError):
    """The model gave no whole answer."""

    code = "model_unavailable"

    def __init__(self, failure: ModelFailure, *, hint: str | None = None) -> None:
        super().__init__(TEXTS[failure], code=failure.value, hint=hint)
        self.failure = failure


def translated(error: "openai.OpenAIError") -> ModelError:
    """The library's error as ours."""
    import openai  # start-up budget

    if isinstance(error, openai.APITimeoutError):
        return ModelError(ModelFailure.TIMEOUT)
    if isinstance(error, openai.APIStatusError):
        return of_status(error.status_code)
    if isinstance(error, openai.APIConnectionError):
        return ModelError(ModelFailure.UNAVAILABLE)
    return ModelError(ModelFailure.BROKEN)


def of_status(status: int) -> ModelError:
    """What an endpoint's status means."""
    if status == 429:
        return ModelError(ModelFailure.BUSY)
    if status in (408, 504):
        return ModelError(ModelFailure.TIMEOUT)
    if status >= 500:
        return ModelError(ModelFailure.UNAVAILABLE)
    return ModelError(ModelFailure.REFUSED, hint=OPERATOR)
