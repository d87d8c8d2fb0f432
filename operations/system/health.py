"""Is the service up, and which build is it."""

from typing_extensions import TypedDict

from operations.deps import Ctx
from registry.operation import Auth, Example, Nothing, Scope, operation


class Health(TypedDict):
    """The service answers."""

    ok: bool
    version: str
    build_sha: str


@operation(
    "GET",
    "/health",
    scope=Scope.NONE,
    auth=Auth.PUBLIC,
    limited=False,
    examples=[Example("Is it up?", {}, {"ok": True, "version": "1.0.0", "build_sha": "unknown"})],
)
async def health_check(ctx: Ctx, _params: Nothing) -> Health:
    """Tell whether the service answers, and which build it is.

    Public, never charged, touches no database. `build_sha` is the source revision, or `unknown`.
    """
    return {"ok": True, "version": ctx.deps.build.version, "build_sha": ctx.deps.build.sha}
