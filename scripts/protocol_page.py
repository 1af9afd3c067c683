"""Prints docs/protocol.md from the code: states, transitions, markers, phases, barriers, znodes and Redis keys.

    python scripts/protocol_page.py            print the page
    python scripts/protocol_page.py --write    write it to docs/protocol.md

Standard library only. The meaning of a member is the comment `#:` beside it in the source.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import tokenize
from collections.abc import Callable, Collection, Iterable, Mapping
from io import StringIO
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scheduler"))

from leeward.control.learning.record import LARGEST, LearntRecord  # noqa: E402
from leeward.core import control, migration, orders, protocol  # noqa: E402
from leeward.core.control import ControlRecord, Paths, Phase  # noqa: E402
from leeward.core.instructions import Fact, Kind, Mode  # noqa: E402
from leeward.core.journal import StepName  # noqa: E402
from leeward.core.orders import State  # noqa: E402

PAGE = ROOT / "docs/protocol.md"
REDIS = ("runtime/state/store.py", "runtime/handover/relay.py")
#: Kind -> what its number is, and its body.
CARRIES = {
    Kind.PULSE: ("number of the pulse", "the application's data"),
    Kind.CHECKPOINT: ("number of the cut", "control record"),
    Kind.PAUSE: ("epoch", "control record"),
    Kind.PROBE: ("base", "-"),
    Kind.ROUTE: ("epoch of the handover", "control record"),
    Kind.CALL: ("epoch", "-"),
}
INTRODUCTION = """# The protocol

Printed from the code by `python scripts/protocol_page.py --write`; do not edit it by hand.
[design.md](design.md) is the map, [adr](adr/README.md) has the reasons, [glossary.md](glossary.md) the words.

The coordinator writes a control record, and tasks follow it. `core/protocol.py` decides what a task does,
`core/migration/` what the coordinator does. Both are state machines that know neither Storm nor a store: facts or
events come in, instructions go out. A transition that is not in the tables below raises an error. `make torture` runs
both machines against each other under faults.
"""
ALIGNMENT = """A marker is *aligned* when it is in from every upstream task that takes part. A channel whose marker is
in waits: its items are queued, and processed in order later.

- The `pause` marker is the papers' end-of-stream tuple: behind it nothing is in flight.
- Probes carry the tables to the groupings, and separate bases: items on a channel before the probe of a base are older,
  and dropped. A task is *ready* when its state is in and every channel has carried the probe. So no task waits
  a guessed number of seconds for Storm to reconnect.
- Each source reads the record at a time of its own, so after an abort some sources have sent a marker and others have
  not. A checkpoint's marker is dropped where a newer one has come. A pause's marker waits for the record of the abort.
"""
OVERTAKING = """Storm keeps order per sender, and a bolt without a queue processes tuples as they come. One with
`queue = ordered_by(...)` reads ahead, and asks a discipline for the next tuple whenever it is free
(`runtime/pipe/ordered_loop.py`). The tuples wait in front of the protocol: the order in which they are chosen is to it
the order in which they came, so counts, cuts, handovers and resets hold as they are.

- *Markers* of any kind, on any channel, and *ticks* are fences: all tuples that were read before are processed first,
  then the marker, then what is behind it.
- *Heartbeats* are passed: they cut nothing, and are answered as soon as they are read.
- *Tuples of the same key* keep their order where it is promised: in a `StatefulBolt`, and where some input is routed by
  `keyed(...)`. So do those of the same key group, as a task is told the group and not the key; others overtake.
- *Tuples whose key is not known* neither overtake nor are overtaken where order per key is promised: input of
  a `StatefulBolt` by `balanced()`, and keyed input over Storm's JSON.
- In a stateless bolt without keyed input any tuple overtakes any other.
- Tuples that the protocol holds back (behind a marker that is not in from all, during a pause, until their key group is
  in) come out by the same rules when it releases them. Nothing is read meanwhile, so what comes then is behind them.
- A reset drops tuples that wait as it drops those that the protocol holds back. No discipline drops any.
- At most 1,000 tuples are read ahead (`most`), and what is behind them waits in order. A worker sends 1,024 ahead, so a
  marker has no more tuples in front of it than without a queue.
- Pulses and checkpoints cut the queue, too: an urgent tuple is served after all that came before the last of them.
"""
ROUTERS = """Two more kinds of markers are a router's (`router=routed_by(...)`); tasks act on neither, no count includes
them, and no cut depends on them (`runtime/routing/`, `core/route.py`).

- `weights` goes to no task. It changes the rotation of its sender's `balanced()` tuples at that point of the stream:
  its `tables` are `component=task:weight,...`, and each replica gets as many turns of a round as its weight. A new
  table makes weights start anew, and a task that is no replica gets nothing, whatever its weight.
