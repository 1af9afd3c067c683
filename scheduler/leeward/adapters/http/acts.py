"""The acts of people, as data: each becomes a path, a part of OpenAPI and a request in ZooKeeper.

An act on a topology is a line of `ACTS`: its name, its body, and the request that the leader of the topology reads
(`control/ports.RequestStore`). The commands of the same names leave the same requests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

Name = Annotated[str, Field(min_length=1, max_length=200)]
Count = Annotated[int, Field(ge=1, le=10_000, strict=True)]
#: Of those components that change.
Replicas = Annotated[
    dict[Name, dict[Name, Count]],
    Field(min_length=1, max_length=1000, description="Component -> node -> replicas, of those that change."),
]
#: Seconds that a request waits for its answer; then it is answered 202, and the path of the request tells later.
Wait = Annotated[float, Field(ge=0, le=300)]


class Body(BaseModel):
    """Of every act."""

    model_config = ConfigDict(extra="forbid")
    wait_s: Wait = Field(30.0, description="Seconds to wait for the end; then 202 with the path of the request.")


class Reconfigure(Body):
    """Scale or move components by hand."""

    replicas: Replicas
    force: bool = Field(False, strict=True, description="Also if state outside of self.state is lost.")
    dry_run: bool = Field(False, strict=True, description="Tell what would move and its price; change nothing.")

    @property
    def named(self) -> str:
        """The topology that the body names; empty: none."""
        return ""


class Apply(Reconfigure):
    """Carry out a deployment document."""

    topology: str = Field("", max_length=200, description="That of the path, if it is given.")
    replicas: Replicas = Field(alias="deployment")

    @property
    def named(self) -> str:
        """By the document."""
        return self.topology


class Recover(Body):
    """Decide from where a topology goes on that is held because no cut can be read."""

    cut: Annotated[int, Field(ge=0, le=2**53, strict=True)] = Field(
        description="Restore this cut; 0: begin with empty state."
    )


class Approve(Body):
    """Carry out the plan that waits for approval."""

    plan: Annotated[int, Field(ge=0, le=2**31, strict=True)] = Field(
        0, description="Its number; 0: the one that waits."
    )


class Freeze(Body):
    """Measure and plan, but carry nothing out except the recovery from losses."""

    why: Annotated[str, Field(max_length=500)] = Field("", description="Told wherever a plan is refused for it.")


class Thaw(Body):
    """Carry plans out again."""


class Rollback(Body):
    """Go back to the deployment before the last reconfiguration."""

    freeze: Annotated[str, Field(max_length=500)] = Field("", description="Freeze it then, for this reason.")


@dataclass(frozen=True, slots=True)
class Act:
    """An act on a topology."""

    name: str  #: of the path /api/topologies/{name}/<name>
    body: type[Body]
    request: Callable[[Any], Mapping[str, object]]  #: body -> what is left in ZooKeeper

    @property
    def about(self) -> str:
        """One sentence for people."""
        return (self.body.__doc__ or "").strip()

    @property
    def plain(self) -> bool:
        """Its body needs no field: the page has a button for it."""
        return not any(field.is_required() for field in self.body.model_fields.values())


ACTS = (
    Act("reconfigure", Reconfigure, lambda body: {"replicas": body.replicas, "force": body.force}),
    Act("apply", Apply, lambda body: {"replicas": body.replicas, "force": body.force}),
    Act("recover", Recover, lambda body: {"recover": body.cut}),
    Act("approve", Approve, lambda body: {"approve": body.plan}),
    Act("freeze", Freeze, lambda body: {"freeze": True, "why": body.why}),
    Act("thaw", Thaw, lambda body: {"freeze": False, "why": ""}),
    Act("rollback", Rollback, lambda body: {"rollback": True, "freeze": body.freeze}),
)


@dataclass(frozen=True, slots=True)
class NodeAct:
    """An act on a node of the cluster: a flag that all topologies see."""

    name: str  #: of the path /api/nodes/{node}/<name>
    draining: bool
    about: str


NODE_ACTS = (
    NodeAct("drain", True, "Empty a node: its replicas leave with the next plans."),
    NodeAct("undrain", False, "Use a node again."),
)
