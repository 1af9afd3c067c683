"""The testbed live: the documents of its organisations, and its queries as areas.

Domain d (from 0) and node n are the box of longitudes 10 d to 10 d + 9 and latitudes 2 n to 2 n + 1.  So an area can
name one node, a node in each domain, or all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from leeward.policies.dssp.disciplines import DISCIPLINES
from leeward.policies.dssp.model.area import Area
from leeward.policies.dssp.simulation.setup import PERCENT, Queries, Setting

CAPABILITY, PROVIDER, LOAD = "air", "city", "load"
#: Part of the time that a node of the testbed may be busy: its loads are above what M/M/1 queues would sustain.
BUSY = 0.95


def domain_name(domain: int) -> str:
    """Of domain number `domain`, from 0."""
    return f"domain-{domain + 1}"


def area_of(domain: int, node: int, domains: int = 1, nodes: int = 1) -> Area:
    """Of so many domains and nodes from these on."""
    return Area(10.0 * domain, 2.0 * node, 10.0 * (domain + domains - 1) + 9, 2.0 * (node + nodes - 1) + 1)


def everywhere(setting: Setting) -> Area:
    """All nodes."""
    domains, nodes = setting.means.shape
    return area_of(0, 0, domains, nodes)


def domain_document(
    setting: Setting, domain: int, *, discipline: str, seed: int, scaling: bool, common: dict[str, Any]
) -> dict[str, Any]:
    """A domain's file (model/organisation_files.py); `common`: addresses and paths."""
    nodes = setting.means.shape[1]
    return {
        **common, "name": domain_name(domain), "capabilities": [CAPABILITY], "discipline": discipline, "busy": BUSY,
        "scaling": scaling,
        "calibrate": 300, "emulated": {"shape": setting.shape, "seed": seed, "first": domain * nodes},
        "nodes": [
            {"areas": [area_of(domain, node).to_json()], "execution_s": float(setting.means[domain, node])}
            for node in range(nodes)
        ],
    }  # fmt: skip


def service_documents(setting: Setting, rate: float, weights: Mapping[str, float]) -> dict[str, dict[str, Any]]:
    """Class -> its service, as a provider opens it; `rate`: of all queries, queries/s; `weights`: 1 where none."""
    domains, nodes = setting.means.shape
    found = {}
    for one in setting.classes:
        assert isinstance(one.domains, int) and isinstance(one.nodes, int)
        reached = (1 if one.only is not None else domains) * nodes
        area = everywhere(setting) if one.only is None else area_of(one.only, 0, 1, nodes)
        found[one.name] = {
            "capability": CAPABILITY, "areas": [area.to_json()], "percent": PERCENT, "objective_s": one.objective_s,
            "rank": one.rank, "weight": weights.get(one.name, 1.0),
            "rate": rate * one.share * one.domains * one.nodes / reached,
        }  # fmt: skip
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One query."""

    at_s: float  #: from the beginning
    service: str
    area: Area
    objective_s: float


def asked(queries: Queries, rate: float) -> list[Asked]:
    """All of them, at `rate` queries/s."""
    setting, found, now = queries.setting, [], 0.0
    first_task = queries.domains.cumsum() - queries.domains
    for number, kind in enumerate(queries.kind):
        one = setting.classes[kind]
        now += float(queries.gaps[number]) / rate
        area = area_of(
            int(queries.domain[first_task[number]]), int(queries.first_node[number]),
            int(queries.domains[number]), int(queries.nodes[number]),
        )  # fmt: skip
        found.append(Asked(at_s=now, service=one.name, area=area, objective_s=one.objective_s))
    return found


#: Name in experiments -> entry point of `leeward.disciplines`.
ENTRY_POINTS = dict(zip(DISCIPLINES, ("dssp-fifo", "dssp-spr", "dssp-edf", "dssp-edfq", "dssp-salvage"), strict=True))
