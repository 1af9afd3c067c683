"""The coordinator's state machine: one pure table from (state, event) to the next state and what to do.

The shell (`control/coordinator.py`) feeds events and carries out instructions in order; it decides nothing.

Rules
- The journal is written before the step that it names; every step may be repeated.
- A cut number and an epoch are used once. A late report carries an old number and is ignored.
- In a restart tables change in RESTORE, when every task has stopped: at an announcement the record carries the new
  ones, a task adopts them when it restores. An abort or an undo brings the old ones back under a newer epoch.
- In a handover they change at the route markers, while the stream goes on. Once it is announced there is no way back to
  the old ones: after any failure RESTORE gives every task the new ones.
- A large handover goes in steps, each one a handover to tables in between, and begun when every task has passed the one
  before. The rules of a handover hold for a step: a failure before its announcement leaves the tables of the step
  before in force, a failure after it restores with this step's; either way the rest of the plan is given up.
- A cut is committed once every task has reported it without an error, and never before.
- Before PAUSE and each RESTORE Redis gets the fence, so that an older epoch's writer is refused. A handover asks Redis
  before whether it answers, and raises the fence once the record is out, as often as it takes. Until then the step is
  not over, and nothing of the new epoch is written to a cut.
- A plan needs every task: none begins while tasks are absent or silent, or have not sent a first beat, so no task is
  paused for a report that cannot come. The first checkpoint waits for first beats, too. `failover` has the steps for
  tasks that are lost, silent, or back.
- Without a readable cut the topology is HELD: empty state is a person's decision.
- Failing ZooKeeper ends the coordinator (the next one reads journal and record); failing Nimbus or Redis is an event.
- Every state but IDLE has a deadline at which it goes on, back, or tries again.

docs/protocol.md, which `scripts/protocol_page.py` prints, has the states, the transitions and a diagram.
"""

from leeward.core.migration.machine import Machine
from leeward.core.migration.table import TRANSITIONS, step

__all__ = ["TRANSITIONS", "Machine", "step"]
