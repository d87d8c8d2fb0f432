"""The service with the test operations, and a caller of the pro tier."""

from operations import system
from registry.catalogue import Catalogue, Toolset
from tests.http import notes
from tests.pages.site import open_site
from tests.stage import caller_client, credential_client, opened
from tests.world import open_world

HTTP_OPERATIONS = Catalogue([Toolset("system", "Health.", (system,)), Toolset("notes", "Notes.", (notes,))])


world = opened(open_world, HTTP_OPERATIONS)
site = opened(open_site)
"""The whole service with its pages."""
anonymous = credential_client(None)
http = caller_client()
"""A client with a key of the pro tier."""
