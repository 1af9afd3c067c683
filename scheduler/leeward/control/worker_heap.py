"""The heap of a worker's JVM, as the topology's configuration sets it. Pure.

A worker's command line has the options of `worker.childopts`, then those of `topology.worker.childopts`, and of two
`-Xmx` the JVM takes the last. Storm replaces `%HEAP-MEM%` by the sum of the on-heap requests of the slot's executors,
or by `worker.heap.memory.mb` if that is 0. The stored configuration of a topology includes Nimbus'. A supervisor whose
own `worker.childopts` differs starts other workers, which is not seen here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

OPTIONS = ("worker.childopts", "topology.worker.childopts")
LOG_WRITER = "topology.worker.logwriter.childopts"
REQUEST, FALLBACK = "topology.component.resources.onheap.memory.mb", "worker.heap.memory.mb"
_MOST = re.compile(r"-Xmx(\S+)")
_SIZES = {"": 2.0**-20, "k": 2.0**-10, "m": 1.0, "g": 2.0**10, "t": 2.0**20}


class Heap(NamedTuple):
    """The part of a JVM's memory that holds objects; it takes more for code, threads and classes."""

    mb: float | None  #: most; None: the configuration does not say
    key: str  #: of the configuration that says so, or why none does


def worker_heap(conf: Mapping[str, object], parts: Iterable[Mapping[str, object]]) -> Heap:
    """Of a worker. `parts`: for each executor in its slot, the configuration of its component."""
    found = [(key, value) for key in OPTIONS for value in _MOST.findall(_text(conf.get(key)))]
    if not found:
        return Heap(None, "no -Xmx is set: the JVM takes a share of the node's memory")
    key, value = found[-1]
    if "%HEAP-MEM%" not in value:
        return Heap(_megabytes(value), key)
    request = sum(_number(part.get(REQUEST, conf.get(REQUEST))) for part in parts)
    return Heap(request, REQUEST) if request else Heap(_number(conf.get(FALLBACK)) or None, FALLBACK)


def log_writer_heap(conf: Mapping[str, object]) -> Heap:
    """Of the second JVM that Storm starts for each worker, which writes its log."""
    found = _MOST.findall(_text(conf.get(LOG_WRITER)))
    return Heap(_megabytes(found[-1]) if found else None, LOG_WRITER)


def _text(options: object) -> str:
    """Options are a text or a list of texts."""
    return " ".join(map(str, options)) if isinstance(options, list) else str(options or "")


def _megabytes(size: str) -> float | None:
    found = re.fullmatch(r"(\d+)([kmgt]?)", size.lower())
    return float(found[1]) * _SIZES[found[2]] if found else None


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and value > 0 else 0.0
