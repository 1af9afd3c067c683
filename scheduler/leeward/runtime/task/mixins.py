"""pystorm's mixins beside an elastic class: BatchingBolt works; those that would break a promise are refused.

A batch that waits for its tick is neither in `self.state` nor sent, so a cut that passed it by would lose it. It is
processed early instead: before a checkpoint, a pause, a handover or a pulse goes on. A restore forgets it, as its
tuples come again.
"""

from __future__ import annotations

from typing import Any

from pystorm.bolt import BatchingBolt, TicklessBatchingBolt
from pystorm.spout import ReliableSpout

from leeward.core.errors import ConfigError
from leeward.core.instructions import Kind

#: Markers behind which there must be no batch from before them.
CUTS = frozenset({Kind.CHECKPOINT, Kind.PAUSE, Kind.ROUTE, Kind.PULSE})


def refuse_mixins(component: type) -> None:
    """Raises ConfigError for a class with a mixin that works against cuts."""
    name = component.__name__
    if issubclass(component, TicklessBatchingBolt):
        raise ConfigError(
            f"{name} derives from TicklessBatchingBolt, whose thread would change state while a cut copies it.",
            remedy="Use BatchingBolt, and topology.tick.tuple.freq.secs in its config.",
        )
    if issubclass(component, ReliableSpout):
        raise ConfigError(
            f"{name} derives from ReliableSpout, whose replays would count a tuple twice: a restore replays, too.",
            remedy=f"Derive {name} from StatefulSpout alone: its state says from where input is read again.",
        )


def refuse_queue(component: type) -> None:
    """Raises ConfigError: a batch is processed as a whole, at its tick, so no order of its tuples shows."""
    raise ConfigError(
        f"{component.__name__} has a queue, and derives from BatchingBolt, which processes what waits as one batch.",
        remedy="Take away the queue, or the mixin.",
    )


def is_batching(component: type) -> bool:
    """It collects tuples until a tick."""
    return issubclass(component, BatchingBolt)


def run_workerless(bolt: Any) -> None:
    """One turn of pystorm's loop for such a bolt, wherever the mixin stands among the base classes."""
    BatchingBolt._run(bolt)


def process_batches(bolt: Any) -> None:
    """All that wait, now. An exception ends the process, or fails the batch, as the user has chosen."""
    while any(bolt._batches.values()):
        try:
            bolt.process_batches()
        except Exception as error:
            if bolt.exit_on_exception:
                raise
            bolt._handle_run_exception(error)
            for key in [key for key, batch in bolt._batches.items() if not batch]:
                del bolt._batches[key]  # the failed one, which pystorm leaves there empty
    bolt._current_tups = []


def forget_batches(bolt: Any) -> None:
    """They are of a past that is undone."""
    bolt._batches.clear()
