"""Where rows come from and results go: Redis, and RabbitMQ by option. Only the shells use this file."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from bolts.latency.made import Made
from bolts.latency.settings import Latency
from bolts.latency.taxi import taxi_row
from bolts.query1.settings import Settings
from leeward.core.errors import ConfigError, LeewardError
from leeward.core.secrets import NO_SECRETS, Secrets
from leeward.runtime import FencedRedis, FencingToken, open_redis

if TYPE_CHECKING:
    import redis

#: Of a topology that has no bases, as a stock one.
UNFENCED = FencingToken(base=0, epoch=0)
#: Of a publication to RabbitMQ before the task gives up; with the pauses between them, about 15 s.
_TRIES = 20
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.02, 1.0


class InputLostError(LeewardError):
    """The stream of rows does not go on where this task stopped."""


class Row(NamedTuple):
    """A row of the taxi stream; `line` is None for the entry that ends it."""

    seq: int
    line: str | None
    dropoff_s: int


class Result(NamedTuple):
    """An output row on its way out."""

    number: int  #: of its pulse
    row: str
    w: str  #: wall clock when written, epoch seconds
    w0: str  #: wall clock when the pulse left the source, epoch seconds


class Rows(Protocol):
    """Where rows come from."""

    def fetch(self, after: int, *, wait_ms: int) -> list[Row]:
        """The next rows after number `after`, waiting `wait_ms` at most for one."""
        ...

    def publish_end(self) -> None:
        """The end of the rows was read."""

    def publish_progress(self, seq: int) -> None:
        """Rows up to this one will never be read again."""


class MadeStream:
    """Rows that are made at the rate of `latency.rate`; nobody is told of progress and end."""

    def __init__(self, latency: Latency) -> None:
        self._made, self._seed = Made(latency), latency.seed

    def fetch(self, after: int, *, wait_ms: int) -> list[Row]:
        """The row after number `after`, if it is due within `wait_ms`; then the entry that ends them."""
        number = self._made.due(after, wait_s=wait_ms / 1000)
        if number is None:
            return []
        if self._made.is_over(number):
            return [Row(number, None, 0)]
        return [Row(number, *taxi_row(self._seed, number))]

    def publish_end(self) -> None:
        """Nothing: no replay waits for it."""

    def publish_progress(self, seq: int) -> None:
        """Nothing: rows are made again whenever they are asked for."""


class TaxiStream:
    """The Redis stream that the replay fills: entry `<seq>-0` has row `r` and dropoff `t`, the last `end`."""

    def __init__(self, client: redis.Redis, settings: Settings) -> None:
        self._client = client
        self._stream = settings.taxi_in
        self._batch = settings.batch
        self._trim = settings.trim

    def fetch(self, after: int, *, wait_ms: int) -> list[Row]:
        """The next rows after number `after`, waiting `wait_ms` at most for one. Raises InputLostError."""
        reply = self._client.xread({self._stream: f"{after}-0"}, count=self._batch, block=wait_ms)
        entries = reply[0][1] if reply else []
        rows = []
        for seq, (entry_id, fields) in enumerate(entries, self._next(after, entries)):
            if entry_id != b"%d-0" % seq:
                raise InputLostError(
                    f"stream {self._stream!r}: after row {seq - 1} comes row {entry_id.decode().removesuffix('-0')}.",
                    remedy="Rows were removed: start the topology and the replay anew on an empty stream.",
                )
            rows.append(_row(seq, fields))
        return rows

    def _next(self, after: int, entries: Sequence[tuple[bytes, Any]]) -> int:
        """The row behind `after`; the replay may have left out those before the first one that it sent."""
        if after or not entries or entries[0][0] == b"1-0":
            return after + 1
        return int(self._client.hget(f"{self._stream}:replay", "first") or 1)

    def publish_end(self) -> None:
        """Writes to `<stream>:source` that the end of the stream was read."""
        self._client.hset(f"{self._stream}:source", "ended", 1)

    def publish_progress(self, seq: int) -> None:
        """Writes to `<stream>:progress` up to where rows will never be read again, and removes them.

        The row `seq` itself stays, so that the end of the stream can be seen from its last entry.
        """
        self._client.hset(f"{self._stream}:progress", "seq", seq)
        if self._trim:
            self._client.xtrim(self._stream, minid=seq, approximate=True)


def _row(seq: int, fields: Mapping[bytes, bytes]) -> Row:
    if b"end" in fields:
        return Row(seq, None, 0)
    # a row that is not UTF-8 is still a row: an unreadable row becomes a reason, not a crash
    return Row(seq, fields[b"r"].decode("utf-8", "replace"), int(fields[b"t"]))


class Sink(Protocol):
    """Where results go. Results come in order of their number; after a recovery some come again."""

    def publish(self, result: Result, token: FencingToken = UNFENCED) -> bool:
        """Publishes durably; False if it saw that the result was there already.

        Raises FencedError if the store knows that this process was replaced.
        """
        ...


class RedisSink:
    """A Redis stream; the entry's id is `<number>-0`, so that Redis itself refuses a repeat."""

    def __init__(self, client: redis.Redis, stream: str, topology_id: str) -> None:
        self._fenced = FencedRedis(client, topology_id)
        self._stream = stream

    def publish(self, result: Result, token: FencingToken = UNFENCED) -> bool:
        import redis

        fields = ("row", result.row, "n", result.number, "w", result.w, "w0", result.w0)
        try:
            self._fenced.execute(token, "XADD", self._stream, f"{result.number}-0", *fields, keys=(self._stream,))
        except redis.ResponseError as error:
            if "equal or smaller" not in str(error):
                raise
            return False
        return True


