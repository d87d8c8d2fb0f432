"""Everything that a process says is a line of its log: also what libraries, threads and the interpreter would write as text."""

import logging
import sys
import threading
from types import TracebackType

from transports.logs import Logs, ServerLog, described


def log_process_output(logs: Logs) -> None:
    """From now on warnings and errors of any library, and exceptions that nobody catches, are lines of the log."""
    root = logging.getLogger()
    root.handlers[:] = [ServerLog(logs, logging.WARNING)]
    root.setLevel(logging.WARNING)
    logging.captureWarnings(True)

    def in_thread(failed: threading.ExceptHookArgs) -> None:
        if failed.exc_value is not None and not isinstance(failed.exc_value, SystemExit):
            name = "" if failed.thread is None else failed.thread.name
            logs.event("fault", level="error", thread=name, errors=described(failed.exc_value))

    def unraisable(failed: "sys.UnraisableHookArgs") -> None:
        if failed.exc_value is not None:
            logs.event("fault", level="error", text=failed.err_msg or "", errors=described(failed.exc_value))

    def at_the_end(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if issubclass(kind, KeyboardInterrupt):
            sys.__excepthook__(kind, error, trace)
            return
        logs.event("fault", level="error", errors=described(error))

    threading.excepthook, sys.unraisablehook, sys.excepthook = in_thread, unraisable, at_the_end
