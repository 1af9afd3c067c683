"""Draws the pictures of docs/design.md: the house, the way of a tuple, a handover.

    python scripts/drawings.py            name the pictures that are out of date; exit code 1 if there are any
    python scripts/drawings.py --write    write them to docs/

Standard library only. Rooms and arrows of the house are read from MAY_IMPORT in tests/unit/test_tidy.py; this script
places them. The same input gives the same bytes.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise, permutations, product
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RULES = ROOT / "tests/unit/test_tidy.py"
INK, LINE, PAPER = "#1f2933", "#52606d", "#ffffff"
BLUE, GREEN, SAND, GREY = "#dbeafe", "#dcfce7", "#fef3c7", "#eef1f4"
FONT = "DejaVu Sans, Verdana, Arial, sans-serif"
Point = tuple[float, float]

#: Room -> its purpose, a line each.
ABOUT = {
    "core": ("protocol, tables, plans,", "state machines: pure"),
    "policies": ("a room for each", "published scheduler"),
    "control": ("the service's loop,", "ports, coordinator"),
    "wire": ("clients that tasks and", "service share"),
    "adapters": ("the ports on Storm,", "ZooKeeper, Redis"),
    "sim": ("worlds in memory,", "under faults"),
    "runtime": ("inside Storm's workers:", "pipe, state, handover"),
    "replay": ("rows of a file as a", "paced stream"),
    "local": ("a whole cluster on", "one machine"),
    "deploy": ("puts all of it on", "the hosts of a cluster"),
    "dashboard": ("views of a running", "topology"),
    "cli": ("the leeward command:", "wiring"),
    "bolts": ("the application:", "query 1 and the like"),
}
FILLS = {"core": GREEN, "runtime": BLUE, "bolts": BLUE, "wire": BLUE, "policies": SAND, "control": SAND}


@dataclass(frozen=True, slots=True)
class Text:
    """A line of text; `y` is its base line."""

    x: float
    y: float
    text: str
    size: int = 12
    anchor: str = "middle"
    bold: bool = False

    def svg(self) -> str:
        weight = ' font-weight="bold"' if self.bold else ""
        return (
            f'<text x="{self.x:g}" y="{self.y:g}" font-size="{self.size}" text-anchor="{self.anchor}"{weight}>'
            f"{escape(self.text, quote=False)}</text>"
        )


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle with round corners."""

    x: float
    y: float
    width: float
    height: float
    fill: str = PAPER
    outline: bool = True

    def svg(self) -> str:
        stroke = LINE if self.outline else "none"
        return (
            f'<rect x="{self.x:g}" y="{self.y:g}" width="{self.width:g}" height="{self.height:g}" rx="5" '
            f'fill="{self.fill}" stroke="{stroke}"/>'
        )


@dataclass(frozen=True, slots=True)
class Arrow:
    """A line through these points, with a head at its end unless `head` is false."""

    points: tuple[Point, ...]
    head: bool = True
    dashed: bool = False

    def svg(self) -> str:
        path = " ".join(f"{x:g},{y:g}" for x, y in self.points)
        extra = ' marker-end="url(#head)"' if self.head else ""
        extra += ' stroke-dasharray="5 4"' if self.dashed else ""
        return f'<polyline points="{path}" fill="none" stroke="{LINE}"{extra}/>'


@dataclass(slots=True)
class Picture:
    """Shapes on paper, in the order in which they are drawn."""

    title: str
    width: float
    height: float
    shapes: list[Text | Box | Arrow] = field(default_factory=list)

    def box(self, box: Box, lines: Sequence[str], size: int = 12) -> None:
        """A box with lines of text in its middle; the first is bold."""
        self.shapes.append(box)
        step = size + 4
        top = box.y + box.height / 2 - step * (len(lines) - 1) / 2 + size * 0.35
        for number, line in enumerate(lines):
            middle = box.x + box.width / 2
            self.shapes.append(Text(middle, top + number * step, line, size if number else size + 1, bold=not number))

    def svg(self) -> str:
        """The whole document."""
        lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width:g} {self.height:g}" '
            f'width="{self.width:g}" height="{self.height:g}" font-family="{FONT}" fill="{INK}" role="img">',
            f"<title>{escape(self.title)}</title>",
            '<defs><marker id="head" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="8" markerHeight="8" '
            f'orient="auto"><path d="M0,0.5 L8,4 L0,7.5 z" fill="{LINE}"/></marker></defs>',
            f'<rect width="{self.width:g}" height="{self.height:g}" fill="{PAPER}"/>',
            *(shape.svg() for shape in self.shapes),
            "</svg>",
        ]
        return "\n".join(lines) + "\n"


