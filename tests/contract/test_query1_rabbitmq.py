"""The paper's sink, against a real RabbitMQ broker that the test starts on own ports and in own folders."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

import pytest

from bolts.query1.settings import read_settings
from bolts.query1.stores import RabbitSink, Result, open_sink
from leeward.core.errors import ConfigError
from tests.helpers.servers import free_port

#: Debian's script; the wrapper on the PATH would switch to the user and the folders of the system's broker.
SERVER = "/usr/lib/rabbitmq/bin/rabbitmq-server"
#: A broker starts within seconds; a busy machine may need much longer.
START_S = 90


class Broker:
    """rabbitmq-server and its name server (epmd), each in a process group of its own."""

    def __init__(self, folder: Path, server: str) -> None:
        self.server, self.folder = server, folder
        self.port, distribution, names = free_port(), free_port(), free_port()
        self.url = f"amqp://guest:guest@127.0.0.1:{self.port}/"
        self.environment = {
            **os.environ,
            "HOME": str(folder),  # Erlang's cookie
            "ERL_EPMD_PORT": str(names),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODENAME": f"leeward{self.port}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(distribution),
            "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
            "RABBITMQ_LOG_BASE": str(folder / "log"),
            "RABBITMQ_CONFIG_FILE": str(folder / "none"),
            "RABBITMQ_CONF_ENV_FILE": str(folder / "none.env"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
        }
        # in the foreground, so that the broker does not leave a daemon behind
        self.names = self._run("epmd", "-port", str(names), "-address", "127.0.0.1")
        self.start()

    def _run(self, *command: str) -> subprocess.Popen:
        with open(self.folder / "output", "ab") as output:
            return subprocess.Popen(
                command,
                env=self.environment,
                cwd=self.folder,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def start(self) -> None:
        self.process = self._run(self.server)
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            assert self.process.poll() is None, (self.folder / "output").read_text()
            time.sleep(0.1)
        raise AssertionError(f"no broker after {START_S} s:\n" + (self.folder / "output").read_text())

    def stop(self) -> None:
        end_group(self.process)

    def close(self) -> None:
        self.stop()
        end_group(self.names)


def end_group(process: subprocess.Popen) -> None:
    for how in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, how)
            process.wait(20)
            return
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    server = SERVER if os.path.exists(SERVER) else shutil.which("rabbitmq-server")
    if server is None or shutil.which("epmd") is None:
        pytest.skip("rabbitmq-server is not installed")
    folder = tmp_path_factory.mktemp("rabbitmq")
    broker = Broker(folder, server)
    yield broker
    broker.close()
    shutil.rmtree(folder)


def drain(url: str, queue: str) -> list[tuple[str | None, str, int | None, dict]]:
    """Takes all messages of a queue: id, body, delivery mode, headers."""
    import pika

    connection = pika.BlockingConnection(pika.URLParameters(url))
    channel = connection.channel()
    channel.queue_declare(queue, passive=True)
    messages = []
    while (message := channel.basic_get(queue, auto_ack=True))[0] is not None:
        _, properties, body = message
        messages.append((properties.message_id, body.decode(), properties.delivery_mode, properties.headers))
    connection.close()
    return messages


def settings(url: str, queue: str):
    return read_settings({"query1.sink": "rabbitmq", "leeward.rabbitmq.url": url, "query1.out": queue})


#: By which a consumer can drop what a replaced process sends.
SENDER = {"base": 0, "epoch": 0}


@pytest.mark.timeout(300)
def test_results_are_messages_whose_id_is_the_pulse_number(broker):
    sink = open_sink(settings(broker.url, "ids"), {})
    assert isinstance(sink, RabbitSink)
    sink.publish(Result(7, "first", "2.0", "1.0"))
    sink.publish(Result(9, "second", "3.0", "2.5"))
    sink.publish(Result(9, "second", "4.0", "2.5"))  # a repeat: the broker keeps it, its id tells
    sink.close()
    assert drain(broker.url, "ids") == [
        ("7", "first", 2, {"w": "2.0", "w0": "1.0"} | SENDER),
        ("9", "second", 2, {"w": "3.0", "w0": "2.5"} | SENDER),
        ("9", "second", 2, {"w": "4.0", "w0": "2.5"} | SENDER),
    ]


@pytest.mark.timeout(300)
def test_results_outlive_the_broker_and_the_sink_connects_again(broker):
    sink = open_sink(settings(broker.url, "durable"), {})
    sink.publish(Result(1, "before", "1", "1"))
    broker.stop()
    starting = threading.Timer(0.5, broker.start)
    starting.start()
    sink.publish(Result(2, "after", "2", "2"))
    sink.close()
    starting.join()
    assert [message[:2] for message in drain(broker.url, "durable")] == [("1", "before"), ("2", "after")]


def test_a_missing_url_is_an_error_that_says_what_to_set():
    with pytest.raises(ConfigError, match=r"leeward\.rabbitmq\.url is not set.*amqp://"):
        open_sink(settings("", "x"), {})
