"""A process that sends the requests of one attack over some connections, each its next one as soon as it is answered."""

import asyncio
import pickle
import sys
import time
from collections import Counter
from collections.abc import Sequence

ANSWER_SECONDS = 20.0
Statuses = Counter[int]


async def answered(reader: asyncio.StreamReader) -> int:
    """The status of the next answer, which is read to its end."""
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    length = head.partition(b"content-length:")[2].partition(b"\r\n")[0]
    if length:
        await reader.readexactly(int(length))
    elif b"transfer-encoding: chunked" in head:
        while size := int((await reader.readuntil(b"\r\n")).strip(), 16):
            await reader.readexactly(size + 2)
        await reader.readexactly(2)
    return int(head[9:12])


async def connection(port: int, address: str, requests: Sequence[bytes], first: int, ends: float) -> Statuses:
    """One connection, made anew whenever the server closes it."""
    statuses, place = Statuses(), first
    while time.monotonic() < ends:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0))
        except OSError:
            await asyncio.sleep(0.01)
            continue
        try:
            while time.monotonic() < ends:
                writer.write(requests[place % len(requests)])
                place += 1
                async with asyncio.timeout(ANSWER_SECONDS):
                    statuses[await answered(reader)] += 1
        except (OSError, EOFError, TimeoutError, asyncio.LimitOverrunError):
            statuses[0] += 1
        finally:
            writer.transport.abort()  # closing would wait for what the server does not read
    return statuses


async def attack(port: int, addresses: Sequence[str], connections: int, requests: Sequence[bytes], seconds: float) -> Statuses:
    """All connections of all addresses; each begins with another of the requests."""
    ends = time.monotonic() + seconds
    every = [(address, number) for address in addresses for number in range(connections)]
    found = await asyncio.gather(*(connection(port, address, requests, n, ends) for n, (address, _) in enumerate(every)))
    return sum(found, Statuses())


def main() -> None:
    """Attacks as they are read from stdin, one after the other; the statuses of each go to stdout. Nothing slow is imported here."""
    while True:
        try:
            wanted = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        pickle.dump(asyncio.run(attack(*wanted)), sys.stdout.buffer)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
