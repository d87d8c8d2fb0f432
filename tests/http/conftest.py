"""The service with the test operations, and a caller of the pro tier."""

from operations import system
from registry.catalogue import Catalogue, Toolset
from tests.http import notes
from tests.pages.site import open_site
from tests.stage import client_of, client_with, opened
from tests.world import open_world

HTTP_OPERATIONS = Catalogue([Toolset("system", "Health.", (system,)), Toolset("notes", "Notes.", (notes,))])


world = opened(open_world, HTTP_OPERATIONS)
site = opened(open_site)
"""The whole service with its pages."""
anonymous = client_with(None)
http = client_of()
"""A client with a key of the pro tier."""
