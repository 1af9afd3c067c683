"""An explanation (the JSON of `questions/document.py`) in words: the tables of the text and of the page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Document = Mapping[str, Any]

#: Differences below this are rounding.
ROUNDING = 1e-9
#: Nodes that are listed although nothing runs on them: those where one more unit gains most.
IDLE_NODES = 5
CHANGES = {
    "fewer": "fewer replicas", "more": "more replicas", "move": "one replica moved", "leave": "not on",
    "thin": "fewer on",
}  # fmt: skip
BINDS = {True: "yes", False: "no", None: "unknown"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOfWords:
    """A table ready to be printed; `marked` rows are set in bold, `right` columns are numbers."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: frozenset[int] = frozenset()
    marked: frozenset[int] = frozenset()
    notes: tuple[str, ...] = ()


def ms(seconds: float) -> str:
    """Seconds as milliseconds."""
    return f"{1000 * seconds:.1f} ms"


def signed(value: float, unit: str, digits: int) -> str:
    """A difference with its sign; one too small to show is about zero."""
    if abs(value) < ROUNDING:
        return f"0 {unit}".strip()
    about = abs(value) < 0.5 * 10**-digits
    return (f"≈ 0 {unit}" if about else f"{value:+.{digits}f} {unit}").strip()


def placed(where: Mapping[str, int]) -> str:
    """node id -> replicas as one phrase."""
    return ", ".join(name if count == 1 else f"{name} x{count}" for name, count in where.items())


def headline(document: Document) -> str:
    """R, C, T_D and F in one line."""
    gap = document["gap"]
    proof = "proven optimal" if document["status"] == "optimal" else "not proven: "
    if document["status"] != "optimal":
        proof += "no bound" if gap is None else f"at most {100 * gap:.3g} % above the optimum"
    return (
        f"R {ms(document['R'])}   C {document['C']:.2f} $/h   T_D {document['T_D']:.3f} s   "
        f"F {document['F']:.6f} ({proof})"
    )


def objective(document: Document) -> str:
    """Where F comes from."""
    parts, weights = document["parts"], document["weights"]
    named = (("response", "r"), ("cost", "c"), ("downtime", "d"))
    return "F = " + " + ".join(f"{parts[name]:.4f} {name} (weight {weights[key]:g})" for name, key in named)


def tables(document: Document) -> tuple[TableOfWords, ...]:
    """Everything, most important first."""
    return (
        path_table(document),
        limit_table(document),
        alternative_table(document),
        operator_table(document),
        stream_table(document),
    )


def path_table(document: Document) -> TableOfWords:
    """The critical path, hop by hop."""
    rows = []
    for hop in document["path"]:
        inside = "operator" in hop
        name = hop["operator"] if inside else f"  {hop['from']} → {hop['to']}"
        where = hop["nodes"][0] if len(set(hop["nodes"])) == 1 else " → ".join(hop["nodes"])
        what, share = "latency" if inside else "network", f"{100 * hop['share']:.1f} %"
        rows.append((name, what, where, ms(hop["seconds"]), share))
    total = sum(hop["seconds"] for hop in document["path"])
    rows.append(("R", "", "", ms(total), f"{100 * sum(hop['share'] for hop in document['path']):.1f} %"))
    return TableOfWords(
        title="Critical path",
        head=("hop", "what", "slowest on", "time", "share of R"),
        rows=tuple(rows),
        right=frozenset({3, 4}),
        marked=frozenset({len(rows) - 1}),
    )


def limit_table(document: Document) -> TableOfWords:
    """Bounds, replicas, candidate nodes and capacities."""
    shown, rest = _split_limits(document["limits"])
    rows = tuple(_limit_row(limit) for limit in shown)
    return TableOfWords(
        title="Limits",
        head=("limit", "used", "of", "left", "binds", "granted", "gains (F)", "R", "C", "T_D"),
        rows=rows,
        right=frozenset({1, 2, 3, 6, 7, 8, 9}),
        marked=frozenset(at for at, limit in enumerate(shown) if limit["binds"]),
        notes=(
            "A limit binds if something better becomes possible without it (bounds) or with the step granted. "
            "Each gain is a new optimum, all operators solved again.",
            *rest,
        ),
    )


def _split_limits(limits: Sequence[Document]) -> tuple[list[Document], list[str]]:
    """Nodes worth a row, and a word about the others."""
    shown: list[Any] = []
    idle: list[Any] = []
    for limit in limits:
        (idle if limit["kind"] == "capacity" and limit["used"] == 0 else shown).append(limit)
    gaining = [limit for limit in idle if limit["binds"]]
    shown += gaining[:IDLE_NODES]
    others = gaining[IDLE_NODES:] + [limit for limit in idle if not limit["binds"]]
    notes = []
    none = sum(limit["binds"] is False for limit in others)
    unknown = sum(limit["binds"] is None for limit in others)
    if none:
        notes.append(f"{none} unused nodes: one more unit gains nothing there.")
    if more := len(others) - none - unknown:
        notes.append(f"{more} unused nodes gain no more from one more unit than those shown.")
    if unknown:
        notes.append(f"{unknown} unused nodes: not answered within the time limit.")
    return shown, notes


def _limit_row(limit: Document) -> tuple[str, ...]:
    name, show = _limit_name(limit)
    used, most = show(limit["used"]), show(limit["limit"])
    answer = limit["relaxed"]
    return (
        name, used, most, show(max(limit["slack"], 0.0)), BINDS[limit["binds"]], limit["step"],
        *_differences(answer, gain=True),
    )  # fmt: skip


