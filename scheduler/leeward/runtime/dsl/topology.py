"""The base class of topologies with Leeward components: it gives them the configuration that they need."""

from __future__ import annotations

from typing import Any, ClassVar

import streamparse

from leeward.core.topology_conf import ROUTERS, STORE
from leeward.runtime.dsl.inputs import refuse_tables_for_stock_bolts
from leeward.runtime.dsl.routers import collected
from leeward.runtime.state.schemes import located

#: Where a topology sets nothing else, in its `config` or by `-o key=value` (which streamparse prefers to it).
DEFAULTS = {
    # the worker's side of the pipe; it exchanges JSON with components that know nothing else.
    # `org.apache.storm.multilang.JsonSerializer` here puts everything back to Storm's own.
    "topology.multilang.serializer": "leeward.multilang.FrameSerializer",
    # between workers, tuples travel as the components packed them
    "topology.tuple.serializer": "leeward.multilang.PackedTupleSerializer",
    # warm tasks cost little while they wait
    "topology.bolt.wait.strategy": "leeward.wait.PatientWait",
    "topology.spout.wait.strategy": "leeward.wait.PatientWait",
}


class _Defaults:
    """Mixed in before streamparse's class."""

    config: ClassVar[dict[str, Any]]  # streamparse's
    specs: ClassVar[list[Any]]  # streamparse's

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.config = DEFAULTS | cls.config
        if isinstance(store := cls.config.get(STORE.name), str):
            cls.config[STORE.name] = located(store)
        refuse_tables_for_stock_bolts(cls.specs)
        if routers := collected(cls.specs):
            cls.config[ROUTERS.name] = routers


class _Base:
    """Stands for two classes in a list of bases.

    streamparse submits the first topology class that it finds in a module. A real base class would be found first.
    """

    def __mro_entries__(self, bases: tuple[object, ...]) -> tuple[type, ...]:
        return _Defaults, streamparse.Topology


#: To derive a topology from, instead of streamparse's class of this name.
Topology = _Base()
