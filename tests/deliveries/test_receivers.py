"""However many organisations point their endpoints at one host, it is sent to no faster than its answers justify."""

from collections.abc import Sequence

import pytest

from clients.webhooks.receiver_url import rate_limited_host
from clients.webhooks.sender import WebhookSender
from registry.caller import Tier
from storage.engine.sql import Connection
from storage.outbox import AttemptOutcome, acknowledge_attempts, claim_deliveries
from storage.webhook_receivers import LONGEST_WAIT_MS, OPEN_BURST, OPEN_RATE, STRICT_BURST, STRICT_RATE, sweep_receivers
from tests.clients.webhooks.receiver import receiver, status_answer
from tests.deliveries.post_office import LOOPBACK, QUICK, PostOffice
from tests.deliveries.transaction import Opened, committed_event, fetched

NOW = 1_800_000_000_000
VICTIM, OTHER = "https://victim.example/a", "https://hooks.example.com/b"


def endpoints(connection: Connection, *urls: str, first: int = 0, proven: int = 0) -> None:
    """An endpoint of an organisation of its own for each URL, with one delivery that is due."""
    rows = [(f"{number:04}", url) for number, url in enumerate(urls, first)]
    made = ", ".join(f"('we_{name}', 'org_{name}', '{url}', 'enabled', 's', 0, 0, 1, {proven})" for name, url in rows)
    columns = "id, organisation, url, status, secret, replay_minute, replay_count, created, proven"
    committed_event(connection, f"insert into webhook_endpoint({columns}) values {made}")
    made = ", ".join(f"('evt_{name}', 'org_{name}', 'cni_1', 'esim.issued', 0, '{{}}', 'once {name}', 0, 0, 1)" for name, _ in rows)
    columns = "id, organisation, intent, type, livemode, data, dedup, retry_minute, retry_count, created"
    committed_event(connection, f"insert into event({columns}) values {made}")
    made = ", ".join(f"('dlv_{name}', 'evt_{name}', 'we_{name}', 'org_{name}', 0, 0, 0, {NOW}, {NOW})" for name, _ in rows)
    columns = "id, event_id, endpoint_id, organisation, state, attempt, attempts, due_ms, created_ms"
    committed_event(connection, f"insert into delivery({columns}) values {made}")


def taken(connection: Connection, now_ms: int, token: str = "lse_1") -> list[str]:
    """Endpoints that are sent to at this moment, all claims together."""
    found: list[str] = []
    while (batch := claim_deliveries(connection, token=f"{token}{len(found)}", now_ms=now_ms, most=50, host_of=rate_limited_host)).taken:
        found += [row.endpoint_id for row in batch.leased]
    return found


def outcomes(connection: Connection, names: Sequence[str], verdict: str, at_ms: int) -> None:
    """How the attempts that are under way ended."""
    leases = {
        row[0]: (row[1], row[2]) for row in fetched(connection, "select endpoint_id, id, lease from delivery where lease is not null")
    }
    acknowledge_attempts(
        connection,
        outcomes=[
            AttemptOutcome(
                leases[name][0], name, leases[name][1], at_ms, verdict, 1.0, "ok" if verdict == "ok" else "failed", None, "victim.example"
            )
            for name in names
        ],
    )


@pytest.mark.long
def test_endpoints_of_many_organisations_on_one_host_share_its_rate_and_others_wait_for_none_of_it(opened: Opened) -> None:
    with opened() as connection:
        endpoints(connection, *[VICTIM] * 300, OTHER)
        first = taken(connection, NOW)
        assert (len(first), "we_0300" in first) == (STRICT_BURST + 1, True)
        ((least, most, latest),) = fetched(connection, "select min(attempt), max(attempts), max(due_ms) from delivery where lease is null")
        assert (least, most) == (0, 0) and isinstance(latest, int) and NOW < latest <= NOW + LONGEST_WAIT_MS
        later = [len(taken(connection, NOW + second * 1000, f"lse_{second}_")) for second in range(1, 31)]
        assert sum(later) <= 30 * STRICT_RATE and later.count(1) >= 20