# --- the house ---

Graph = Mapping[str, frozenset[str]]


def rooms() -> Graph:
    """Room -> the rooms that it may import, and the application beside them."""
    for node in ast.parse(RULES.read_text()).body:
        if isinstance(node, ast.Assign) and node.targets[0].id == "MAY_IMPORT":
            found = {room: frozenset(others) for room, others in ast.literal_eval(node.value).items()}
            return found | {"bolts": frozenset({"core", "runtime"})}
    raise LookupError(f"{RULES} has no MAY_IMPORT")


def reached(graph: Graph, room: str) -> set[str]:
    """The rooms below a room, itself left out."""
    below = set(graph[room])
    for other in graph[room]:
        below |= reached(graph, other)
    return below


def reduced(graph: Graph) -> Graph:
    """Without the arrows that a longer way implies."""
    return {
        room: frozenset(o for o in others if not any(o in reached(graph, p) for p in others))
        for room, others in graph.items()
    }


def floor_of(graph: Graph, room: str) -> int:
    """The longest way down to the ground."""
    return max((floor_of(graph, other) + 1 for other in graph[room]), default=0)


def floors_of(graph: Graph) -> tuple[list[list[str]], list[tuple[str, str]]]:
    """Floors from the ground up, and arrows from each floor to the one below; long arrows get a bend on each floor
    between, named "from>to>floor".
    """
    floor = {room: floor_of(graph, room) for room in graph}
    floors: list[list[str]] = [sorted(r for r in graph if floor[r] == n) for n in range(max(floor.values()) + 1)]
    arrows = []
    for room in sorted(graph):
        for other in sorted(graph[room]):
            way = [room]
            for between in range(floor[room] - 1, floor[other], -1):
                way.append(f"{room}>{other}>{between}")
                floors[between].append(way[-1])
            arrows += pairwise([*way, other])
    return floors, arrows


def crossings(upper: Sequence[str], lower: Sequence[str], arrows: Iterable[tuple[str, str]]) -> int:
    """How many pairs of arrows between two floors cross."""
    above, below = {name: at for at, name in enumerate(upper)}, {name: at for at, name in enumerate(lower)}
    ends = [(above[a], below[b]) for a, b in arrows if a in above and b in below]
    return sum((a - c) * (b - d) < 0 for at, (a, b) in enumerate(ends) for c, d in ends[:at])


def in_order(floors: list[list[str]], arrows: list[tuple[str, str]]) -> list[list[str]]:
    """Each floor in the order with the fewest crossings, floor by floor from the ground up and down again."""
    floors = [list(floor) for floor in floors]

    def cost(at: int, order: Sequence[str]) -> tuple[int, float]:
        sides = [(floors[at + 1], order)] if at + 1 < len(floors) else []
        sides += [(order, floors[at - 1])] if at else []
        centre = {name: n - (len(floor) - 1) / 2 for floor in [*floors, list(order)] for n, name in enumerate(floor)}
        length = sum(abs(centre[a] - centre[b]) for a, b in arrows if a in order or b in order)
        return sum(crossings(upper, lower, arrows) for upper, lower in sides), length

    for _, at in product(range(4), [*range(len(floors)), *reversed(range(len(floors)))]):
        floors[at] = list(min(permutations(sorted(floors[at])), key=lambda order: cost(at, order)))
    return floors


