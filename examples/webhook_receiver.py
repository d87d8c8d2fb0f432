"""A webhook receiver with the standard library alone: verify, deduplicate, answer fast.

    WEBHOOK_SECRETS=whsec_... python examples/webhook_receiver.py 8080

Register its public https address with POST /v1/connectivity/webhook_endpoints; the answer holds the secret. During a rotation give
both secrets, separated by a comma. To try it on one machine, start the service with SERVICE_WEBHOOK_ALLOW_NETS=127.0.0.0/8 and
register http://127.0.0.1:8080/.
"""

import base64
import hashlib
import hmac
import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, HTTPServer

TOLERANCE_SECONDS = 300
MOST_BYTES = 64 * 1024
ABOUT = ("intent", "order", "iccid", "invoice", "report", "id")


def is_genuine(secrets: Sequence[str], headers: Mapping[str, str], body: bytes, now: float) -> bool:
    """Standard Webhooks: HMAC-SHA256 over `{id}.{timestamp}.{body}`, over the bytes as they came, within five minutes."""
    stamp = headers.get("webhook-timestamp", "")
    if not (stamp.isascii() and stamp.isdigit()) or abs(now - int(stamp)) > TOLERANCE_SECONDS:
        return False
    signed = f"{headers.get('webhook-id', '')}.{stamp}.".encode() + body
    given = [member.removeprefix("v1,") for member in headers.get("webhook-signature", "").split(" ") if member.startswith("v1,")]
    keys = [base64.b64decode(secret.removeprefix("whsec_")) for secret in secrets]
    expected = [base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode() for key in keys]
    # compare_digest takes the same time whether the first or the last character differs.
    return any(hmac.compare_digest(one.encode(), other.encode()) for one in expected for other in given)


class Receiver(HTTPServer):
    """Remembers which events it has seen: a delivery may come more than once. A real one keeps this in its database."""

    def __init__(self, port: int, secrets: Sequence[str]) -> None:
        super().__init__(("127.0.0.1", port), Hook)
        self.secrets = secrets
        self.seen: set[str] = set()

    def take(self, headers: Mapping[str, str], body: bytes) -> int:
        """The status to answer: 204 for what is genuine, new or not; 401 for what is not."""
        if not is_genuine(self.secrets, headers, body, time.time()):
            return 401
        event = json.loads(body)
        if event["id"] not in self.seen:
            self.seen.add(event["id"])
            about = next((str(event["data"][name]) for name in ABOUT if event["data"].get(name)), "")
            test = " (a test)" if event.get("test") else ""
            print(f"{event['type']} {event['id']} {about}{test}", flush=True)
        return 204


class Hook(BaseHTTPRequestHandler):
    """One request."""

    def do_POST(self) -> None:
        """Read no more than a delivery may have, and answer without doing the work first."""
        server = self.server
        assert isinstance(server, Receiver)
        length = self.headers.get("content-length", "")
        if not length.isdigit() or int(length) > MOST_BYTES:
            self.send_error(413)
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.send_response_only(server.take(headers, self.rfile.read(int(length))))
        self.end_headers()


def main() -> None:
    """Listen until interrupted."""
    secrets = [secret for secret in os.environ.get("WEBHOOK_SECRETS", "").split(",") if secret]
    if not secrets:
        sys.exit("Set WEBHOOK_SECRETS to the secret that creating the endpoint answered.")
    port = sys.argv[1] if len(sys.argv) > 1 else "8080"
    try:
        receiver = Receiver(int(port), secrets)
    except (ValueError, OverflowError, OSError) as error:
        sys.exit(f"It cannot listen on port {port} ({error}): give another.")
    print(f"listening on http://127.0.0.1:{receiver.server_port}/", flush=True)
    try:
        receiver.serve_forever()
    except KeyboardInterrupt:
        receiver.server_close()


if __name__ == "__main__":
    main()
