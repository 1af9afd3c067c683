"""Recovery of state (paper, Fig. 11): the set-up of a run on real processes, the model beside it, and all rows.

The rates are those of links that a relay emulates (`leeward.cli._recovery_live`); bytes, files, checksums and
processes are real. D is the download of the node that rebuilds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from leeward.core.experiment import Curve, Finding, Panel, Row
from leeward.policies.agiledart.recovery.tuning import Facts, central_s, papers_s, rebuild_s, whole_fragments_s

MB = 1e6
#: The code of the paper's program.
M, K = 4, 2
#: Uplinks of the holders of fragments and of the central store, in parts of D.
UPLINKS, STORE_UPLINK = (0.5, 0.3, 0.25, 0.15, 0.15, 0.15), 1 / 3
#: Simultaneous failures: nodes in a ring that keep each other's fragments; every third may fail. Their uplinks.
RING, APART, RING_UPLINK = 24, 3, 0.6
#: Bounds of the issue: parts of the time that are saved, and how much longer 8 failures at once may take than one.
OVER_CENTRAL, OVER_WHOLE, FLAT = 63.0, 30.0, 1.25
#: In the specification: ours 2.4 s, whole fragments 3.5 s, a central store 11.8 s; it gives no rates.
INDEPENDENT_CENTRAL, INDEPENDENT_WHOLE = 100 * (1 - 2.4 / 11.8), 100 * (1 - 2.4 / 3.5)
SIZES_MB = (2, 8, 32, 128, 256, 1024)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """How much of it is run."""

    size: int  #: of the state, bytes
    download: float  #: D, bytes/s
    runs: int  #: of each way; their median counts
    failures: tuple[int, ...]  #: nodes that fail at the same time
    ring_size: int  #: state of each node of the ring, bytes
    ring_download: float  #: bytes/s


FULL = Scale(
    size=256 * 1024 * 1024, download=40 * MB, runs=3, failures=(1, 2, 4, 6, 8), ring_size=24_000_000,
    ring_download=4 * MB,
)  # fmt: skip
QUICK = Scale(
    size=32 * 1024 * 1024, download=24 * MB, runs=1, failures=(1, 8), ring_size=6_000_000, ring_download=4 * MB
)


def facts(download: float) -> Facts:
    """Of the run, for the model."""
    return Facts(uplinks=tuple(part * download for part in UPLINKS), download=download, upload=download, failures=0.0)


def neighbours(node: int) -> list[int]:
    """Of a node of the ring: those that keep its fragments."""
    return [(node + step) % RING for step in range(1, M + K + 1)]


def conclude(scale: Scale, measured: Mapping[str, float]) -> Finding:
    """From the figures of a run: seconds of `ours`, `whole`, `central`, `k failures`, `forged`; 0 or 1 of `loss told`,
    `wrong`; and seconds of `N at once`.
    """
    rows = [*_model(scale.download), *_measured(scale, measured), *_failures(scale, measured), *_ring(scale, measured)]
    at = tuple(float(number) for number in scale.failures)
    together = Panel(
        title="nodes that fail at the same time", unit="s", kind="lines", along="nodes", at=at,
        curves=(
            Curve(name="ours, measured", values=tuple(measured[f"{number} at once"] for number in scale.failures)),
            Curve(
                name="one central store, model",
                values=tuple(
                    central_s(number * scale.ring_size, STORE_UPLINK * scale.ring_download, scale.ring_download)
                    for number in scale.failures
                ),
            ),
        ),
    )  # fmt: skip
    return Finding(rows=tuple(rows), panels=(_sizes(scale.download), together), notes=NOTES)


def _times(size: float, download: float) -> dict[str, float]:
    """The model's, s, by way."""
    here = facts(download)
    return {
        "ours": rebuild_s(size, M, K, here),
        "whole": whole_fragments_s(size, M, sorted(here.uplinks, reverse=True), download, here.setup_s),
        "central": central_s(size, STORE_UPLINK * download, download, here.setup_s / 5),
        "paper": papers_s(size, M, K, min(here.uplinks)),
    }


def saved(ours: float, other: float) -> float:
    """Part of the other's time, %."""
    return 100 * (1 - ours / other)


def _model(download: float) -> list[Row]:
    rows, setting = [], f"model, D = {download / MB:g} MB/s"
    for size in SIZES_MB:
        found = _times(size * MB, download)
        rows.append(
            Row(
                figure="Fig. 11(b)", setting=setting, metric=f"{size} MB: saved, against one central store", unit="%",
                paper={2: 34.0, 256: 63.0}.get(size), ours=saved(found["ours"], found["central"]),
                low=OVER_CENTRAL if size >= 256 else None,
            )
        )  # fmt: skip
    for m, k in ((4, 2), (4, 4), (8, 2), (8, 4)):
        even = Facts(uplinks=(0.1 * download,) * (m + k), download=download, upload=download, failures=0.0)
        state = 256 * MB
        rows.append(
            Row(
                figure="Fig. 11(c)", setting=f"{setting}, 256 MB, uplinks of D / 10", metric=f"m = {m}, k = {k}",
                unit="s", paper=papers_s(state, m, k, 0.1 * download), ours=rebuild_s(state, m, k, even),
            )
        )  # fmt: skip
    return rows


