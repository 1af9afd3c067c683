"""State that a stateful component keeps outside of `self.state`, in words for people."""

from __future__ import annotations

from collections.abc import Sequence

REMEDY = (
    "Keep it in self.state, rebuild it in resumed(), or name it in the class attribute `transient` if it may be lost."
)
UNUSED_REMEDY = "Keep its state in self.state, or set `transient = ()` in the class if it keeps none."
STATELESS_REMEDY = (
    "Derive it from StatefulBolt and keep it in self.state, or name it in the class attribute `transient` if it may be "
    "lost."
)

FORCE = "leeward reconfigure --force moves it all the same."


def listed(names: Sequence[str]) -> str:
    """`a, b and c`."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def kept_outside(component: str, attributes: Sequence[str]) -> str:
    """That it keeps these attributes, and what follows."""
    return (
        f"{component} keeps {listed(attributes)} outside of self.state, which its tuples change and which is lost when "
        "its key groups move."
    )


def warning(component: str, attributes: Sequence[str]) -> tuple[str, str]:
    """Why a person should look, and the remedy: it keeps these attributes, or, if there are none, has no state."""
    if attributes:
        return kept_outside(component, attributes), REMEDY
    return state_unused(component), UNUSED_REMEDY


def state_unused(component: str) -> str:
    """That it is stateful, but has no state."""
    return f"{component} keeps state by its class, but no method of it uses self.state."


def kept_by_stateless(component: str, attributes: Sequence[str]) -> str:
    """That it keeps these attributes, though its class promises that it keeps none."""
    return (
        f"{component} is stateless by its class, but keeps {listed(attributes)}, which its tuples change: each replica "
        "has its own, and no key group takes it along."
    )