def _limit_name(limit: Document) -> tuple[str, Any]:
    kind, where = limit["kind"], limit["where"]
    names = {"replicas": f"k of {where}", "nodes": f"nodes for {where}", "capacity": f"units on {where}"}
    shows = {"response": ms, "cost": lambda c: f"{c:.2f} $/h", "downtime": lambda s: f"{s:.3f} s"}
    return str(names.get(kind, where)), shows.get(kind, lambda x: f"{x:g}")


def _differences(answer: Document, *, gain: bool) -> tuple[str, str, str, str]:
    """F, R, C, T_D of an answer against the chosen deployment; F as a gain where that is what is asked."""
    words = {"infeasible": "impossible", "unknown": "no answer in time", "not asked": "not asked"}
    if answer["status"] in words:
        return words[answer["status"]], "", "", ""
    objective_change = -answer["dF"] if gain else answer["dF"]
    found = signed(objective_change, "", 6)
    if answer["status"] == "feasible":
        found += " (at least)" if gain else " (at most)"
    return (
        found,
        signed(1000 * answer["dR"], "ms", 1),
        signed(answer["dC"], "$/h", 2),
        signed(answer["dT_D"], "s", 3),
    )


def alternative_table(document: Document) -> TableOfWords:
    """The cost of a different choice for one operator; the next best of each operator is marked."""
    rows: list[Any] = []
    marked: list[Any] = []
    missing: list[Any] = []
    for operator in (entry["id"] for entry in document["operators"]):
        best = document["next_best"][operator]
        if best is not None and not best["exact"]:
            missing.append(operator)
        for entry in (a for a in document["alternatives"] if a["operator"] == operator):
            if best is not None and all(entry[key] == best[key] for key in ("change", "node", "others")):
                marked.append(len(rows))
            rows.append(_alternative_row(entry))
    notes = [
        "Marked: the next best for each operator. Solved anew: the best deployment in which this operator has fewer "
        "or more replicas, leaves a node or has fewer there, all others chosen again. Fixed: one replica removed, "
        "added or moved, the others stay."
    ]
    if missing:
        notes.append(
            "For " + ", ".join(missing) + " something better than the marked one may exist: not all questions were "
            "answered with a proof."
        )
    return TableOfWords(
        title="Alternatives",
        head=("operator", "change", "others", "F", "R", "C", "T_D", "then"),
        rows=tuple(rows),
        right=frozenset({3, 4, 5, 6}),
        marked=frozenset(marked),
        notes=tuple(notes),
    )


def _alternative_row(entry: Document) -> tuple[str, ...]:
    change = CHANGES[entry["change"]] + (f" {entry['node']}" if entry["node"] else "")
    answer = entry["answer"]
    return (entry["operator"], change, entry["others"], *_differences(answer, gain=False), changes(entry))


def changes(entry: Document) -> str:
    """The operator's own new nodes, and how many others change."""
    everything = entry["answer"]["changes"]
    own = everything.get(entry["operator"])
    others = len(everything) - (own is not None)
    words = [f"{placed(own)}"] if own is not None else []
    if others:
        words.append(f"{others} other{'s' if others > 1 else ''} change{'' if others > 1 else 's'}")
    return "; ".join(words)


def operator_table(document: Document) -> TableOfWords:
    """The work and cost of each operator."""
    return TableOfWords(
        title="Operators",
        head=("operator", "replicas", "nodes", "load", "latency", "spare", "cost", "own downtime"),
        rows=tuple(
            (
                op["id"], f"{op['replicas']} of {op['k']}", placed(op["placed"]), f"{op['load']:g}/s",
                ms(op["latency"]), _spare(op), f"{op['cost']:.2f} $/h", f"{op['downtime']:.3f} s",
            )
            for op in document["operators"]
        ),
        right=frozenset({1, 3, 4, 5, 6, 7}),
        marked=frozenset(at for at, op in enumerate(document["operators"]) if op["slack"] == 0),
        notes=("Spare: how much slower it could be before R grows; critical ones are marked.",),
    )  # fmt: skip


def _spare(entry: Document) -> str:
    return "critical" if entry["slack"] == 0 else ms(entry["slack"])


def stream_table(document: Document) -> TableOfWords:
    """The traffic and cost of each stream."""
    return TableOfWords(
        title="Streams",
        head=("stream", "rate", "delay", "spare", "traffic cost"),
        rows=tuple(
            (f"{s['from']} → {s['to']}", f"{s['rate']:g}/s", ms(s["delay"]), _spare(s), f"{s['cost']:.2f} $/h")
            for s in document["streams"]
        ),
        right=frozenset({1, 2, 3, 4}),
        marked=frozenset(at for at, s in enumerate(document["streams"]) if s["slack"] == 0),
    )


def limit_notes(document: Document) -> Iterator[str]:
    """Warnings that belong to the whole."""
    if document["status"] != "optimal":
        yield (
            "The optimum is not proven, so every difference is against the best deployment found; "
            "a negative difference means that a better one exists."
        )
    unanswered = sum(
        entry["status"] in ("feasible", "unknown", "not asked")
        for entry in (*(a["answer"] for a in document["alternatives"]), *(x["relaxed"] for x in document["limits"]))
    )
    if unanswered:
        yield f"{unanswered} questions were not closed within the time limit; a longer --time-limit answers more."
