"""A command that cannot go on, told in one line."""


class Failure(Exception):
    """Printed to stderr without a traceback; the exit code says whose fault it was."""

    def __init__(self, message: str, *, exit_code: int = 2) -> None:
        super().__init__(message)
        self.message = message
        self.exit_code = exit_code


class Unreachable(Failure):
    """Nobody answers there now: the same call may be answered later."""
