"""POSTs: never sent twice, and a connection is kept only when it can be."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from clients.http import HttpReply, Outbound, OutboundFailed, OutboundLimits
from tests.clients.webhooks.receiver import receiver, silence, status_answer

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi"


@asynccontextmanager
async def opened(seconds: float = 5):
    outbound = Outbound(OutboundLimits(total_seconds=seconds))
    try:
        yield outbound
    finally:
        await outbound.aclose()


async def post(outbound: Outbound, url: str, content: bytes = b"{}", **headers: str) -> HttpReply:
    return await outbound.exchange("POST", url, headers=headers, content=content)


async def request(reader: asyncio.StreamReader) -> bytes:
    return await reader.readuntil(b"\r\n\r\n") + await reader.readexactly(2)


async def twice(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(OK)
    await request(reader)
    writer.write(OK)


async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(OK)
    await request(reader)  # and hangs up


async def hints(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n" + OK)


async def two_answers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(OK + b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nforged")
    await silence(reader, writer)


async def until_closed(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.0 200 OK\r\n\r\nhi")


async def no_http(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"SMTP ready\r\n\r\n")


async def test_a_connection_serves_the_next_call() -> None:
    async with receiver(twice) as there, opened() as outbound:
        assert [(await post(outbound, there.url())).body for _ in range(2)] == [b"hi", b"hi"]
    assert there.connections == 1


async def test_a_call_that_a_kept_connection_swallowed_is_not_sent_again() -> None:
    async with receiver(once) as there, opened() as outbound:
        await post(outbound, there.url())
        with pytest.raises(OutboundFailed) as failed:
            await post(outbound, there.url())
    assert (failed.value.kind, there.connections) == ("network", 1)


async def test_what_comes_before_the_answer_is_no_answer() -> None:
    async with receiver(hints) as there, opened() as outbound:
        reply = await post(outbound, there.url())
    assert (reply.status, reply.body, dict(reply.headers)) == (200, b"hi", {"content-length": "2"})


async def test_an_answer_too_many_is_nobodys() -> None:
    async with receiver(two_answers) as there, opened() as outbound:
        assert [(await post(outbound, there.url())).body for _ in range(2)] == [b"hi", b"hi"]
    assert there.connections == 2


async def test_an_answer_may_end_with_its_connection() -> None:
    async with receiver(until_closed) as there, opened() as outbound:
        assert (await post(outbound, there.url())).body == b"hi"


async def test_what_is_not_http_is_a_failure() -> None:
    async with receiver(no_http) as there, opened() as outbound:
        with pytest.raises(OutboundFailed) as failed:
            await post(outbound, there.url())
    assert failed.value.kind == "protocol"


async def test_a_redirect_is_an_answer() -> None:
    async with receiver(status_answer("307 Temporary Redirect", "location: /elsewhere")) as there, opened() as outbound:
        assert (await post(outbound, there.url())).status == 307
    assert there.connections == 1


async def test_a_call_that_is_given_up_closes_its_connection() -> None:
    async with receiver(silence) as there, opened(0.05) as outbound:
        with pytest.raises(OutboundFailed) as failed:
            await post(outbound, there.url())
        await asyncio.wait_for(there.idle.wait(), 60)
    assert failed.value.kind == "timeout"


@pytest.mark.parametrize("value", ["a\r\nx-forged: 1", "a\nx-forged: 1", "a\rx-forged: 1", "a\0"])
async def test_a_header_is_one_line(value: str) -> None:
    async with receiver(status_answer("200 OK")) as there, opened() as outbound:
        with pytest.raises(ValueError, match="header"):
            await post(outbound, there.url(), tag=value)
    assert there.requests == []


async def test_credentials_in_an_address_are_sent_as_a_header() -> None:
    async with receiver(status_answer("200 OK")) as there, opened() as outbound:
        await post(outbound, there.url("u:p@127.0.0.1"))
    assert b"authorization: Basic dTpw" in there.requests[0].replace(b"Authorization", b"authorization")


@pytest.mark.filterwarnings("ignore:Sending a large body")  # larger than the buffers of the connection
async def test_an_answer_to_what_was_not_read_is_taken_and_the_connection_is_not_kept() -> None:
    done = asyncio.Event()
    seen = list[bytes]()

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 413 Too Large\r\ncontent-length: 0\r\n\r\n")
        await done.wait()
        writer.close()

    server = await asyncio.start_server(refuse, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    async with opened() as outbound:
        statuses = [(await post(outbound, url, b"x" * (32 << 20))).status, (await post(outbound, url)).status]
    done.set()
    server.close()
    await server.wait_closed()
    assert (statuses, len(seen)) == ([413, 413], 2)
