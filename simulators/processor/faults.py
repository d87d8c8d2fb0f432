"""Faults on purpose: what the next calls of the API meet instead of, or after, their effect."""

from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Annotated, Literal, NamedTuple

import orjson
from pydantic import BaseModel, ConfigDict, Field

from simulators.server import AnswerLost, WireAnswer

FaultTrouble = Literal["timeout", "closed", "error", "rate_limited", "garbage"]
ERROR_BODY = {"type": "api_error", "message": "An error occurred with our connection."}
RATE_LIMIT_BODY = {"type": "invalid_request_error", "code": "rate_limit", "message": "Request rate limit exceeded."}


class ProcessorFault(BaseModel):
    """One trouble of some calls. `path` may hold * for anything; `after`: the call takes effect all the same.

    A call that is refused for its rate never takes effect, and one that is answered with garbage always does.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    trouble: FaultTrouble
    method: Literal["*", "GET", "POST", "DELETE"] = "POST"
    path: str = "*"
    account: str | None = Field(None, description="only calls for this connected account")
    after: bool = False
    skip: Annotated[int, Field(ge=0)] = 0
    times: Annotated[int, Field(ge=1)] = 1

    @property
    def has_effect(self) -> bool:
        """Whether the call takes effect."""
        return self.trouble == "garbage" or (self.after and self.trouble != "rate_limited")

    def answer(self) -> WireAnswer:
        """The answer that is given instead. Raises AnswerLost."""
        if self.trouble in ("timeout", "closed"):
            raise AnswerLost(slow=self.trouble == "timeout")
        headers = {"content-type": "application/json", "request-id": "req_fault"}
        if self.trouble == "rate_limited":
            return WireAnswer(429, orjson.dumps({"error": RATE_LIMIT_BODY}), headers)
        if self.trouble == "error":
            return WireAnswer(500, orjson.dumps({"error": ERROR_BODY}), headers)
        return WireAnswer(200, b'{"id": "ch_', headers)


class ProcessorCall(NamedTuple):
    """One call of the API; `status` is 0 where there was no answer."""

    method: str
    path: str
    account: str
    key: str
    status: int
    fault: str


class FaultOrder(BaseModel):
    faults: list[ProcessorFault]


@dataclass(slots=True)
class ProcessorFaults:
    """Faults in the order in which they were given; the first that fits a call is its own. They are not kept."""

    queue: list[ProcessorFault] = field(default_factory=list[ProcessorFault])

    def take(self, method: str, path: str, account: str) -> ProcessorFault | None:
        """The fault of this call, which uses it up by one."""
        for place, fault in enumerate(self.queue):
            fits = fault.method in ("*", method) and fnmatchcase(path, fault.path) and fault.account in (None, account)
            if not fits:
                continue
            if fault.skip:
                self.queue[place] = fault.model_copy(update={"skip": fault.skip - 1})
                continue
            if fault.times > 1:
                self.queue[place] = fault.model_copy(update={"times": fault.times - 1})
            else:
                del self.queue[place]
            return fault
        return None
