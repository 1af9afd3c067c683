"""The compiled local search keeps what each operator and edge adds to F, and loads nothing that it does not run."""

from __future__ import annotations

import json
import subprocess
import sys
from types import FunctionType

import numpy as np
from hypothesis import given, settings

from leeward.policies.edrp.exact import kernel_downtime, kernel_improve
from leeward.policies.edrp.exact.arrays import arrays_of
from leeward.policies.edrp.exact.search import warm_up_near
from leeward.policies.edrp.methods.near import serving
from tests.helpers.solve_builders import problems, reference_document


def interpreted(*modules):
    """The kernels of these modules as plain Python, which call each other."""
    names = {}
    for module in modules:
        for name, value in vars(module).items():
            plain = getattr(value, "py_func", None)
            names[name] = value if plain is None else FunctionType(plain.__code__, names, name)
    return names


def improve_with_all_terms_anew(p, draft):
    """`improve`, but before each look everything is computed again."""
    names = interpreted(kernel_downtime, kernel_improve)
    worth = names["worth"]

    def anew(p, d):
        for i in range(len(p.k)):
            names["refresh"](p, d, i)
        return worth(p, d)

    names["worth"] = anew
    names["improve"](p, draft)


def begun(p, problem, deployment, looks):
    nodes, size = np.zeros((len(p.k), int(p.k.max())), dtype=np.int64), np.zeros(len(p.k), dtype=np.int64)
    for i, operator in enumerate(problem.operators):
        placed = [problem.node_index[u] for u, count in deployment[operator.id].items() for _ in range(count)]
        nodes[i, : len(placed)], size[i] = placed, len(placed)
    return kernel_improve.draft_of(p, nodes, size, looks)


@settings(max_examples=25)
@given(problems())
def test_what_is_kept_of_a_deployment_is_what_it_would_be_if_computed_anew(problem):
    start = serving(problem, problem.current or {})
    if start is None:
        return
    warm_up_near()
    p = arrays_of(problem)
    kept, anew = begun(p, problem, start, 150), begun(p, problem, start, 150)
    kernel_improve.improve(p, kept)
    with np.errstate(all="ignore"):
        improve_with_all_terms_anew(p, anew)
    assert kept.value[0] == anew.value[0] and kept.budget[0] == anew.budget[0]
    assert [list(kept.nodes[i, :count]) for i, count in enumerate(kept.size)] == [
        list(anew.nodes[i, :count]) for i, count in enumerate(anew.size)
    ]
    assert (list(kept.own), list(kept.far), list(kept.toll)) == (list(anew.own), list(anew.far), list(anew.toll))


LOADED = """
import importlib, json, pkgutil, sys
import leeward.policies.edrp.exact as rooms
from leeward.policies.edrp.methods.near import solve_near
from leeward.policies.edrp.problem.document import problem_from_json
solve_near(problem_from_json(json.load(sys.stdin)))
modules = [importlib.import_module(rooms.__name__ + "." + m.name) for m in pkgutil.iter_modules(rooms.__path__)]
functions = [value.py_func for module in modules for value in vars(module).values() if getattr(value, "signatures", 0)]
print(*sorted({function.__module__.rpartition(".")[2] for function in functions}))
"""


def test_of_the_kernels_it_loads_its_own_alone():
    document = json.dumps(reference_document(60, 4))
    done = subprocess.run([sys.executable, "-c", LOADED], input=document, capture_output=True, text=True, check=True)
    assert "kernel_improve" in done.stdout.split()
    assert set(done.stdout.split()) <= {"kernel_downtime", "kernel_improve"}, "a caller has its callees in its code"
