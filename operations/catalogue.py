"""The whole service on one page."""

from operations import health
from registry.catalogue import Catalogue, Toolset

CATALOGUE = Catalogue(
    [
        Toolset("system", "Is the service up, and which build is it.", (health,)),
    ]
)
