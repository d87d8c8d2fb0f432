"""The whole OpenAPI 3.1 document, built from the catalogue."""

from pydantic import TypeAdapter

from registry.catalogue import AnyOperation, Catalogue
from registry.errors import ConfirmTokenRequired
from registry.operation import Auth
from registry.ports import Site
from transports.openapi.components import Components
from transports.openapi.inputs import parameters, request_body
from transports.openapi.refusals import Fault, faults_of
from transports.openapi.responses import Refusals, confirm_challenge, is_document, success
from transports.openapi.schemas import Json, Wanted, schemas_of

INTERFACE_VERSION = "1.0.0"
TITLE = "Connectivity Reseller API"
DESCRIPTION = """Issue eSIMs and run a reseller business around them, over HTTP and JSON.

Every call carries `Authorization: Bearer <API key>`, except the public ones. A test plan (`test_global_1gb`, `test_eu_1gb`) issues a
test eSIM at once, on every tier, and touches no network. Every answer has a `Request-Id`; every refusal says which field, which
value, which rule, and what to do. The same operations are tools of the MCP server at {mcp_url}."""

SCHEMES: dict[str, Json] = {
    "bearerAuth": {
        "type": "http",
        "scheme": "bearer",
        "description": "An API key (`ak_...`), made by create_api_key, or the session token of a signed-in person.",
    },
    "internalBearer": {
        "type": "http",
        "scheme": "bearer",
        "description": "The deployment's internal key: calls of the network bridge and of the identity provider.",
    },
    "storefrontBearer": {
        "type": "http",
        "scheme": "bearer",
        "description": "The deployment's storefront key: calls of a shop's own server.",
    },
}
SECURITY: dict[Auth, list[Json]] = {
    Auth.BEARER: [{"bearerAuth": []}],
    Auth.SESSION: [{"bearerAuth": []}],
    Auth.INTERNAL: [{"internalBearer": []}],
    Auth.STOREFRONT: [{"storefrontBearer": []}],
    Auth.STOREFRONT_OPEN: [{"storefrontBearer": []}, {}],
    Auth.PUBLIC: [],
    Auth.SIGNATURE: [],
    Auth.BRIDGE: [{"internalBearer": []}, {}],
}


def build_document(catalogue: Catalogue, site: Site) -> Json:
    """The description of every operation."""
    operations = list(catalogue.operations.values())
    faults = {operation.id: faults_of(operation) for operation in operations}
    keyed, defined = schemas_of(wanted(operations, faults))
    components = Components(defined)
    refusals = Refusals(faults.values(), components, site.base_url)
    paths: Json = {}
    for operation in operations:
        made: Json = {"tags": [catalogue.toolset_of[operation.id]]} | describe(operation, keyed, components)
        made["responses"] |= refusals.of(faults[operation.id])
        paths.setdefault(operation.path, {})[operation.method.lower()] = made
    return {
        "openapi": "3.1.0",
        "info": {
            "title": TITLE,
            "version": INTERFACE_VERSION,
            "description": DESCRIPTION.format(mcp_url=site.mcp_url),
            "contact": {"name": "API reference", "url": site.docs_url},
            "license": {"name": "MIT License", "identifier": "MIT"},
        },
        "servers": [{"url": site.base_url, "description": "This deployment"}],
        "tags": [{"name": toolset.name, "description": toolset.summary} for toolset in catalogue.toolsets if toolset.operations()],
        "paths": paths,
        "components": components.used(paths) | {"securitySchemes": used_schemes(operations)},
    }


def used_schemes(operations: list[AnyOperation]) -> Json:
    """The security schemes that some operation takes."""
    names = {name for operation in operations for choice in SECURITY[operation.auth] for name in choice}
    return {name: scheme for name, scheme in SCHEMES.items() if name in names}


def wanted(operations: list[AnyOperation], faults: dict[str, list[Fault]]) -> list[Wanted]:
    """Every type the document may name: inputs as they are read, answers and errors as they are written."""
    found: list[Wanted] = []
    bodies: dict[str, type] = {ConfirmTokenRequired.__name__: ConfirmTokenRequired.body_type}
    for operation in operations:
        if operation.params.model_fields:
            found.append((f"in {operation.id}", "validation", TypeAdapter(operation.params)))
        if not is_document(operation):
            found.append((f"out {operation.id}", "serialization", TypeAdapter(operation.result)))
        bodies |= {told.refusal.__name__: told.refusal.body_type for told in faults[operation.id]}
    for body in dict.fromkeys(bodies.values()):
        found.append((f"error {body.__name__}", "serialization", TypeAdapter(body)))
    return found


def describe(operation: AnyOperation, keyed: dict[str, Json], components: Components) -> Json:
    """One operation, but for its refusals."""
    answer = keyed.get(f"out {operation.id}")
    wanted_input = keyed.get(f"in {operation.id}")
    responses: Json = {str(operation.status): success(operation, answer, components)}
    if operation.also is not None:
        responses[str(operation.also)] = responses[str(operation.status)]
    if operation.confirmable:
        responses["202"] = confirm_challenge(operation, components)
    made: Json = {
        "operationId": operation.id,
        "summary": operation.summary,
        "description": operation.description,
        "security": SECURITY[operation.auth],
    }
    found = parameters(operation, wanted_input, components)
    if found:
        made["parameters"] = found
    body = request_body(operation, wanted_input, components)
    if body is not None:
        made["requestBody"] = body
    return made | {"responses": responses}
