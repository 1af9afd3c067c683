"""`queue = ordered_by(...)` of a bolt: a discipline that orders the tuples in front of it, and the facts of these."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from leeward.core.errors import ConfigError
from leeward.core.policy import Discipline
from leeward.runtime.dsl.inputs import Receiver, refuse_missing_fields
from leeward.runtime.dsl.specs import KEYED_CLASS
from leeward.runtime.named import load, located

#: Entry points of disciplines, as `control/registry.py` finds them.
GROUP = "leeward.disciplines"
#: Tuples that a bolt reads ahead at most. A discipline looks at all of them for each tuple, in 0.15 ms (EDFQ) or 0.35.
MOST_WAITING = 1000

Fact = str | int | float | None


@dataclass(frozen=True, slots=True)
class Ordering:
    """A bolt's queue as its author wrote it."""

    discipline: Any  #: its name, its class or an object
    facts: Mapping[str, str | int | float]  #: fact -> the field that has it, or its value for every tuple
    most: int  #: tuples that may wait

    @property
    def fields(self) -> dict[str, str]:
        """Field -> the fact that it is."""
        return {field: fact for fact, field in self.facts.items() if isinstance(field, str)}


def ordered_by(
    discipline: str | type | Discipline, *, arrived: Fact = None, rank: Fact = None, due: Fact = None,
    unloaded: Fact = None, execution: Fact = None, stages: Fact = None, weight: Fact = None, most: int = MOST_WAITING,
) -> Ordering:  # fmt: skip
    """A bolt's queue: whenever the bolt is free, `discipline` says which of the waiting tuples is next.

    `discipline` is a name (an entry point in `leeward.disciplines`, or `module:Class`), a class, or, as the class
    attribute `queue`, an object; `core.policy.Discipline` says what it has. The facts of a tuple that it goes by are
    named by the fields that have them, or given as a number for all tuples. Times are seconds on the wall clock.

        arrived    when the query came; else when this task read the tuple
        rank       of its class, the lower one first; else 0
        due        when the query is to be answered; else after all tuples that have a deadline
        unloaded   the time that its task takes on idle nodes; else 0
        execution  mean time for one tuple; else the emulated service time, or what this task has measured
        stages     of that time's distribution, 1 or more; else 1 (exponential)
        weight     of its class: a late query counts so much, above 0; else 1

    At most `most` tuples are read ahead; a worker sends no more than 1,024. Raises ConfigError for a number that no
    tuple can have.
    """
    given = {
        "arrived": arrived, "rank": rank, "due": due, "unloaded": unloaded, "execution": execution, "stages": stages,
        "weight": weight,
    }  # fmt: skip
    facts = {fact: value for fact, value in given.items() if value is not None}
    for fact, value in facts.items():
        if not isinstance(value, str) and (need := unfit(fact, value)):
            raise ConfigError(f"ordered_by: {fact} is {value!r}.", remedy=f"Name a field, or give {need}.")
    if not isinstance(most, int) or most < 1:
        raise ConfigError(f"ordered_by: most is {most!r}.", remedy="Give the tuples that may wait, 1 or more.")
    return Ordering(discipline, facts, most)


def unfit(fact: str, value: object) -> str:
    """The kind of number that this fact has to be; empty if the value is one."""
    number = isinstance(value, int | float) and not isinstance(value, bool) and value == value  # NaN has no order
    if fact == "stages":
        return "" if isinstance(value, int) and number and value >= 1 else "a whole number, 1 or more"
    if fact == "execution":
        return "" if isinstance(value, int | float) and number and value > 0 else "a number of seconds above 0"
    if fact == "weight":
        return "" if isinstance(value, int | float) and number and 0 < value < math.inf else "a number above 0"
    return "" if number else "a number"


def queue_conf(component: type, receiver: Receiver, inputs: Any, routed: Mapping[Any, Any], given: object) -> Any:
    """The queue that a spec gives, or else the class, as it travels; None if there is none.

    `inputs`: as the spec has them; `routed`: with their groupings. Raises ConfigError for a queue that cannot travel,
    and for an input without one of its fields.
    """
    own = getattr(component, "queue", None)
    ordering = own if given is None else given
    if ordering is None:
        return None
    name = receiver.name
    if not isinstance(ordering, Ordering):
        raise ConfigError(
            f"{name}: queue is {ordering!r:.60}, which orders nothing.",
            remedy="Write queue = ordered_by('dssp-edfq', due='due'), say; or give the attribute another name.",
        )
    refuse_missing_fields(receiver, inputs, ordering.fields)
    java = [grouping.custom_object for grouping in routed.values()]
    return {
        "discipline": _where(ordering.discipline, name, own=ordering is own),
        "facts": dict(ordering.facts),
        "most": ordering.most,
        "keyed": any(one.full_class_name == KEYED_CLASS for one in java),
    }


def _where(discipline: Any, name: str, *, own: bool) -> str | None:
    """`module:Class`; None for the object in the class attribute, which a worker makes anew as it imports the class."""
    if isinstance(discipline, str):
        where = located(discipline, GROUP, "discipline")
        _check(load(where, f"{name}: queue is ordered by {where}"), where, name)
        return where
    _check(discipline, repr(discipline), name)
    if not isinstance(discipline, type):
        if own:
            return None
        raise ConfigError(
            f"{name}: queue is ordered by an object, {discipline!r:.60}, which cannot travel to a worker.",
            remedy="Make ordered_by(...) the class attribute `queue`, or name a class.",
        )
    if discipline.__module__ == "__main__" or "<" in discipline.__qualname__:
        raise ConfigError(
            f"{name}: queue is ordered by {discipline.__qualname__}, which a worker cannot import.",
            remedy="Define the class at the top of a module in src/.",
        )
    return f"{discipline.__module__}:{discipline.__qualname__}"


def _check(discipline: Any, shown: str, name: str) -> None:
    if not callable(getattr(discipline, "next_item", None)):
        raise ConfigError(
            f"{name}: queue is ordered by {shown:.80}, which has no method next_item.",
            remedy="Give it `next_item(waiting, *, now)`, as leeward.core.policy.Discipline has.",
        )


def discipline_of(conf: Mapping[str, Any], component: type, name: str) -> Discipline:
    """The discipline, in a worker. Raises ConfigError if it cannot be imported or made."""
    where = conf["discipline"]
    if where is None:
        return component.queue.discipline  # type: ignore[attr-defined,no-any-return]
    kind = load(where, f"{name}: queue is ordered by {where}")
    try:
        made: Discipline = kind()
    except TypeError as error:
        raise ConfigError(
            f"{name}: queue is ordered by {where}, which cannot be made without arguments ({error}).",
            remedy="Make ordered_by(an object) the class attribute `queue`.",
        ) from error
    return made