def test_what_waits_for_a_busy_host_is_sent_in_time_and_nothing_is_lost(opened: Opened) -> None:
    with opened() as connection:
        endpoints(connection, *[VICTIM] * 24)
        found = [name for second in range(90) for name in taken(connection, NOW + second * 1000, f"lse_{second}_")]
        assert sorted(set(found)) == sorted(f"we_{number:04}" for number in range(24))


def test_a_host_that_answers_earns_places_and_one_that_fails_loses_them(opened: Opened) -> None:
    with opened() as connection:
        endpoints(connection, *[VICTIM] * (3 * STRICT_BURST))
        outcomes(connection, taken(connection, NOW), "ok", NOW)
        assert fetched(connection, "select credit from webhook_receiver") == [(STRICT_BURST,)]
        assert fetched(connection, "select count(*) from webhook_endpoint where proven = 1") == [(STRICT_BURST,)]
        second = taken(connection, NOW + 3_000, "lse_b")
        assert len(second) > 3 * STRICT_RATE
        outcomes(connection, second, "status:404", NOW + 3_001)
        assert fetched(connection, "select credit from webhook_receiver") == [(max(0, STRICT_BURST - 2 * len(second)),)]


def test_endpoints_that_answer_are_not_slowed_by_others_that_fail_on_their_host(opened: Opened) -> None:
    with opened() as connection:
        endpoints(connection, *[VICTIM] * 100)
        endpoints(connection, *[VICTIM] * 150, first=100, proven=1)
        found = taken(connection, NOW)
        assert sum(name >= "we_0100" for name in found) == 150
        assert sum(name < "we_0100" for name in found) == STRICT_BURST


@pytest.mark.long
def test_even_a_host_that_takes_everything_has_a_bound(opened: Opened) -> None:
    with opened() as connection:
        endpoints(connection, *[VICTIM] * (OPEN_BURST + 3 * OPEN_RATE), proven=1)
        assert len(taken(connection, NOW)) == OPEN_BURST
        assert len(taken(connection, NOW + 1000, "lse_b")) <= OPEN_RATE


def test_hosts_that_nothing_is_sent_to_are_forgotten(opened: Opened) -> None:
    with opened() as connection:
        endpoints(connection, VICTIM)
        taken(connection, NOW)
        assert sweep_receivers(connection, before=NOW / 1000, most=10) == 0
        assert sweep_receivers(connection, before=NOW / 1000 + 60, most=10) == 1


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://Hooks.Example.COM/x?y", "hooks.example.com"),
        ("https://hooks.example.com:8443", "hooks.example.com"),
        ("https://bücher.example/", "xn--bcher-kva.example"),
        ("https://[2606:4700:4700:0::1111]/", "2606:4700:4700::1111"),
        ("http://127.0.0.1:8080/", None),
        ("http://127.1.2.3/", None),
        ("http://localhost:1/", None),
        ("http://[::1]:1/", None),
        ("https://127.example.com/", "127.example.com"),
    ],
)
def test_a_host_has_one_name_and_this_machine_none(url: str, host: str | None) -> None:
    assert rate_limited_host(url) == host


@pytest.mark.long
async def test_a_worker_sends_no_more_than_a_host_s_rate_whoever_s_events_they_are(office: PostOffice) -> None:
    async with receiver(status_answer("200 OK")) as there:
        sender = WebhookSender(office.clock, exempt=LOOPBACK, limits=QUICK, lookup=Everywhere())
        for _ in range(3):
            other = await office.world.caller(Tier.FREE)
            async with office.world.client(other.secret) as http:
                for _ in range(16):
                    url = f"https://victim.example:{there.port}/"
                    assert (await http.post("/v1/connectivity/webhook_endpoints", json={"url": url})).status_code == 201
            await office.emit(f"of {other.organisation}", organisation=other.organisation)
        worker = office.worker(sender=sender)
        assert await worker.step() == STRICT_BURST  # each fails in the handshake: the receiver speaks no TLS
        office.clock.advance(1)
        assert await worker.step() <= 1
        assert there.connections <= STRICT_BURST + 1
        await sender.aclose()


class Everywhere:
    """A name service in which every name is this machine."""

    async def __call__(self, host: str) -> list[str]:
        del host
        return ["127.0.0.1"]
