"""Traffic, errors and latency of the calls of a process, whatever door they came through."""

from registry.call import Call, Reply
from registry.latency import Counts, Histograms


class CallSignals:
    """Counts calls when their answer is known. What is streamed has been answered when its first piece can be asked for.

    Labels are the operation's name, the door and the outcome, and for errors their codes: nothing that a caller chooses.
    """

    def __init__(self) -> None:
        self.seconds = Histograms(("operation", "door", "outcome"))
        self.errors = Counts(("door", "code"))

    def answered(self, call: Call, reply: Reply, seconds: float) -> None:
        """A call has its answer, after so many seconds."""
        self.seconds.observe((call.operation.id, call.surface, outcome_of(reply.status)), seconds)
        if reply.refusal is not None and reply.status >= 400:
            self.errors.add((call.surface, reply.refusal.error_code))

    def abandoned(self, call: Call, seconds: float) -> None:
        """A call was given up before it had an answer: its client has hung up."""
        self.seconds.observe((call.operation.id, call.surface, "abandoned"), seconds)


def outcome_of(status: int) -> str:
    """`refused` is up to the caller, `failed` up to the service or an outside system."""
    return "ok" if status < 400 else "refused" if status < 500 else "failed"
