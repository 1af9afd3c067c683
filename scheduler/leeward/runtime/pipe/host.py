"""The part of pystorm's classes that the mixins of a component use, for the type checker: pystorm has no types.

When a program runs these are plain `object`s; pystorm's methods come from the class that is mixed with.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pystorm.component import Tuple

if TYPE_CHECKING:
    import io
    import logging

    class Host:
        """As `pystorm.component.Component`."""

        pid: int
        task_id: int
        component_name: str
        logger: logging.Logger

        def __init__(self, input_stream: io.BytesIO, output_stream: io.BytesIO, **options: Any) -> None: ...

        def read_handshake(self) -> tuple[dict[str, Any], dict[str, Any]]: ...

        def read_task_ids(self) -> list[int]: ...

        def send_message(self, message: dict[str, Any]) -> None: ...

        def _run(self) -> None: ...

        def _setup_component(self, storm_conf: dict[str, Any], context: dict[str, Any]) -> None: ...

        def _exit(self, status_code: int) -> None: ...

        def emit(self, tup: Any, *, stream: str | None = None) -> list[int] | None:
            """The part of it that bolts and spouts have in common."""

    class BoltHost(Host):
        """As `pystorm.bolt.Bolt`."""

        auto_anchor: bool
        auto_ack: bool
        _current_tups: list[Tuple]
        _source_tuple_types: dict[str | None, dict[str, type]]

        def ack(self, tup: Tuple) -> None: ...

        def fail(self, tup: Tuple) -> None: ...

else:
    Host = BoltHost = object
