"""What stands behind the table: an application for the paths that no operation has (MCP, documentation, pages, metrics)."""

from collections.abc import Callable
from dataclasses import dataclass

from registry.call import Reply
from registry.errors import Refusal
from transports.http.asgi import App, HttpScope
from transports.http.response import refusal_reply

Shown = Callable[[HttpScope, Refusal, str], Reply | None]


@dataclass(frozen=True, slots=True)
class Inner:
    """An application and its paths. A prefix `/docs` means `/docs` itself and everything below `/docs/`."""

    app: App
    paths: frozenset[str] = frozenset()
    prefixes: tuple[str, ...] = ()
    shown: Shown | None = None
    """A refusal, also one of the door itself, as the application shows it; nothing where JSON is right."""
    operation_refused: Shown | None = None
    """The same for what operations refuse, whose callers are programs but for a few links that are opened in browsers."""
    shared: Callable[[str], bool] = lambda path: False
    """Whether pages of listed origins may read what the application answers at a path: protocols and documents, never pages."""

    def refused(self, scope: HttpScope, refusal: Refusal, request_id: str) -> Reply:
        """The reply of a request that got no further."""
        shown = None if self.shown is None else self.shown(scope, refusal, request_id)
        return refusal_reply(refusal, request_id) if shown is None else shown

    def of_operation(self, scope: HttpScope, reply: Reply, request_id: str) -> Reply:
        """What an operation answered; a refusal is perhaps a page."""
        shown = (
            None if reply.refusal is None or self.operation_refused is None else self.operation_refused(scope, reply.refusal, request_id)
        )
        return reply if shown is None else shown

    def shares(self, path: str) -> bool:
        """Whether pages of listed origins may read the answers at a path; what is not ours is an operation's, or nobody's."""
        return self.template(path) is None or self.shared(path)

    def template(self, path: str) -> str | None:
        """The name of a path in logs, or None when it is not one of ours: what follows a prefix may be a secret."""
        if path in self.paths:
            return path
        for prefix in self.prefixes:
            if path == prefix or path.startswith(prefix + "/"):
                return prefix
        return None
