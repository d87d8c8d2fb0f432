"""Issue a test eSIM with the generated client; run by the Python it was generated for, in the client's folder."""

import json
import sys

from connectivity_reseller_api_client import AuthenticatedClient  # pyright: ignore[reportMissingImports]  # generated
from connectivity_reseller_api_client.api.connectivity import create_connectivity_intent, get_connectivity_intent  # pyright: ignore[reportMissingImports]  # generated
from connectivity_reseller_api_client.models import Error, Intent, IntentRequest  # pyright: ignore[reportMissingImports]  # generated

base_url, key = sys.argv[1:]
client = AuthenticatedClient(base_url=base_url, token=key, raise_on_unexpected_status=True)
first = create_connectivity_intent.sync(client=client, body=IntentRequest(plan="test_eu_1gb"), idempotency_key="generated-1")
again = create_connectivity_intent.sync(client=client, body=IntentRequest(plan="test_eu_1gb"), idempotency_key="generated-1")
assert isinstance(first, Intent)
read = get_connectivity_intent.sync(id=first.id, client=client)
missing = get_connectivity_intent.sync(id="cni_" + "0" * 26, client=client)
assert isinstance(missing, Error)
json.dump(
    {"status": first.status, "same": first == again == read, "lpa": first.esim.activation_code[:6], "missing": missing.code}, sys.stdout
)