def _measured(scale: Scale, measured: Mapping[str, float]) -> list[Row]:
    model = _times(scale.size, scale.download)
    setting = (
        f"measured, {scale.size / 2**20:g} MiB, D = {scale.download / MB:g} MB/s, m = {M}, k = {K}, runs: {scale.runs}"
    )
    seconds = [
        Row(figure="Fig. 11(b)", setting=setting, metric=f"{name}{how}", unit="s", ours=of[key])
        for key, name in (
            ("ours", "ours"), ("whole", f"{M} whole fragments, from the fastest"), ("central", "one central store")
        )
        for how, of in (("", measured), (", by the model", model))
    ]  # fmt: skip
    large = scale.size >= FULL.size
    return [
        *seconds,
        Row(figure="Fig. 11(b)", setting=setting, metric="saved, against one central store", unit="%",
            paper=63.0 if large else None, independent=INDEPENDENT_CENTRAL,
            ours=saved(measured["ours"], measured["central"]), low=OVER_CENTRAL if large else 50.0),
        Row(figure="Fig. 11(b)", setting=setting, metric=f"saved, against {M} whole fragments", unit="%",
            independent=INDEPENDENT_WHOLE, ours=saved(measured["ours"], measured["whole"]),
            low=OVER_WHOLE if large else 15.0),
        Row(figure="Fig. 11(b)", setting=setting, metric="to write the checkpoint, all fragments durable", unit="s",
            ours=measured["written"]),
    ]  # fmt: skip


def _failures(scale: Scale, measured: Mapping[str, float]) -> list[Row]:
    setting = f"measured, {scale.size / 2**20:g} MiB, processes killed"
    return [
        Row(figure="failures", setting=setting, metric=f"{K} holders killed: rebuilt, and right", unit="",
            ours=measured["k right"], low=1.0),
        Row(figure="failures", setting=setting, metric=f"{K} holders killed: time", unit="s",
            ours=measured["k failures"]),
        Row(figure="failures", setting=setting, metric=f"{K - 1} killed, 1 forges: rebuilt, and right", unit="",
            ours=measured["forged right"], low=1.0),
        Row(figure="failures", setting=setting, metric=f"{K + 1} killed: reported as loss", unit="",
            ours=measured["loss told"], low=1.0),
        Row(figure="failures", setting=setting, metric=f"{K} killed, 1 forges: reported as loss", unit="",
            ours=measured["forged loss told"], low=1.0),
        Row(figure="failures", setting=setting, metric="rebuilds that gave a wrong state", unit="",
            ours=measured["wrong"], high=0.0),
    ]  # fmt: skip


def _ring(scale: Scale, measured: Mapping[str, float]) -> list[Row]:
    setting = (
        f"measured, ring of {RING} processes with fragments of {scale.ring_size / MB:g} MB each, D = "
        f"{scale.ring_download / MB:g} MB/s, uplinks {RING_UPLINK:g} D"
    )
    rows = [
        Row(figure="Fig. 11(a)", setting=setting, metric=f"{number} nodes fail at once: the last is back", unit="s",
            ours=measured[f"{number} at once"])
        for number in scale.failures
    ]  # fmt: skip
    first, last = (measured[f"{number} at once"] for number in (scale.failures[0], scale.failures[-1]))
    rows.append(
        Row(figure="Fig. 11(a)", setting=setting, metric=f"{scale.failures[-1]} at once over one", unit="1",
            ours=last / first, high=FLAT)
    )  # fmt: skip
    return rows


def _sizes(download: float) -> Panel:
    names = {
        "ours": "ours", "whole": f"{M} whole fragments", "central": "one central store", "paper": "the paper's formula",
    }  # fmt: skip
    found = [_times(size * MB, download) for size in SIZES_MB]
    curves = tuple(Curve(name=name, values=tuple(one[key] for one in found)) for key, name in names.items())
    return Panel(
        title="time to rebuild a state, model", unit="s", kind="lines", along="MB",
        at=tuple(float(size) for size in SIZES_MB), curves=curves, logarithmic=True,
    )  # fmt: skip


NOTES = (
    "Agents, rebuilding nodes and the relay that limits rates are processes on one machine with two processors. "
    f"Holders have uplinks of {', '.join(f'{part:g}' for part in UPLINKS)} D, the central store one of D / 3; it "
    "is an agent that has the whole state. All ways check the same checksums.",
    f"Whole fragments come from the {M} fastest of the holders, which a node would have to know; the state "
    "is decoded when all are there. Of several runs the median counts.",
    "The paper gives no rates, so its percentages stand beside ours where the state is smallest and largest, and its "
    "formula counts one uplink alone: here the slowest holder's in the picture.",
    "In the ring the six nodes behind each one keep its fragments. Nodes that fail are three apart, so each state "
    "loses up to two holders with its node.",
)
