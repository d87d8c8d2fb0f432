"""A catalogue of lamps."""

from registry.catalogue import Catalogue, Toolset
from tests.openapi import declared
from transports.openapi.document import build_document
from transports.openapi.schemas import Json
from transports.reference.files import SITE

LAMPS = Catalogue([Toolset("lamps", "Light.", (declared,))])


def document() -> Json:
    return build_document(LAMPS, SITE)


def described(method: str, path: str) -> Json:
    found: Json = document()["paths"][path][method]
    return found
