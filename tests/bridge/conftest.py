"""The webhook and the connectivity operations over one world, with all three ways in."""

from operations.bridge import notifications
from operations.connectivity import events, intents
from registry.catalogue import Catalogue, Toolset
from registry.ports import SharedSecrets
from tests.bridge.pushing import PUSH_SECRET
from tests.network_facts import INTERNAL
from tests.stage import caller_client, credential_client, opened
from tests.world import open_world

BRIDGE = Catalogue(
    [Toolset("bridge", "What the network tells.", (notifications,)), Toolset("connectivity", "Intents and events.", (intents, events))]
)


world = opened(open_world, BRIDGE, faultless=True, secrets=SharedSecrets(internal=INTERNAL, bridge=PUSH_SECRET))
http = caller_client()
bridge = credential_client(INTERNAL)
upstream = credential_client(None)