def house(graph: Graph | None = None) -> Picture:
    """Rooms and arrows. An arrow means: may import; arrows that a longer way implies are left out."""
    full = rooms() if graph is None else graph
    floors, arrows = floors_of(reduced(full))
    floors = in_order(floors, arrows)
    wide, high, gap, storey, bend = 168, 62, 22, 104, 30
    width = max(sum(bend if ">" in n else wide for n in f) + gap * (len(f) - 1) for f in floors) + 40
    picture = Picture("The rooms of the package and what each may import", width, storey * len(floors) - 42 + 78)
    middle: dict[str, float] = {}
    top: dict[str, float] = {}
    for number, names in enumerate(floors):
        x = (width - sum(bend if ">" in n else wide for n in names) - gap * (len(names) - 1)) / 2
        for name in names:
            own = bend if ">" in name else wide
            middle[name], top[name] = x + own / 2, 20 + (len(floors) - 1 - number) * storey
            x += own + gap
    for at, (upper, lower) in enumerate(arrows):
        ends = (_port(arrows, at, 0, middle, wide), _port(arrows, at, 1, middle, wide))
        start, end = (ends[0], top[upper] + high), (ends[1], top[lower])
        if ">" in upper:
            picture.shapes.append(Arrow(((start[0], top[upper]), start), head=False))
        picture.shapes.append(Arrow((start, end), head=">" not in lower))
    for name in sorted(full):
        box = Box(middle[name] - wide / 2, top[name], wide, high, FILLS.get(name, GREY))
        picture.box(box, (name + "/", *ABOUT[name]), 11)
    notes = (
        "An arrow means: may import. What a longer way implies is left out. No arrow runs back up.",
        "Green: pure. Yellow: decides. Blue: part of it, or all, runs in Storm's workers.",
    )
    for number, line in enumerate(notes):
        picture.shapes.append(Text(width / 2, picture.height - 32 + 18 * number, line, 11))
    return picture


def _port(arrows: list[tuple[str, str]], at: int, side: int, middle: Mapping[str, float], wide: float) -> float:
    """Where an arrow leaves its upper room (side 0) or enters its lower one (1), in the order of the other ends."""
    name = arrows[at][side]
    if ">" in name:
        return middle[name]
    same = [n for n, arrow in enumerate(arrows) if arrow[side] == name]
    same.sort(key=lambda n: (middle[arrows[n][1 - side]], n))
    return middle[name] - wide / 2 + wide * (same.index(at) + 1) / (len(same) + 1)


# --- the way of a tuple ---


def tuple_way() -> Picture:
    """From a task to a task of another worker."""
    picture = Picture("The way of a tuple from task to task", 920, 420)
    steps = {
        "Worker A": (
            20,
            ("Python task (sender)", "process(), emit()", "values packed once: msgpack"),
            ("PipeBolt or PipeSpout", "reads frames; values stay bytes", "emits by Storm's collector"),
            ("KeyedGrouping", "crc32(key) mod 128, table -> task", "counts what each channel carries"),
        ),
        "Worker B": (
            520,
            ("Python task (receiver)", "state[key]; emit()", "a key group lives here alone"),
            ("TaskProtocol", "marker aligned? group awaited?", "then the tuple waits, in order"),
            ("PipeBolt", "group of the key, by channel number", "batch: at 64 KiB or after 1 ms"),
        ),
    }
    for worker, (x, *boxes) in steps.items():
        picture.shapes.append(Box(x, 20, 380, 340, GREY))
        picture.shapes.append(Text(x + 190, 44, worker, 13, bold=True))
        for number, lines in enumerate(boxes):
            fill = BLUE if "Python" in lines[0] or lines[0] == "TaskProtocol" else SAND
            picture.box(Box(x + 70, 58 + number * 102, 240, 68, fill), lines, 11)
    for x, y, label, down in (
        (210, 126, "pipe: frames, many at a time", True),
        (210, 228, "in the same JVM", True),
        (710, 228, "pipe: frames, many at a time", False),
        (710, 126, "in the same process", False),
    ):
        points = ((x, y), (x, y + 34))
        picture.shapes.append(Arrow(points if down else points[::-1]))
        picture.shapes.append(Text(x + 10, y + 21, label, 11, "start"))
    picture.shapes.append(Arrow(((330, 296), (590, 296))))
    for y, line in ((282, "Storm's network"), (312, "packed values")):
        picture.shapes.append(Text(460, y, line, 11))
    notes = (
        "Blue: Python. Yellow: Java, from the topology jar. Markers take the same way, in order among the tuples;",
        "a marker carries what the grouping counted on this channel, and the receiver compares.",
    )
    for number, line in enumerate(notes):
        picture.shapes.append(Text(460, 386 + number * 18, line, 11))
    return picture


# --- sequences ---

