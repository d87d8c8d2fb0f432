"""Ports for servers that have to be told theirs before they listen, and for those that are started again on the same one."""

import os
import socket
from itertools import count

FIRST, LAST = 10_000, 32_000
"""Below those that the system gives to clients: none of another test's connections gets one while its server is away."""
TAKEN = count(os.getpid() * 97)


def free_port() -> int:
    """One on which nobody listens, and that this process has not given yet."""
    while True:
        port = FIRST + next(TAKEN) % (LAST - FIRST)
        with socket.socket() as found:
            try:
                found.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