- `sample` goes to the tasks that its `tables` name, as `component=task,...`. A replica that runs answers when it has
  processed all that came before, by a datagram to the address in the body. A queue lets it pass, and the answer then
  counts the tuples that wait. So the sender learns how long a tuple takes there. A sample that is lost costs a sample;
  without an answer for a second the replica counts as one that took a second.
"""
COURSES = """A *restart*: `announce` (PAUSE), every task exports at the pause marker, barrier 1, `move` (the plugin
places, Storm rebalances), `restore` (RESTORE: groups, state, probes), barrier 2, RUN.

- A worker whose executors stay the same is not restarted by Storm, and its tasks keep their memory.
- A report that is missing at barrier 1, or that names an error (Redis is down, full or read-only), leads to an abort.
- A restart waits for a first cut in Redis, because its own cut may lie in the swap area of a node that is lost.

A *handover*: `ahead` (the record names `ahead` and `coming`), then `handover` (RUN with the new tables), barrier
`handover-<epoch>`. [The picture](handover.svg) shows one step. A warm task is brought by `leave`, `prepare`, `join`.
"""


LEARNT = f"""The leader writes what it has learnt once a minute at most, and after each reconfiguration. The next leader
goes on from it, and commands that look once plan by it. It has {LARGEST // 1024} KB at most. A record that cannot be
read, of a newer version or of another topology is left out, and that is told.
"""


def meanings(cls: type) -> dict[str, str]:
    """Member or field -> the comment `#:` behind it, or in the lines before it."""
    found: dict[str, str] = {}
    before: list[str] = []
    name = ""
    for token in tokenize.generate_tokens(StringIO(inspect.getsource(cls)).readline):
        if token.type == tokenize.NAME and token.start[1] == 4:
            name = token.string
            if before:
                found[name] = " ".join(before)
                before = []
        elif token.type == tokenize.COMMENT and token.string.startswith("#:"):
            text = token.string.removeprefix("#:").strip()
            if token.line.strip().startswith("#:"):
                before.append(text)
            else:
                found[name] = text
    return found


def sentence(text: str | None) -> str:
    """As the cell of a table."""
    text = " ".join((text or "").split()).replace("|", "\\|")
    return text[:1].upper() + text[1:] if text else ""


def first_line(thing: object) -> str:
    """Of its documentation."""
    return sentence((inspect.getdoc(thing) or "").partition("\n\n")[0])


def table(head: Collection[str], rows: Iterable[Collection[str]]) -> str:
    """As Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(row) + " |" for row in lines) + "\n"


def members(cls: type, head: str) -> str:
    """An enumeration as a table."""
    about = meanings(cls)
    return table((head, "Meaning"), [(f"`{member.value}`", sentence(about[member.name])) for member in cls])


def name_of(handler: Callable) -> str:
    return f"`{handler.__name__.lstrip('_')}`"


def is_ignored(handler: Callable) -> bool:
    return handler.__name__.lstrip("_") in ("ignore", "see", "refuse", "not_held")


def transitions(rows: Mapping, fact: Callable[[object], str]) -> str:
    """A table of transitions as Markdown."""
    return table(
        ("State", "On", "Rule", "Leads to"),
        [
            (f"`{state}`", fact(what), name_of(handler), ", ".join(f"`{after}`" for after in dict.fromkeys(targets)))
            for (state, what), (handler, targets) in in_order(rows)
            if not is_ignored(handler)
        ],
    )


def in_order(rows: Mapping) -> list[tuple]:
    """State by state."""
    states = [*Mode, *State]
    return sorted(rows.items(), key=lambda row: states.index(row[0][0]))


def rules(rows: Mapping) -> str:
    """The rules in a sentence each, where names are not enough."""
    handlers = dict.fromkeys(handler for _, (handler, _) in in_order(rows) if not is_ignored(handler))
    return table(("Rule", "Meaning"), [(name_of(rule), first_line(rule)) for rule in handlers if first_line(rule)])


def ignored(rows: Mapping, fact: Callable[[object], str]) -> str:
    """Facts and events that states take note of without a transition."""
    found: dict[str, list[str]] = {}
    for (state, what), (handler, _) in in_order(rows):
        if is_ignored(handler):
            found.setdefault(fact(what), []).append(f"`{state}`")
    return table(("On", "Nothing happens in"), [(what, ", ".join(states)) for what, states in found.items()])


def diagram(first: str, rows: Mapping, fact: Callable[[object], str]) -> str:
    """A table of transitions as a Mermaid state diagram, without those that lead back to the same state."""
    edges: dict[tuple[str, str], list[str]] = {}
    for (state, what), (_, targets) in in_order(rows):
        for after in dict.fromkeys(targets):
            if after is not state:
                edges.setdefault((str(state), str(after)), []).append(fact(what).strip("`"))
    lines = ["```mermaid", "stateDiagram-v2", f"    [*] --> {first}"]
    lines += [f"    {before} --> {after}: {' / '.join(names)}" for (before, after), names in edges.items()]
    return "\n".join([*lines, "```", ""])