#: From, to, text. A step without `to` is a note beside its line.
Steps = tuple[tuple[str, str, str], ...]
LIVES = ("coordinator", "upstream tasks", "donor", "receiver", "sink")
HANDOVER: Steps = (
    ("coordinator", "donor", "record: epoch e will come, with its tables"),
    ("donor", "receiver", "pieces, copied ahead"),
    ("donor", "", "works on; packs changed keys again"),
    ("donor", "coordinator", "report: nearly all is copied"),
    ("coordinator", "upstream tasks", "record: RUN, e, new tables"),
    ("upstream tasks", "donor", "route marker e"),
    ("upstream tasks", "receiver", "route marker e: from here on by the new tables"),
    ("receiver", "", "tuples of awaited groups wait"),
    ("donor", "", "aligned: gives up the groups"),
    ("donor", "receiver", "pieces: the rest"),
    ("receiver", "", "groups are in: goes on in order"),
    ("donor", "sink", "route marker e"),
    ("receiver", "sink", "route marker e"),
    ("donor", "coordinator", "report at barrier handover-e"),
    ("receiver", "coordinator", "report at barrier handover-e"),
    ("sink", "coordinator", "report at barrier handover-e"),
    ("coordinator", "", "closes the journal"),
)


ORGANISATIONS = ("client", "provider", "registry", "domain", "node")
QUERY: Steps = (
    ("domain", "node", "measure while it is idle"),
    ("domain", "registry", "register: capabilities, areas"),
    ("client", "provider", "open a service"),
    ("provider", "registry", "discover"),
    ("provider", "domain", "negotiate: rate, p_t, x"),
    ("domain", "", "x_u < x, and the pods suffice?"),
    ("domain", "provider", "offer, or the least that it can promise"),
    ("client", "provider", "query"),
    ("provider", "", "p_t = 100 (p_q / 100)^(1 / k_q)"),
    ("provider", "domain", "task: areas, p_t, what is left of x"),
    ("domain", "", "t_D = now + x - x_u; queues by discipline"),
    ("domain", "node", "subtask, in its turn"),
    ("node", "domain", "reading, or none"),
    ("domain", "provider", "answer: tally, late or not"),
    ("provider", "client", "aggregate, and the domains that are missing"),
)


def handover() -> Picture:
    """From the announcement to the closed journal."""
    note = "Tuples flow all the while. The coordinator's arrows are znodes; reports are children of a barrier's znode."
    return sequence("A handover", LIVES, HANDOVER, note)


def query() -> Picture:
    """Of DSSP, from the registration on."""
    note = "Domain and provider are pure state machines; WebSocket carries their messages, HTTP the client's."
    return sequence("The way of a query", ORGANISATIONS, QUERY, note)


def sequence(title: str, lives: Sequence[str], steps: Steps, note: str) -> Picture:
    """Lines of life with arrows between them."""
    gap, first, step = 196, 92, 34
    picture = Picture(title, gap * (len(lives) - 1) + 190, 90 + step * len(steps) + 50)
    at = {name: first + number * gap for number, name in enumerate(lives)}
    end = picture.height - 46
    for name, x in at.items():
        picture.shapes.append(Arrow(((x, 54), (x, end)), head=False, dashed=True))
        picture.box(Box(x - 68, 18, 136, 36, SAND if name == "coordinator" else BLUE), (name,))
    for number, (source, target, text) in enumerate(steps):
        y = 92 + number * step
        if not target:
            width = 6.3 * len(text) + 22
            picture.shapes.append(Box(at[source] - width / 2, y - 17, width, 24, GREEN))
            picture.shapes.append(Text(at[source], y - 1, text, 11))
            continue
        start, stop = at[source], at[target]
        away = 1 if stop > start else -1
        picture.shapes.append(Arrow(((start, y), (stop - 2 * away, y))))
        width = 6.4 * len(text) + 8
        label = start + away * (gap / 2)
        if abs(stop - start) > gap and width > gap - 20:
            label = (start + stop) / 2
        picture.shapes.append(Box(label - width / 2, y - 19, width, 16, PAPER, outline=False))
        picture.shapes.append(Text(label, y - 7, text, 11))
    picture.shapes.append(Text(picture.width / 2, picture.height - 16, note, 11))
    return picture


PICTURES = {"house.svg": house, "tuple.svg": tuple_way, "handover.svg": handover, "dssp.svg": query}


def main(arguments: Sequence[str]) -> int:
    """Write the pictures, or name those that differ from what is checked in."""
    old = []
    for name, draw in PICTURES.items():
        path, text = ROOT / "docs" / name, draw().svg()
        if list(arguments) == ["--write"]:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            old.append(name)
    for name in old:
        print(f"docs/{name} is out of date; run: make pages", file=sys.stderr)
    return 1 if old else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
