"""Connections as `ss` tells them."""

from __future__ import annotations

import socket
import time

from leeward.adapters.tcp import Connection, Counted, connections, parse

LINES = """\
0      0      127.0.0.1:54266 127.0.0.1:44291 bbr wscale:10,10 rto:204 bytes_sent:100 bytes_acked:90 segs_out:5
0      2500   [::ffff:198.18.1.11]:40000 [::ffff:198.18.1.12]:6701 cubic rto:204 bytes_acked:123456 notsent:2000
0      0      [fe80::1]:22 [fe80::2]:50000 cubic rto:204
State Recv-Q Send-Q Local Address:Port

"""


def test_addresses_of_both_families_and_counters_are_read():
    assert parse(LINES) == {
        Connection("127.0.0.1", 54266, "127.0.0.1", 44291): Counted(90, 0),
        Connection("198.18.1.11", 40000, "198.18.1.12", 6701): Counted(123456, 2000),
        Connection("fe80::1", 22, "fe80::2", 50000): Counted(0, 0),
    }


def test_a_connection_of_this_machine_is_found_with_what_waits_in_it():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as here:
            there, _ = server.accept()
            with there:
                here.setblocking(False)
                sent = 0
                try:
                    while True:
                        sent += here.send(b"x" * 65536)
                except BlockingIOError:
                    pass
                until = time.monotonic() + 5
                while (found := mine(port)).unsent == 0 and time.monotonic() < until:
                    time.sleep(0.05)
                assert 0 < found.acked < sent and found.unsent > 0


def mine(port: int) -> Counted:
    return next(counted for one, counted in connections().items() if one.peer_port == port)