class RabbitSink:
    """A durable RabbitMQ queue; the message id is the number, by which a consumer drops repeats.

    The broker keeps repeats. It also keeps what a replaced process sends that does not know it yet: each message
    carries the base of its sender, so a consumer can drop those of an older base than it has seen. Each publication
    is confirmed by the broker, or raises.
    """

    def __init__(self, url: str, queue: str, secrets: Secrets = NO_SECRETS) -> None:
        if not url:
            raise ConfigError("leeward.rabbitmq.url is not set.", remedy="Set it to amqp://host:port/.")
        self._url, self._secrets = url, secrets
        self._queue = queue
        self._connection: Any = None
        self._channel: Any = None

    def publish(self, result: Result, token: FencingToken = UNFENCED) -> bool:
        """Waits out a short absence of the broker; raises if it refuses or stays away."""
        import pika.exceptions

        for attempt in range(1, _TRIES + 1):
            try:
                if self._connection is None:
                    self._open()
                self._send(result, token)
                return True
            except pika.exceptions.AMQPConnectionError:
                self._connection = None
                if attempt == _TRIES:
                    raise
                time.sleep(min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2**attempt))
        raise AssertionError("unreachable")

    def close(self) -> None:
        """Closes the connection."""
        if self._connection is not None and self._connection.is_open:
            self._connection.close()

    def _open(self) -> None:
        import pika

        parameters = pika.URLParameters(self._url)
        if self._secrets.rabbitmq_password:
            user = self._secrets.rabbitmq_user or parameters.credentials.username
            parameters.credentials = pika.PlainCredentials(user, self._secrets.rabbitmq_password)
        # Results may be minutes apart, and nothing answers the broker's heartbeats in between.
        parameters.heartbeat = 0
        self._connection = pika.BlockingConnection(parameters)
        self._channel = self._connection.channel()
        self._channel.queue_declare(self._queue, durable=True)
        self._channel.confirm_delivery()

    def _send(self, result: Result, token: FencingToken) -> None:
        import pika

        self._channel.basic_publish(
            exchange="",
            routing_key=self._queue,
            body=result.row.encode(),
            mandatory=True,
            properties=pika.BasicProperties(
                message_id=str(result.number),
                delivery_mode=pika.DeliveryMode.Persistent.value,
                content_type="text/csv",
                headers={"w": result.w, "w0": result.w0, "base": token.base, "epoch": token.epoch},
            ),
        )


class NoSink:
    """Of a run with made rows: its results are in the file `latency.out`, and no store is asked."""

    def publish(self, result: Result, token: FencingToken = UNFENCED) -> bool:
        """Nothing."""
        return True


def open_sink(settings: Settings, conf: Mapping[str, Any]) -> Sink:
    """The sink that the settings name; `conf`: the component's Storm configuration."""
    if settings.latency.rate:
        return NoSink()
    if settings.sink == "rabbitmq":
        return RabbitSink(settings.rabbitmq_url, settings.out, settings.secrets)
    return RedisSink(open_redis(conf, patient=True), settings.out, str(conf.get("storm.id", "")))
