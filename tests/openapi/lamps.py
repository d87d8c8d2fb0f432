"""A catalogue of lamps."""

from registry.catalogue import Catalogue, Toolset
from tests.openapi import declared
from tests.openapi.written import COMMITTED_SITE
from transports.openapi.document import build_openapi
from transports.openapi.schemas import OpenapiJson

LAMPS = Catalogue([Toolset("lamps", "Light.", (declared,))])


def document() -> OpenapiJson:
    return build_openapi(LAMPS, COMMITTED_SITE)


def described(method: str, path: str) -> OpenapiJson:
    found: OpenapiJson = document()["paths"][path][method]
    return found
