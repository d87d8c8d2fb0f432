"""The measurement of deliveries compares like with like."""

from benchmarks.names import HTTPX_CLOSING, HTTPX_POSTS, OURS_SQLITE, SENDER
from benchmarks.tables import Row
from benchmarks.webhooks import CONCURRENT, endpoints
from benchmarks.webhooks_page import aims, section
from storage.fair_share import IN_FLIGHT, IN_FLIGHT_OF_ORGANISATION


def test_the_limits_of_endpoints_and_organisations_leave_room_for_the_highest_concurrency() -> None:
    places = endpoints([8001, 8002])
    urls = [url for own in places.values() for url in own]
    assert len(urls) == len(set(urls)) >= 100
    room = sum(min(IN_FLIGHT * len(own), IN_FLIGHT_OF_ORGANISATION) for own in places.values())
    assert room >= max(CONCURRENT)


def made_up() -> list[Row]:
    """Two rounds in which this service delivers four times as much as httpx."""
    rates = {OURS_SQLITE: 4000, HTTPX_POSTS: 1000, HTTPX_CLOSING: 1000, SENDER: 8000}
    shared = {"case": "webhooks", "errors": 0, "seconds": 1.0, "cpu_us": 100.0}
    return [
        shared | {"contestant": name, "connections": concurrent, "round": number, "requests": rate}
        for concurrent in CONCURRENT
        for number in range(2)
        for name, rate in rates.items()
    ]


def test_the_page_says_what_was_reached_of_what_was_aimed_at() -> None:
    assert [(aim.reached, aim.met) for aim in aims(made_up())] == [("4.00", True), ("4.00", True), ("4.00", False), ("4.00", False)]
    assert section(made_up()).count("**4.00** (4.00 - 4.00)") == 4
