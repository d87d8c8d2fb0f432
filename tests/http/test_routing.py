"""Which operation a path means."""

import gc
import sys
from collections.abc import Callable
from types import FrameType, ModuleType

import httpx
import pytest
from inline_snapshot import snapshot

from operations.deps import Ctx
from registry.catalogue import Catalogue, Toolset
from registry.errors import MethodNotAllowed
from registry.operation import Nothing, operation
from tests.http.asking import ask
from tests.http.conftest import HTTP_OPERATIONS
from tests.http.notes import UsageRef
from tests.world import World
from transports.http.router import OperationRouter


@pytest.mark.cases
@pytest.mark.parametrize(
    ("method", "path", "route", "value"),
    [
        ("GET", "/v1/notes/plain", "get_note", "plain"),
        ("GET", "/v1/notes/a%2Fb", "get_note", "a/b"),
        ("GET", "/v1/notes/a%252Fb", "get_note", "a%2Fb"),
        ("GET", "/v1/notes/%C3%A9t%C3%A9", "get_note", "été"),
        ("GET", "/v1/notes/a+b", "get_note", "a+b"),
        ("GET", "/v1/notes/..", "get_note", ".."),
        ("GET", "/v1/%6Eotes/x", "get_note", "x"),
        ("GET", "/v1/subscribers/issue-from-inventory/k1", "get_issuance", "k1"),
        ("GET", "/v1/subscribers/issue-from-inventory/packages", "get_issuance", "packages"),
        ("GET", "/v1/subscribers/8988/packages", "list_packages", "8988"),
        ("GET", "/v1/subscribers/8988/p1/usage", "get_usage", "8988 p1"),
        ("GET", "/v1/subscribers/issue-from-inventory/k1/usage", "get_usage", "issue-from-inventory k1"),
        ("DELETE", "/v1/subscribers/8988/packages", "remove_packages", "8988"),
    ],
)
async def test_a_literal_segment_wins_and_a_parameter_takes_what_is_left(
    world: World, method: str, path: str, route: str, value: str
) -> None:
    caller = await world.caller()
    answer = await ask(world.door, method, path.encode(), [(b"authorization", f"Bearer {caller.secret}".encode())])
    assert answer.status == 200
    assert answer.body == httpx.Response(200, json={"route": route, "value": value}).content


@pytest.mark.rule("7.5")
@pytest.mark.parametrize(
    "path", ["/nope", "/", "//", "", "/health/", "/v1/notes/", "/v1/notes//", "/v1//notes", "/v1/notes/a/b", "/HEALTH", "/v1"]
)
async def test_another_path_is_not_found(world: World, path: str) -> None:
    answer = await ask(world.door, "GET", path.encode())
    assert (answer.status, answer.code) == (404, "not_found")


@pytest.mark.rule("7.6")
@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("POST", "/health", "GET, HEAD"),
        ("PUT", "/v1/notes", "GET, HEAD, POST"),
        ("OPTIONS", "/v1/notes/x", "DELETE, GET, HEAD"),
        ("BREW", "/v1/notes/x", "DELETE, GET, HEAD"),
        ("GET", "/v1/pushes", "POST"),
        ("POST", "/v1/subscribers/issue-from-inventory/packages", "GET, HEAD"),
        # The path of a line's packages takes it, but this path is that of an issuance.
        ("DELETE", "/v1/subscribers/issue-from-inventory/packages", "GET, HEAD"),
    ],
)
async def test_another_method_is_refused_with_those_that_the_path_takes(world: World, method: str, path: str, allow: str) -> None:
    answer = await ask(world.door, method, path.encode())
    assert (answer.status, answer.code, answer.headers["allow"]) == (405, "method_not_allowed", allow)


@pytest.mark.parametrize(
    "path", [b"/v1/notes/%", b"/v1/notes/%4", b"/v1/notes/%zz", b"/v1/notes/%ff", b"/v1/notes/a%00b", b"/v1/notes/\xc3\xa9"]
)
async def test_a_path_that_cannot_be_decoded_is_a_bad_request(world: World, path: bytes) -> None:
    answer = await ask(world.door, "GET", path)
    assert (answer.status, answer.code) == (400, "invalid_request")


async def test_head_is_answered_like_get_without_the_body(http: httpx.AsyncClient) -> None:
    got, head = await http.get("/v1/notes/x"), await http.head("/v1/notes/x")
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == str(len(got.content))
    assert head.headers["content-type"] == got.headers["content-type"]


async def test_a_refusal_of_a_head_request_has_no_body_either(anonymous: httpx.AsyncClient) -> None:
    head = await anonymous.head("/nope")
    assert (head.status_code, head.content) == (404, b"")


async def test_the_body_of_a_405_teaches(anonymous: httpx.AsyncClient) -> None:
    answer = await anonymous.delete("/health")
    assert answer.json() == snapshot(
        {
            "error": "The path exists, but not with this method",
            "code": "method_not_allowed",
            "request_id": "req_01mcckg2g00000000000000004",
            "hint": "Use one of GET, HEAD",
        }
    )


def many(count: int) -> Catalogue:
    """A catalogue of plain and parametrised operations."""
    module = ModuleType("many")

    def declare(number: int) -> None:
        async def plain(ctx: Ctx, params: Nothing) -> None:
            """Nothing."""

        async def deep(ctx: Ctx, params: UsageRef) -> None:
            """Nothing."""

        plain.__name__, deep.__name__ = f"plain_{number}", f"deep_{number}"
        plain.__module__ = deep.__module__ = module.__name__
        setattr(module, plain.__name__, operation("GET", f"/v1/plain{number}")(plain))
        setattr(module, deep.__name__, operation("GET", f"/v1/deep{number}/{{iccid}}/of/{{key}}")(deep))

    for number in range(count):
        declare(number)
    return Catalogue([Toolset("many", "Many.", (module,))])


def steps(work: Callable[[], object]) -> list[str]:
    """Calls of functions, Python's own included: every look-up in a dictionary is one."""
    names: list[str] = []

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event in ("call", "c_call"):
            names.append(frame.f_code.co_name if event == "call" else repr(getattr(argument, "__name__", "")))

    gc.disable()  # a collection in the middle would count the callbacks that test tools hang on it
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
        gc.enable()
    return names


def test_the_last_of_many_operations_takes_as_many_steps_as_the_first_of_few() -> None:
    few, lot = OperationRouter(many(1).operations.values()), OperationRouter(many(100).operations.values())
    for first, last in ((b"/v1/plain0", b"/v1/plain99"), (b"/v1/deep0/a/of/b", b"/v1/deep99/a/of/b"), (b"/v1/deep0/a", b"/v1/deep99/a")):
        assert steps(lambda path=first: few.find("GET", path)) == steps(lambda path=last: lot.find("GET", path))


def test_every_operation_of_a_catalogue_is_found_by_its_own_path() -> None:
    router = OperationRouter(HTTP_OPERATIONS.operations.values())
    for declared in HTTP_OPERATIONS.operations.values():
        found = router.find(declared.method, declared.path.replace("{", "").replace("}", "").encode())
        assert found is not None
        assert found.route.operation is declared
        assert dict(found.path) == {name: name for name in found.route.names}


def test_a_path_of_nothing_but_slashes_ends_at_the_depth_of_the_table() -> None:
    router = OperationRouter(HTTP_OPERATIONS.operations.values())
    assert router.find("GET", b"/" * 8000) is None
    assert router.find("GET", b"/v1/subscribers" + b"/x" * 4000) is None
    with pytest.raises(MethodNotAllowed):
        router.find("PATCH", b"/v1/subscribers/x/packages")
