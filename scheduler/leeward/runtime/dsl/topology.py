"""Defaults of every topology with Leeward components, in any way of submission.

streamparse knows no place for such defaults, but a topology is a class, so Python itself calls the hook below when one
is defined. A topology of stock components only is left alone.
"""

from __future__ import annotations

from typing import Any

from streamparse import Topology

from leeward.runtime.dsl.specs import MARKER_STREAM

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


def _add_defaults(cls: type[Topology], **options: Any) -> None:
    if any(MARKER_STREAM in spec.common.streams for spec in cls.specs):
        cls.config = DEFAULTS | cls.config


Topology.__init_subclass__ = classmethod(_add_defaults)
