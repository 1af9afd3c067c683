"""Finds, in the source of a stateful component, attributes beside `self.state` that its methods change.

`outside.py` notices them while it runs; this finds them before submission. It follows calls of `self.method()` from
the methods that get input, and local names for `self.attribute`. It does not follow attributes into other functions.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field

from leeward.runtime.state.outside import taken_care_of, user_classes

#: Methods that get input.
INPUTS = ("process", "process_tick", "process_batch", "next_tuple", "pulse", "ack", "fail")
_MUTATORS = {
    *("append", "appendleft", "add", "clear", "discard", "extend", "extendleft", "insert", "move_to_end", "pop"),
    *("popitem", "popleft", "remove", "reverse", "rotate", "setdefault", "sort", "subtract", "update"),
}
_FUNCTIONS = {"heappush", "heappop", "heappushpop", "heapreplace", "heapify", "insort", "insort_left", "insort_right"}
_CONTAINERS = {"list", "dict", "set", "bytearray", "deque", "Counter", "defaultdict", "OrderedDict", "array"}
_OURS = {"state", "counters", "logger", "shown"}


@dataclass(frozen=True, slots=True)
class Written:
    """An attribute that a method changes."""

    attribute: str
    where: str  #: file:line


@dataclass(slots=True)
class _Class:
    """The methods of one component, of all its classes."""

    methods: dict[str, list[tuple[ast.FunctionDef, str, int]]] = field(default_factory=dict)  # with file, first line
    containers: set[str] = field(default_factory=set)  # attributes that begin as containers
    begun: set[str] = field(default_factory=set)  # attributes whose beginning is known


def written_outside(component: type) -> list[Written]:
    """Attributes beside `self.state` that tuples change, each where it is changed first. Sources may be missing."""
    known = _read(component)
    skip = taken_care_of(component) | _OURS
    found: dict[str, str] = {}
    reached, waiting = set[str](), list(INPUTS)
    while waiting:
        name = waiting.pop(0)
        if name in reached:
            continue
        reached.add(name)
        for function, file, offset in known.methods.get(name, ()):
            for attribute, line, by_call in _writes(function):
                sure = not by_call or attribute in known.containers or attribute not in known.begun
                if sure and attribute not in skip and attribute not in known.methods:
                    found.setdefault(attribute, f"{file}:{offset + line}")
            waiting += _calls(function)
    return [Written(attribute, where) for attribute, where in sorted(found.items())]


def _read(component: type) -> _Class:
    known = _Class()
    for cls in user_classes(component):
        try:
            lines, first = inspect.getsourcelines(cls)
            body = ast.parse(textwrap.dedent("".join(lines))).body[0]
        except (OSError, TypeError, SyntaxError):
            continue
        assert isinstance(body, ast.ClassDef)
        for statement in body.body:
            if isinstance(statement, ast.FunctionDef):
                entry = statement, inspect.getsourcefile(cls) or "", first - 1
                known.methods.setdefault(statement.name, []).append(entry)
                _note_beginnings(statement, known)
            elif isinstance(statement, ast.Assign):
                for name in (target.id for target in statement.targets if isinstance(target, ast.Name)):
                    _note(name, statement.value, known)
    return known


def _note_beginnings(function: ast.FunctionDef, known: _Class) -> None:
    """Values that the method assigns to attributes."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                for name, value in _pairs(target, node.value):
                    attribute = _attribute(name, {})
                    if attribute and isinstance(name, ast.Attribute) and isinstance(name.value, ast.Name):
                        _note(attribute, value, known)


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        yield from zip(target.elts, value.elts, strict=True)
    else:
        yield target, value


def _note(attribute: str, value: ast.expr, known: _Class) -> None:
    known.begun.add(attribute)
    called = value.func if isinstance(value, ast.Call) else None
    name = called.id if isinstance(called, ast.Name) else called.attr if isinstance(called, ast.Attribute) else ""
    shown = ast.List | ast.Dict | ast.Set | ast.ListComp | ast.DictComp | ast.SetComp
    if name in _CONTAINERS or isinstance(value, shown):
        known.containers.add(attribute)


def _attribute(node: ast.AST, names: dict[str, str]) -> str:
    """X of `self.X`, `self.X[...]`, `self.X.y...`, or of a local name for one of them; empty for others."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
            return node.attr
        node = node.value
    return names.get(node.id, "") if isinstance(node, ast.Name) else ""


def _writes(function: ast.FunctionDef) -> Iterator[tuple[str, int, bool]]:
    """(attribute, line, by a method's call or a function's) of each change."""
    names: dict[str, str] = {}  # local name -> attribute
    placed = (node for node in ast.walk(function) if isinstance(node, ast.expr | ast.stmt))
    nodes = sorted(placed, key=lambda node: (node.lineno, node.col_offset))
    for node in nodes:
        for target in _targets(node):
            attribute = _attribute(target, names)
            if attribute and not isinstance(target, ast.Name):
                yield attribute, target.lineno, False
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            names[node.targets[0].id] = _attribute(node.value, names)
        if isinstance(node, ast.Call):
            changed: ast.AST | None = None
            if isinstance(node.func, ast.Attribute) and node.func.attr in _MUTATORS:
                changed = node.func.value
            called = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if called in _FUNCTIONS and node.args:
                changed = node.args[0]
            # an iterator goes on, whatever it began as
            goes_on = isinstance(node.func, ast.Name) and node.func.id == "next" and bool(node.args)
            if goes_on:
                changed = node.args[0]
            if changed is not None and (attribute := _attribute(changed, names)):
                yield attribute, node.lineno, not goes_on


def _targets(node: ast.AST) -> Iterator[ast.expr]:
    """Expressions that a statement assigns to or deletes."""
    given: list[ast.expr] = []
    if isinstance(node, ast.Assign | ast.Delete):
        given = list(node.targets)
    elif isinstance(node, ast.AugAssign | ast.AnnAssign | ast.For | ast.NamedExpr):
        given = [node.target]
    while given:
        target = given.pop()
        if isinstance(target, ast.Tuple | ast.List):
            given += target.elts
        else:
            yield target.value if isinstance(target, ast.Starred) else target


def _calls(function: ast.FunctionDef) -> list[str]:
    """Methods of its own, or of its base classes, that it calls or hands on."""
    calls = []
    for node in ast.walk(function):
        if isinstance(node, ast.Attribute):
            owner = node.value
            is_super = isinstance(owner, ast.Call) and isinstance(owner.func, ast.Name) and owner.func.id == "super"
            if is_super or (isinstance(owner, ast.Name) and owner.id == "self"):
                calls.append(node.attr)
    return calls
