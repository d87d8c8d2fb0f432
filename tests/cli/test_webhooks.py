"""`reseller webhooks`: events for a receiver on this machine, endpoints, and failed deliveries once more."""

import hashlib
import hmac
import json
import re
from collections.abc import Iterator
from pathlib import Path
from queue import Queue

import httpx
import pytest
from standardwebhooks import Webhook

from tests.cli.follower import FOLLOWER_SECONDS, following
from tests.cli.hook import Hook, listening
from tests.cli.reseller import Done, printed, refused, run_reseller
from tests.cli.terminal import at_terminal
from tests.harness.processes import Running, running
from transports.cli.terminal import Failure, parse_moment

OPEN = {"SERVICE_BURST_LIMIT": "false", "SERVICE_WEBHOOK_ALLOW_NETS": "127.0.0.0/8"}
GIVEN = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
Delivered = tuple[int, dict[str, str], bytes]


@pytest.fixture(scope="module")
def server(place: Path) -> Iterator[Running]:
    """Its endpoints may be on this machine, so that real deliveries can be compared."""
    with running(place / "data", OPEN) as server:
        yield server


@pytest.fixture
def there(server: Running) -> dict[str, str]:
    return {"RESELLER_URL": server.base_url, "RESELLER_API_KEY": str(server.api_key)}


@pytest.fixture
def http(server: Running) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"{server.base_url}/v1/connectivity", headers={"Authorization": f"Bearer {server.api_key}"}) as http:
        yield http


def registered(http: httpx.Client, hook: Hook) -> tuple[str, str]:
    made = http.post("/webhook_endpoints", json={"url": hook.url}).json()
    return made["id"], made["secret"]


def taken(seen: Queue[Delivered], count: int) -> dict[str, Delivered]:
    found = [seen.get(timeout=FOLLOWER_SECONDS) for _ in range(count)]
    return {headers["webhook-id"]: (status, headers, body) for status, headers, body in found}


@pytest.mark.long
def test_forwarded_events_are_the_bytes_of_real_deliveries_and_verify(place: Path, there: dict[str, str], http: httpx.Client) -> None:
    with listening() as real, listening() as mine:
        endpoint, secret = registered(http, real)
        with following("webhooks", "listen", "--forward-to", mine.url, "--every", "0.2", cwd=place, **there) as listen:
            told, _, own = listen.line().partition(": ")
            assert (told, own[:6]) == ("signing secret", "whsec_") and own != secret
            listen.told("following the events of ")
            printed("trigger", "usage.threshold_reached", "--percent", "80", cwd=place, **there)
            forwarded, delivered = taken(mine.seen, 3), taken(real.seen, 3)
            lines = [listen.line() for _ in range(3)]
            assert listen.interrupted() == (0, [])
        http.delete(f"/webhook_endpoints/{endpoint}")
    assert forwarded.keys() == delivered.keys()
    for event, (_, headers, body) in forwarded.items():
        assert Webhook(own).verify(body, headers) == json.loads(body)
        stamp, _, signature = headers["connectivity-signature"].partition(",v1=")
        signed = f"{headers['webhook-timestamp']}.".encode() + body
        assert (stamp, signature) == (f"t={headers['webhook-timestamp']}", hmac.digest(own.encode(), signed, hashlib.sha256).hex())
        _, other, same = delivered[event]
        assert (body, headers.keys(), headers["user-agent"]) == (same, other.keys(), other["user-agent"])
        assert Webhook(secret).verify(same, other)
    assert [re.sub(r"\d+ ms", "N ms", line) for line in lines] == [
        f"{json.loads(forwarded[event][2])['type']} {event} -> 204 (N ms)" for event in sorted(forwarded)
    ]


def test_without_an_address_it_shows_what_it_would_send(place: Path, there: dict[str, str]) -> None:
    printed("trigger", "esim.issued", cwd=place, **there)
    words = ("webhooks", "listen", "--last", "1", "--count", "1")
    shown = printed(*words, cwd=place, RESELLER_WEBHOOK_SECRET=GIVEN, **there)
    head, body = shown.rstrip("\n").split("\n\n")
    headers = dict(line.split(": ", 1) for line in head.splitlines())
    assert list(headers) == [
        *("webhook-id", "webhook-timestamp", "webhook-signature", "Connectivity-Signature", "content-type", "user-agent"),
    ]
    assert Webhook(GIVEN).verify(body, headers) == json.loads(body)
    assert printed(*words, "--secret", GIVEN, cwd=place).splitlines()[-2] == body  # the same from the local database


def test_a_receiver_that_fails_is_shown_and_the_next_event_goes_on(place: Path, there: dict[str, str]) -> None:
    printed("trigger", "esim.issued", cwd=place, **there)
    words = ("webhooks", "listen", "--last", "1", "--count", "1", "--secret", GIVEN, "--forward-to")
    with listening() as hook:
        hook.status = 500
        assert re.fullmatch(r"esim\.issued evt_\w+ -> 500 \(\d+ ms\)\n", printed(*words, hook.url, cwd=place, **there))
        url = hook.url
    assert re.fullmatch(r"esim\.issued evt_\w+ -> refused \(\d+ ms\)\n", printed(*words, url, cwd=place, **there))


