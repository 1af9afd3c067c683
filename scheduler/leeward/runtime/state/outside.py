"""Attributes of a stateful component beside `self.state` that change while it processes tuples.

They stay behind when key groups move: a counter in `self.counter` begins again at its new owner. A task looks for them
once a second at most, by fingerprints of bounded size, and never at a tuple.

Not looked at: attributes that `resumed`, `regrouped`, `before_checkpoint` or `committed` mention, as these hooks
rebuild or flush them; those that the class names in `transient`; objects whose inside is not known (clients, files).
"""

from __future__ import annotations

import types
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

#: Hooks that take care of attributes.
HOOKS = ("resumed", "regrouped", "before_checkpoint", "committed")
#: Class attribute that names attributes whose content may be lost.
TRANSIENT = "transient"
#: Packages that the base classes of components come from.
_BASES = ("leeward", "pystorm", "streamparse", "builtins")
#: Attributes of pystorm's BatchingBolt, which are flushed at each cut (`task/mixins.py`).
_BATCHES = ("_batches", "_tick_counter", "_current_key")
_ENDS = 8  # entries of a container that are looked at, at either end
_DEPTH = 3
_PARTS = 200  # of one attribute
_MOST = 8  # attributes that are named


def user_classes(component: type) -> list[type]:
    """The classes of a component that are the user's, the most derived first."""
    return [cls for cls in component.__mro__ if cls.__module__.partition(".")[0] not in _BASES]


def mentioned(component: type, methods: Iterable[str]) -> set[str]:
    """Names of attributes in these methods of the user's, and in the methods that they mention."""
    found: set[str] = set()
    waiting = list(methods)
    while waiting:
        name = waiting.pop()
        for cls in user_classes(component):
            code = getattr(vars(cls).get(name), "__code__", None)
            for other in _names(code) - found if code else ():
                found.add(other)
                waiting.append(other)
    return found


def _names(code: types.CodeType) -> set[str]:
    inner = (part for part in code.co_consts if isinstance(part, types.CodeType))
    return set(code.co_names).union(*map(_names, inner))


def taken_care_of(component: type) -> set[str]:
    """Attributes that the hooks mention, or that the class names as transient."""
    return mentioned(component, HOOKS) | set(getattr(component, TRANSIENT, None) or ())


def uses_state(component: type) -> bool:
    """Some method of the user's mentions `self.state`; or the class says by `transient` that it needs none."""
    if getattr(component, TRANSIENT, None) is not None:
        return True
    methods = {name for cls in user_classes(component) for name in vars(cls)}
    return "state" in mentioned(component, methods)


class Outside:
    """The attributes of one component, from the time when its state was there first."""

    def __init__(self, component: Any, ours: Iterable[str]) -> None:
        """`ours`: attributes that the base classes have set."""
        cls = type(component)
        theirs = {name for base in cls.__mro__ if base not in user_classes(cls) for name in vars(base)}
        self._component, self._package = component, cls.__module__.partition(".")[0]
        self._skip = {*ours, *theirs, *_BATCHES, *taken_care_of(cls)}
        self._before: dict[str, object] | None = None
        self._found: set[str] = set()

    def begin(self) -> None:
        """The component is about to process its first tuple."""
        if self._before is None:
            self._before = dict(self._prints())

    def look(self) -> tuple[str, ...]:
        """Attributes that have changed since. Any thread may call it: one that changes meanwhile has changed."""
        if self._before is None:
            return ()
        for name, now in self._prints():
            if name not in self._before or self._before[name] != now:
                self._found.add(name)
        return tuple(sorted(self._found)[:_MOST])

    def _prints(self) -> Iterator[tuple[str, object]]:
        for name, value in list(vars(self._component).items()):
            if name not in self._skip and name not in self._found:
                yield name, fingerprint(value, self._package)


def fingerprint(value: object, package: str) -> object:
    """Equal for equal content, as far as it is looked at. `package`: of the user, into whose objects it looks."""
    try:
        return _Print(package).of(value, _DEPTH)
    except RuntimeError:  # a container grew while it was looked at
        return object()


class _Print:
    def __init__(self, package: str) -> None:
        self._package, self._left = package, _PARTS

    def of(self, value: Any, depth: int) -> object:
        self._left -= 1
        if isinstance(value, bool | int | float | complex):
            return repr(value)
        if isinstance(value, str | bytes | bytearray):
            return len(value), value[:64], value[-64:]
        kind = type(value).__name__
        if depth == 0 or self._left < 0:
            return None
        if isinstance(value, Mapping):
            ends = [*islice(value.items(), _ENDS), *_last(value)]
            return kind, len(value), self._all((part for pair in ends for part in pair), depth)
        if isinstance(value, list | tuple | deque):
            length = len(value)
            ends = [value[at] for at in (*range(min(_ENDS, length)), *range(max(0, length - _ENDS), length))]
            return kind, length, self._all(ends, depth)
        if isinstance(value, set | frozenset):
            return kind, len(value), self._all(islice(value, 2 * _ENDS), depth)
        if type(value).__module__.partition(".")[0] == self._package and hasattr(value, "__dict__"):
            return kind, self._all((part for pair in vars(value).items() for part in pair), depth)
        return None  # as for None itself: a connection that was opened is no state

    def _all(self, parts: Iterable[object], depth: int) -> tuple[object, ...]:
        return tuple(self.of(part, depth - 1) for part in parts)


def _last(mapping: Mapping[Any, Any]) -> list[tuple[Any, Any]]:
    return list(islice(reversed(mapping.items()), _ENDS)) if isinstance(mapping, dict) else []
