"""What stands behind the table: an application for the paths that no operation has (MCP, documentation, pages, metrics)."""

from dataclasses import dataclass

from transports.http.asgi import App


@dataclass(frozen=True, slots=True)
class Inner:
    """An application and its paths. A prefix `/docs` means `/docs` itself and everything below `/docs/`."""

    app: App
    paths: frozenset[str] = frozenset()
    prefixes: tuple[str, ...] = ()

    def template(self, path: str) -> str | None:
        """The name of a path in logs, or None when it is not one of ours: what follows a prefix may be a secret."""
        if path in self.paths:
            return path
        for prefix in self.prefixes:
            if path == prefix or path.startswith(prefix + "/"):
                return prefix
        return None