def learnt_fields() -> str:
    about = meanings(LearntRecord)
    return table(("Field", "Meaning"), [(f"`{name}`", sentence(about[name])) for name in LearntRecord.__slots__])


def znodes() -> str:
    paths = Paths("<root>", "<topology id>")
    rows = []
    for name, member in vars(Paths).items():
        if isinstance(member, property):
            rows.append((f"`{getattr(paths, name)}`", first_line(member)))
        elif isinstance(member, staticmethod):
            rows.append((f"`{getattr(Paths, name)(*_named(member.__func__))}`", first_line(member.__func__)))
        elif inspect.isfunction(member) and not name.startswith("_"):
            values = [f"<{parameter}>" for parameter in list(inspect.signature(member).parameters)[1:]]
            rows.append((f"`{getattr(paths, name)(*values)}`", first_line(member)))
    return table(("znode", "Content"), rows)


def _named(function: Callable) -> list[str]:
    return [f"<{name}>" for name in inspect.signature(function).parameters]


def barriers() -> str:
    functions = [member for name, member in vars(control).items() if name.endswith("_barrier")]
    return table(
        ("Barrier", "When a task reports"),
        [(f"`{function(*_named(function))}`", sentence(inspect.getdoc(function))) for function in functions],
    )


def redis_keys() -> str:
    """From the documentation of the modules that use them."""
    rows: dict[str, str] = {"base": "Newest base that sinks may write under (the coordinator raises it)"}
    for file in REDIS:
        text = ast.get_docstring(ast.parse((ROOT / "scheduler/leeward" / file).read_text())) or ""
        for key, about in re.findall(r"^  (\S+) {2,}(.+)$", text, re.MULTILINE):
            rows[key] = sentence(about)
    return table(("Key, after `leeward:<topology id>:`", "Content"), [(f"`{k}`", rows[k]) for k in sorted(rows)])


def markers() -> str:
    about = meanings(Kind)
    rows = [(f"`{kind}`", *CARRIES[kind], sentence(about[kind.name])) for kind in Kind]
    return table(("Kind", "Number", "Body", "Meaning"), rows)


def record() -> str:
    about = meanings(ControlRecord)
    fields = [name for name in ControlRecord.__slots__ if name != "version"]
    return table(("Field", "Meaning"), [(f"`{name}`", sentence(about[name])) for name in fields])


def page() -> str:
    """The whole page."""
    of_fact, of_event = (lambda fact: f"`{fact}`"), (lambda event: f"`{event.__name__}`")
    events = {event for _, event in migration.TRANSITIONS}
    described = [event for event in vars(orders).values() if isinstance(event, type) and event in events]
    parts = [
        INTRODUCTION,
        "## Control record\n", record(),
        "### Phases\n", members(Phase, "Phase"),
        "## Markers\n",
        "Each marker also has a count: how many tuples, pulses and route markers its sender sent on that channel.\n",
        markers(),
        "### Alignment\n", ALIGNMENT,
        "### Order of waiting tuples\n", OVERTAKING,
        "### Samples and weights\n", ROUTERS,
        "## A task\n", members(Mode, "State"),
        "### Facts\n", members(Fact, "Fact"),
        "### Transitions of a task\n", diagram(Mode.STARTING, protocol.TRANSITIONS, of_fact),
        transitions(protocol.TRANSITIONS, of_fact), rules(protocol.TRANSITIONS), ignored(protocol.TRANSITIONS, of_fact),
        "## The coordinator\n", "Each state names the event that the coordinator waits for:\n", members(State, "State"),
        "### Events\n", table(("Event", "Meaning"), [(of_event(event), first_line(event)) for event in described]),
        "### Transitions of the coordinator\n", diagram(State.OFF, migration.TRANSITIONS, of_event),
        transitions(migration.TRANSITIONS, of_event), rules(migration.TRANSITIONS),
        ignored(migration.TRANSITIONS, of_event),
        "### Steps in the journal\n", "The coordinator writes a step to the journal before it takes it.\n",
        members(StepName, "Step"),
        "### Courses\n", COURSES,
        "## Barriers\n", "A barrier is a znode with a child for each task that has reported.\n", barriers(),
        "## ZooKeeper\n", znodes(),
        "### The learnt record\n", LEARNT, learnt_fields(),
        "## Redis\n", redis_keys(),
    ]  # fmt: skip
    return "\n".join(parts)


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(page())
    else:
        print(page(), end="")
