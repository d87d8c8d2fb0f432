"""uvicorn's httptools protocol with what it lacks: deadlines for the receipt of a request, a cap on its head, our error bodies.

uvicorn has a keep-alive timer only, and every byte restarts it: a client that sends one byte a second holds its connection for ever.
A request that arrives in one packet costs no timer here.
"""

import asyncio
import http
from collections.abc import Callable, Iterable
from enum import Enum
from functools import partial
from typing import TypeAlias, cast
from weakref import ref

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from registry.answer import refusal_reply
from registry.errors import BadRequest, HeadersTooLarge, Refusal, RequestTimeout, UriTooLong
from registry.ids import Ids
from transports.http.asgi import STATE_OVERLOADED, STATE_REQUEST_ID, STATE_SEND_WHOLE, STATE_TIMED_OUT, Headers, Overloaded
from transports.http.connections import Connections, Deadlines
from transports.http.request import MOST_HEADERS
from transports.http.response import header_list

HTTP_HEAD = b"HTTP/1.1 "
COPY_LIMIT_BYTES = 65_536
"""Beyond that a copy costs more than the system call it saves."""


class HeadJoiningTransport(asyncio.Transport):
    """uvicorn writes head and body by themselves, which are two system calls and two packets for one small answer.

    A head waits for the next write, though never beyond the turn of the loop in which it was written: when the first piece of an answer
    takes its time, the head is sent without it.
    """

    def __init__(self, inner: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._inner, self._loop = inner, loop
        self._head = b""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Hold a head; anything else goes at once, behind the head that waits."""
        head, self._head = self._head, b""
        if isinstance(data, bytes) and not head and data.startswith(HTTP_HEAD):
            self._head = data
            self._loop.call_soon(self._flush)
        elif len(data) <= COPY_LIMIT_BYTES:
            self._inner.write(head + data if head else data)
        else:
            if head:
                self._inner.write(head)
            self._inner.write(data)

    def write_whole(self, head: bytes, body: bytes) -> None:
        """A whole answer. None waits in front of it: the one before was complete."""
        if len(body) <= COPY_LIMIT_BYTES:
            self._inner.write(head + body)
        else:
            self._inner.write(head)
            self._inner.write(body)

    def _flush(self) -> None:
        head, self._head = self._head, b""
        if head and not self._inner.is_closing():  # the client may have gone since: uvloop would raise
            self._inner.write(head)

    def close(self) -> None:
        self._flush()
        self._inner.close()

    def abort(self) -> None:
        self._head = b""
        self._inner.abort()

    def write_eof(self) -> None:
        self._flush()
        self._inner.write_eof()

    def get_write_buffer_size(self) -> int:
        """What is not yet sent, the head that waits included."""
        return self._inner.get_write_buffer_size() + len(self._head)

    # All else that uvicorn and the protocol ask of a transport; what they did not ask so far fails loudly in asyncio.Transport.

    def can_write_eof(self) -> bool:
        return self._inner.can_write_eof()

    def is_closing(self) -> bool:
        return self._inner.is_closing()

    def pause_reading(self) -> None:
        self._inner.pause_reading()

    def resume_reading(self) -> None:
        self._inner.resume_reading()

    def get_extra_info(self, name: str, default: object = None) -> object:
        return self._inner.get_extra_info(name, default)


STATUS_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}".encode() for status in http.HTTPStatus}
CLOSE_HEADER = (b"connection", b"close")


def answer_head(status: int, headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    return b"\r\n".join([STATUS_LINES[status], *[b"%b: %b" % header for header in headers], b"", b""])


async def write_whole_answer(
    of: "ref[RequestResponseCycle]", transport: HeadJoiningTransport, status: int, headers: Headers, body: bytes
) -> None:
    """What `send` would do with the start and the only piece of an answer, in one step. The headers are ours and say the length.

    What uvicorn sends with every answer (RFC 9110 6.6.1: Date) stands before them. The request holds this, and so does not keep itself
    alive: it is gone with its answer, and leaves nothing to the collector.
    """
    cycle = of()
    if cycle is None:
        return
    if cycle.flow.write_paused and not cycle.disconnected:
        await cycle.flow.drain()
    if cycle.disconnected:
        return
    cycle.response_started, cycle.waiting_for_100_continue = True, False
    if CLOSE_HEADER in headers:
        cycle.keep_alive = False
    elif not cycle.keep_alive:
        headers = [*headers, CLOSE_HEADER]
    transport.write_whole(answer_head(status, cycle.default_headers + headers), body)
    cycle.response_complete = True
    cycle.message_event.set()
    if not cycle.keep_alive:
        cycle.transport.close()
    cycle.on_response()


def raw_answer(refusal: Refusal, request_id: str, always: Headers) -> bytes:
    """A whole HTTP/1.1 answer that ends its connection; `always` are the headers that the server adds to every answer."""
    reply = refusal_reply(refusal, request_id)
    headers = [(name, value) for name, value in header_list(reply, request_id, private=True) if name != CLOSE_HEADER[0]]
    return answer_head(reply.status, [*always, *headers, CLOSE_HEADER]) + reply.body


LINGER_SECONDS = 1.0
RefusalReport: TypeAlias = Callable[[str, Refusal], None]


class RequestPart(Enum):
    """What has to arrive next."""

    NOTHING = "nothing"
    HEAD = "head"
    BODY = "body"


class DeadlineProtocol(HttpToolsProtocol):
    """One connection. A part that is complete when its packet has been parsed never gets a timer."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, object],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        deadlines: Deadlines,
        ids: Ids,
        refused: RefusalReport,
        connections: Connections,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._deadlines, self._ids, self._refused, self._connections = deadlines, ids, refused, connections
        self.limit_concurrency = None  # uvicorn's own answer is not our error body
        self._timer: asyncio.TimerHandle | None = None
        self._part, self._changed = RequestPart.HEAD, False
        self._in_head, self._head_bytes, self._url_too_long = False, 0, False
        self._ending = False
        self._stall: asyncio.TimerHandle | None = None
        self._unsent = 0
        self._paused_at, self._at_pause = 0.0, 0
        self._waited, self._taken = 0.0, 0

    def connection_made(self, transport: asyncio.Transport) -> None:
        self._joined = HeadJoiningTransport(transport, self.loop)
        super().connection_made(self._joined)
        refusal = self._connections.opened(self, self.client[0] if self.client else "")
        if self._connections.is_of_proxy(self):
            self.timeout_keep_alive = self._deadlines.keep_alive_of_proxies
        if refusal is None:
            self._arm()
        else:
            self._refuse(refusal)

    def connection_lost(self, exc: Exception | None) -> None:
        self._disarm()
        if self._stall is not None:
            self._stall.cancel()
        self._connections.closed(self)
        super().connection_lost(exc)

    @property
    def is_idle(self) -> bool:
        """No request is being received or answered; one whose head has not come whole is none."""
        return self._part is not RequestPart.BODY and not self.pipeline and self._answering() is None

    def make_way(self) -> None:
        """End an idle connection."""
        self._ending = True
        self.transport.close()

    def data_received(self, data: bytes) -> None:
        """Feed the parser, then set the deadline of whatever is incomplete."""
        if self._ending:
            return
        self._changed = False
        super().data_received(data)
        if self._ending or self.transport.is_closing():
            return
        if self._in_head and not self._changed:  # the packet a head begins in may hold the end of another request
            self._head_bytes += len(data)
            if self._head_bytes > self._deadlines.head_bytes:
                self._refuse(HeadersTooLarge("The request line and headers are too large", hint="Send fewer or shorter headers"))
                return
        if self._changed:
            self._disarm()
            self._arm()
        elif self._part is RequestPart.NOTHING:  # bytes between requests that begin none: they stopped uvicorn's keep-alive timer
            self._part = RequestPart.HEAD
            self._arm()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._part, self._changed = RequestPart.HEAD, True
        self._in_head, self._head_bytes = True, 0

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        if len(self.url) > self._deadlines.url_bytes:
            self._url_too_long = True
            raise ValueError  # ends the parsing

    def on_header(self, name: bytes, value: bytes) -> None:
        # After the head these are trailers: uvicorn would add them to the headers of the request.
        # One more than are taken is kept, so that the door refuses the request.
        if self._in_head and len(self.headers) <= MOST_HEADERS:
            super().on_header(name, value.strip(b" \t"))  # httptools keeps trailing whitespace

    def on_headers_complete(self) -> None:
        state, limit = self.server_state, self._connections.most
        requested = cast(dict[str, object], self.scope.get("state", {}))
        if len(self._connections) > limit or len(state.tasks) >= limit:
            requested[STATE_OVERLOADED] = Overloaded()
        elif self._connections.only_probes and self in self._connections.only_probes:
            requested[STATE_OVERLOADED] = self._connections.only_probes[self]
        super().on_headers_complete()  # raises for targets that are not paths: then the head was never complete
        if self._connections.draining:
            self.cycle.keep_alive = False
        requested[STATE_SEND_WHOLE] = partial(write_whole_answer, ref(self.cycle), self._joined)
        self._part, self._changed, self._in_head = RequestPart.BODY, True, False

    def on_message_complete(self) -> None:
        self._part, self._changed = RequestPart.NOTHING, True
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """What the parser refused; its own words stay out of the answer."""
        del msg
        if self._url_too_long:
            self._refuse(UriTooLong("The request target is too long", hint="Send long input in the body"))
            return
        self._refuse(BadRequest("The request is not valid HTTP/1.1", hint="Check the request line, the headers and the body's framing"))

    def pause_writing(self) -> None:
        """The client reads more slowly than we write: from now on it must read something in every interval, and so much on average."""
        super().pause_writing()
        self._paused_at, self._at_pause = self.loop.time(), self.transport.get_write_buffer_size()
        self._watch_progress()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._count_waiting()
        self._watch_progress()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._waited, self._taken = 0.0, 0
        self._watch_progress()  # closing a connection waits for what is unsent, however long the client takes

    def _watch_progress(self) -> None:
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None
        self._unsent = self.transport.get_write_buffer_size()
        if self._unsent:
            self._stall = self.loop.call_later(self._deadlines.stall, self._check_progress)

    def _check_progress(self) -> None:
        if self.transport.get_write_buffer_size() >= self._unsent:
            self._abandon()
            return
        if self.flow.write_paused:
            self._count_waiting()
        self._watch_progress()

    def _count_waiting(self) -> None:
        """How long we have waited for the client, and what it read in that time: what an application takes is not counted against it."""
        now, unsent, deadlines = self.loop.time(), self.transport.get_write_buffer_size(), self._deadlines
        self._waited += now - self._paused_at
        self._taken += self._at_pause - unsent
        self._paused_at, self._at_pause = now, unsent
        if self._taken + deadlines.credit < deadlines.rate * self._waited:
            self._abandon()
        elif self._waited > 4 * deadlines.stall:  # what was read fast long ago does not count for ever
            self._waited, self._taken = 0.0, 0

    def _abandon(self) -> None:
        """Ends the connection of a client that does not read; in the next turn of the loop, since the transport may be writing now."""
        self._connections.ended["slow"] += 1
        self._waited, self._taken = 0.0, 0
        self.loop.call_soon(self.transport.abort)

    def _arm(self) -> None:
        if self._part is not RequestPart.NOTHING:
            seconds = self._deadlines.headers if self._part is RequestPart.HEAD else self._deadlines.body
            self._timer = self.loop.call_later(seconds, self._expired)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _answering(self) -> RequestResponseCycle | None:
        """The newest request whose answer is not complete."""
        cycle = cast(RequestResponseCycle | None, self.cycle)  # None before the first request, whatever uvicorn declares
        return None if cycle is None or cycle.response_complete else cycle

    def _expired(self) -> None:
        """The deadline has passed; an answer under way is not cut because the next request starts slowly."""
        self._timer = None
        if self.flow.read_paused or (self._part is RequestPart.HEAD and self._answering() is not None):
            self._arm()  # it is we who do not read, or the answer comes first
        elif self._part is RequestPart.HEAD and not self._in_head:
            self.transport.close()  # nothing of a request has come: there is nobody to tell
        else:
            self._refuse(RequestTimeout("The request did not arrive in time", hint="Send the request again, at once and whole"))

    def _refuse(self, refusal: Refusal) -> None:
        """Answer if no other answer has begun or is owed, and end the connection."""
        if self._ending or self.transport.is_closing():
            return
        self._ending = True
        late, cycle = isinstance(refusal, RequestTimeout), self._answering()
        if cycle is not None and self._part is RequestPart.HEAD:
            cycle.keep_alive = False  # the next request is not one: the answers that are owed come first, then the end
            return
        self._disarm()
        if self._part is RequestPart.HEAD:
            request_id = self._ids.new("req_")
            self.transport.write(raw_answer(refusal, request_id, self.server_state.default_headers))
            self._refused(request_id, refusal)
        elif cycle is not None and not cycle.response_started and not self.pipeline:
            state = cast(dict[str, object], cycle.scope.get("state", {}))
            state[STATE_TIMED_OUT] = late
            self.transport.write(
                raw_answer(refusal, str(state.get(STATE_REQUEST_ID) or self._ids.new("req_")), self.server_state.default_headers)
            )
            cycle.disconnected = True  # the application reads the end of its client, and what it still sends goes nowhere
            cycle.message_event.set()
        elif cycle is not None:
            late = True  # in the middle of another answer: whoever writes it must not meet an end of file
        if late:
            self.transport.close()
        else:
            self._linger()

    def _linger(self) -> None:
        """Closing with unread bytes resets the connection and loses the answer: say that we are done, and discard for a moment."""
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._timer = self.loop.call_later(LINGER_SECONDS, self.transport.close)
