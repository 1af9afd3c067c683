"""Sockets inside namespaces, for a process that is outside: a socket belongs to where it was made."""

from __future__ import annotations

import ctypes
import os
import socket
import struct
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from leeward.local.network.plan import End

_CLONE_NEWNET = 0x40000000
_SO_TIMESTAMPNS = 35
_SO_RCVBUFFORCE, _SO_SNDBUFFORCE = 33, 32
_TIMESPEC = struct.Struct("@ll")
_BUFFER = 32 << 20

Made = TypeVar("Made")


def within(end: End, make: Callable[[], Made]) -> Made:
    """The result of `make`, run by a thread inside the namespace of `end`. Raises OSError."""
    if end.path is None:
        return make()
    with ThreadPoolExecutor(1) as thread:  # of its own: it never comes back from there

        def inside() -> Made:
            enter(end)
            return make()

        return thread.submit(inside).result()


def enter(end: End) -> None:
    """Move this thread into the namespace of `end`, for good. Raises OSError."""
    space = os.open(str(end.path), os.O_RDONLY | os.O_CLOEXEC)
    try:
        if ctypes.CDLL(None, use_errno=True).setns(space, _CLONE_NEWNET) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(end.path))
    finally:
        os.close(space)


def datagrams(end: End) -> socket.socket:
    """A UDP socket on the address of `end` that tells when each datagram came in (see `receive`)."""

    def make() -> socket.socket:
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        made.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER)
        made.setsockopt(socket.SOL_SOCKET, _SO_SNDBUFFORCE, _BUFFER)
        made.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        made.bind((end.address, 0))
        return made

    return within(end, make)


def receive(at: socket.socket, size: int) -> tuple[bytes, int, tuple[str, int]] | None:
    """The next datagram, when the kernel got it (ns, as time.time_ns()), and its sender; None without one."""
    try:
        data, extra, _, sender = at.recvmsg(size, socket.CMSG_SPACE(_TIMESPEC.size))
    except BlockingIOError:
        return None
    seconds, nanoseconds = _TIMESPEC.unpack(extra[0][2])
    return data, seconds * 1_000_000_000 + nanoseconds, sender