@pytest.mark.parametrize("url", ["localhost:3000", "ftp://127.0.0.1/", "http://", "http://[::1", "http://127.0.0.1:99999/"])
def test_an_address_that_nothing_can_be_sent_to_is_refused(url: str, place: Path) -> None:
    rule = "must be an http:// or https:// URL, for example http://127.0.0.1:3000/webhooks"
    assert refused("webhooks", "listen", "--forward-to", url, cwd=place) == (2, f"--forward-to {url}: {rule}\n")


def test_a_secret_that_cannot_sign_is_refused_and_not_repeated(place: Path) -> None:
    code, message = refused("webhooks", "listen", "--secret", "whsec_%%%hidden", cwd=place)
    assert (code, message) == (2, "--secret: A signing secret is whsec_ and base64 of random bytes; this one is not.\n")


def failed_delivery(place: Path, there: dict[str, str], http: httpx.Client, hook: Hook) -> tuple[str, str, str]:
    """Endpoint, its secret and the event that it refused for good; the endpoint takes events again."""
    endpoint, secret = registered(http, hook)
    hook.status = 410
    printed("trigger", "esim.issued", cwd=place, **there)
    _, event = hook.take(secret)
    while http.post(f"/webhook_endpoints/{endpoint}/replay", json={}).status_code != 409:  # until the refusal is written down
        continue
    hook.status = 204
    assert http.post(f"/webhook_endpoints/{endpoint}/enable").status_code == 200
    return endpoint, secret, event


def test_what_failed_since_a_time_is_sent_again(place: Path, there: dict[str, str], http: httpx.Client) -> None:
    with listening() as hook:
        endpoint, secret, event = failed_delivery(place, there, http, hook)
        assert json.loads(printed("webhooks", "replay", endpoint, "--since", "1h", cwd=place, **there))["replayed"] == 1
        assert hook.take(secret) == (204, event)
        code, shown = at_terminal("webhooks", "replay", endpoint, cwd=place, settings=there)
        assert (code, shown) == (0, "no failed deliveries are on the way again, and no waiting ones now\r\n")
        listed = json.loads(printed("webhooks", "list", cwd=place, **there))["data"]
        assert [row["id"] for row in listed] == [endpoint]
        http.delete(f"/webhook_endpoints/{endpoint}")


def test_one_delivery_is_sent_again_though_it_had_arrived(place: Path, there: dict[str, str], http: httpx.Client) -> None:
    with listening() as hook:
        endpoint, secret = registered(http, hook)
        printed("trigger", "esim.issued", cwd=place, **there)
        _, event = hook.take(secret)
        [delivery] = [row["id"] for row in http.get(f"/events/{event}/deliveries").json()["data"]]
        while http.get(f"/events/{event}/deliveries").json()["data"][0]["state"] != "delivered":
            continue
        words = ("webhooks", "replay", endpoint, "--delivery", delivery)
        code, shown = at_terminal(*words, cwd=place, settings=there)
        assert (code, shown) == (0, f"{delivery} is on the way now\r\n")
        assert hook.take(secret) == (204, event)
        code, message = refused(*words, "--since", "1h", cwd=place, **there)
        assert code == 1 and "[invalid_request]" in message
        http.delete(f"/webhook_endpoints/{endpoint}")


def test_an_endpoint_that_is_not_there_is_told_with_the_next_thing_to_do(place: Path, there: dict[str, str]) -> None:
    code, message = refused("webhooks", "replay", "we_none", "--since", "2h", cwd=place, **there)
    assert code == 1
    assert message.splitlines()[1] == "  list_connectivity_webhook_endpoints shows the ids"


NOW = 1_795_166_400.0


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        *(("90s", NOW - 90), ("30m", NOW - 1800), ("2h", NOW - 7200), ("1d", NOW - 86_400), ("2w", NOW - 1_209_600)),
        *(("999999d", 0.0), ("1795160000", 1_795_160_000.0), ("2026-11-20T09:00:00Z", 1_795_165_200.0)),
        ("2026-11-20T10:00:00+01:00", 1_795_165_200.0),
    ],
)
def test_a_time_is_given_as_such_or_by_how_long_ago_it_was(text: str, seconds: float) -> None:
    assert parse_moment("--since", text, NOW) == seconds


@pytest.mark.parametrize("text", ["", "2 h", "yesterday", "2h30m", "-5m", "2026-11-20", "2026-11-20T09:00:00", "1e9"])
def test_a_time_that_is_none_is_refused_with_the_ways_to_give_one(text: str) -> None:
    with pytest.raises(Failure, match=r"must be Unix seconds, .*30m, 2h, 1d"):
        parse_moment("--since", text, NOW)


def test_a_time_that_has_not_come_yet_is_refused(place: Path) -> None:
    done: Done = run_reseller("webhooks", "replay", "we_1", "--since", "2099-01-01T00:00:00Z", cwd=place)
    assert done.returncode == 2 and "has not come yet" in done.stderr
