"""How a task paces itself: every time that it waits, and every amount after which it waits or gives way."""

from __future__ import annotations

from dataclasses import dataclass

from leeward.core.protocol import PRACTICE


@dataclass(frozen=True, slots=True, kw_only=True)
class Pacing:
    """Names that end in `_s` are seconds, in `_bytes` bytes, in `_pieces` pieces of a handover; shares are of one."""

    # the pipe
    late_s: float = 0.001  #: output is never held back longer than this
    long_s: float = 0.01  #: a tuple that takes longer leaves what it emits for others waiting
    long_tuples: int = 8  #: so many of them in a row, and more are expected: output no longer waits for them
    many: int = 512  #: messages that are written without waiting for more
    idle_s: float = 0.25  #: a task without input looks for other work this often
    paused_s: float = 0.005  #: a paused source lets Storm ask this often

    # the task's own thread
    switch_s: float = 0.0005  #: threads that encode, send and receive give way to it this often; Python's own: 5 ms
    timer_s: float = 0.2  #: between two looks at what the protocol sends again
    after_s: float = 0.25  #: a task reads what it has no part in so much later: a handover of little state takes half
    #: work that nothing waits for, such as a part of a checkpoint, waits so long: the markers of a handover or of a
    #: checkpoint should have passed
    leisure_s: float = 0.04
    turn_s: float = 0.01  #: from one task to the next of a node, so that they do not all work at the same moment
    turns: int = 5  #: then the first moment comes again
    practice: int = PRACTICE  #: calls that a task sends at its start, so that the first one of need takes no longer

    # signs of life
    metrics_s: float = 1.0  #: between two lines of metrics
    beat_s: float = 0.5  #: between two signs of life
    farewell_s: float = 0.3  #: how long a process that ends waits for Redis
    #: a worker sends a heartbeat twice a second; a bolt that waits longer than this for its input has lost it
    worker_silent_s: float = 1.5

    # distances to other nodes
    distance_s: float = 1.0  #: between two questions
    distance_soon: int = 60  #: so many of them, then the node's place is known well enough to ask seldom
    distance_late_s: float = 10.0
    distance_again: int = 30  #: after so many questions the other tasks' addresses are read anew

    # copying ahead. With half the time, 10 and 100 MB took up to five times what their bytes need, and no tuple was
    # faster
    step_s: float = 0.001  #: it takes the task's own thread for so long at a time
    share: float = 0.75  #: and at most this share of its time
    small_bytes: int = 4 * 1024  #: a rest of this size is small enough to follow after the switch
    small_every_s: float = 0.02  #: then what changes is sent after it this often
    #: the switch is asked for when what has never been packed takes so long to pack: its markers take as long
    near_s: float = 0.006
    chunk: int = 32  #: entries that are packed between two looks at the clock; fewer if they are large
    rounds: int = 3  #: after so many of them
    shrink: float = 0.7  #: one that shrinks the rest by less than this factor is the last

    # sending
    room: int = 16  #: packed chunks that wait for the sender's thread; a task that copies ahead stops there
    batch_pieces: int = 32  #: sent or read at once, 4 MB, as each turn waits for a processor first
    #: when the switch is asked for, a receiver that has begun may have so many still to take
    few_pieces: int = 8
    near_share: float = 0.2  #: or this share of all
    near_pieces: int = 16  #: but not more than so many: it takes them while the switch is written down
    little_s: float = 0.001  #: between two looks at what a receiver has not taken, while the switch waits for that
    ahead_pieces: int = 64  #: a sender waits when its receiver is so many behind
    freed: int = 1000  #: entries of groups given away that are freed in a row, half a millisecond's work
    free_rest_s: float = 0.001  #: the rest after it

    # receiving, and threads that wait
    block_s: float = 0.25  #: between two looks whether to give up
    early_s: float = 60.0  #: how long a sender waits until this task knows of the handover
    untold_pieces: int = 64  #: taken until then: 8 MB, which may be for nothing
    connect_s: float = 1.0  #: to reach a receiver
    greet_s: float = 5.0  #: to hear a greeting

    # through Redis
    relay_pieces: int = 128  #: that wait for one receiver; a sender that knows of so many waits
    full_s: float = 0.01  #: before it looks again
    retry_s: float = 0.1  #: between two tries while Redis is away
    tell_s: float = 2.0  #: the same, to say where a task listens: its record of control is read in the same thread
    redis_s: float = 5.0  #: how long to wait for Redis
    expiry_s: int = 900  #: after this time nothing of a handover is left there

    @property
    def rest_s(self) -> float:
        """Between two steps of copying ahead."""
        return self.step_s * (1 / self.share - 1)
