"""The part of `leeward experiment` that is the same for every experiment on simulated workloads."""

from __future__ import annotations

import csv
import io
import json
import platform
import shutil
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from leeward.cli._common import EXIT_INTERRUPTED
from leeward.cli._output import Output, document_text
from leeward.cli._progress import progress

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from leeward.core.experiment import Finding, Part, Played, Row, Run

#: Of a table in Markdown.
HEAD = ("| | unit | paper | independent | ours | bounds | met |", "|" + " --- |" * 7)
COLUMNS = ("figure", "setting", "metric", "unit", "paper", "independent", "ours", "low", "high", "met")


def run_experiment(name: str, *, seed: int, quick: bool, output: Output, out: Path) -> None:
    """Plays its runs, and writes NAME.json, .csv, .svg and .md into `out`; raises LeewardError and OSError."""
    from leeward.control.registry import EXPERIMENTS, load

    experiment = load(name, EXPERIMENTS)()
    began = time.monotonic()
    rows = out / f"{name}{'-quick' if quick else ''}.rows"
    if hasattr(experiment, "parts"):
        finding = experiment.conclude(
            measure_parts(experiment.measure, list(experiment.parts(seed=seed, quick=quick)), rows, name)
        )
    else:
        finding = experiment.conclude(_play(list(experiment.runs(seed=seed, quick=quick)), rows, name))
    command = f"leeward experiment {name} --seed {seed}{' --quick' if quick else ''}"
    tell(name, finding, command=command, seed=seed, seconds=time.monotonic() - began, output=output, out=out)
    shutil.rmtree(rows, ignore_errors=True)  # it is over: the next call measures again


def tell(name: str, finding: Finding, *, command: str, seed: int, seconds: float, output: Output, out: Path) -> None:
    """Writes NAME.json, .csv, .md and a picture if there is one, and prints one of the forms; raises OSError."""
    document = _document(name, finding, command=command, seed=seed, seconds=seconds)
    files = _write(out, name, document, finding)
    if output is Output.table:
        typer.echo(table_of(finding), nl=False)
        typer.echo(f"{', '.join(files)} in {out}")
    else:
        typer.echo(document_text(document, output), nl=False)


def _play(runs: list[Run], rows: Path, name: str) -> dict[Run, Played]:
    from leeward import __version__
    from leeward.sim.workload.bench import play_all

    total = sum(run.setting.intervals for run in runs)
    with progress(total, name) as advance:
        try:
            return play_all(runs, rows, version=__version__, clock=time.perf_counter, advance=advance)
        except KeyboardInterrupt:
            typer.echo(f"interrupted: the rows are in {rows}; the same command goes on from there.", err=True)
            raise typer.Exit(EXIT_INTERRUPTED) from None


def measure_parts(
    measure: Callable[[Part], Mapping[str, float]], parts: list[Part], rows: Path, name: str
) -> dict[Part, Mapping[str, float]]:
    """Every part, on all processors; those that are in the file already are not measured again."""
    from leeward import __version__

    rows.mkdir(parents=True, exist_ok=True)
    file = rows / "parts.jsonl"
    kept = _kept(file, __version__)
    done: dict[Part, Mapping[str, float]] = {part: kept[key] for part in parts if (key := _key(part)) in kept}
    left = [part for part in parts if part not in done]
    with progress(len(parts), name) as advance, ProcessPoolExecutor() as pool, file.open("a") as keep:
        advance(len(done), "kept")
        futures = {pool.submit(measure, part): part for part in left}
        try:
            for future in as_completed(futures):
                part = futures[future]
                done[part] = future.result()
                keep.write(json.dumps({"version": __version__, "part": _key(part), "figures": dict(done[part])}) + "\n")
                keep.flush()
                advance(len(done), part.name)
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            typer.echo(f"interrupted: the figures are in {rows}; the same command goes on from there.", err=True)
            raise typer.Exit(EXIT_INTERRUPTED) from None
    return {part: done[part] for part in parts}


def _kept(file: Path, version: str) -> dict[str, dict[str, float]]:
    """Key of a part -> its figures, of those that this version has measured; a line that was cut off is left out."""
    found: dict[str, dict[str, float]] = {}
    for line in file.read_text().splitlines() if file.exists() else ():
        with suppress(ValueError, KeyError, TypeError):
            entry = json.loads(line)
            if entry["version"] == version:
                found[entry["part"]] = entry["figures"]
    return found


def _key(part: Part) -> str:
    return json.dumps([part.name, part.seed, [list(option) for option in part.options]])


def _document(name: str, finding: Finding, *, command: str, seed: int, seconds: float) -> dict[str, Any]:
    from leeward import __version__

    return {
        "experiment": name,
        "command": command,
        "seed": seed,
        "version": __version__,
        "machine": f"{platform.machine()}, Python {platform.python_version()}",
        "seconds": round(seconds, 1),
        "rows": [row.document() for row in finding.rows],
        "notes": list(finding.notes),
    }


def _write(out: Path, name: str, document: dict[str, Any], finding: Finding) -> list[str]:
    """The names of the files."""
    from leeward.dashboard.experiment_picture import draw

    out.mkdir(parents=True, exist_ok=True)
    (out / f"{name}.json").write_text(json.dumps(document, indent=2, allow_nan=False) + "\n")
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(document["rows"])
    (out / f"{name}.csv").write_text(text.getvalue())
    (out / f"{name}.md").write_text(markdown_of(document, finding))
    if finding.panels:
        draw(out / f"{name}.svg", finding.panels, title=name)
    return [f"{name}.{kind}" for kind in ("json", "csv", *(("svg",) if finding.panels else ()), "md")]


def markdown_of(document: Mapping[str, Any], finding: Finding) -> str:
    """The page of `docs/results`: command, picture, a table for each setting, notes."""
    name = document["experiment"]
    lines = [
        f"# {name}",
        f"`{document['command']}`, Leeward {document['version']}, {document['machine']}, {document['seconds']:g} s.",
        *(("", f"![The curves of each setting]({name}.svg)") if finding.panels else ()),
    ]
    above = ""
    for row in finding.rows:
        if (title := f"{row.figure}: {row.setting}") != above:
            lines += ["", f"## {title}", "", *HEAD]
            above = title
        met = {None: "", True: "yes", False: "**no**"}[row.met]
        figures = map(_figure, (row.paper, row.independent, row.ours))
        lines.append(f"| {' | '.join((row.metric, row.unit, *figures, _bounds(row), met))} |")
    return "\n".join((*lines, "", *finding.notes, ""))


def table_of(finding: Finding) -> str:
    """The rows for people, and the notes below them; the notes alone of a run that was broken off before the first."""
    from leeward.sim.workload.summary import table_text

    if not finding.rows:
        return "\n".join((*finding.notes, ""))
    lines = [
        {
            "": row.metric, "unit": row.unit, "paper": _figure(row.paper), "independent": _figure(row.independent),
            "ours": _figure(row.ours), "bounds": _bounds(row), "met": {None: "", True: "yes", False: "NO"}[row.met],
        }
        for row in finding.rows
    ]  # fmt: skip
    head, *told = table_text(lines).splitlines()
    parts, above = [head], ""
    for row, line in zip(finding.rows, told, strict=True):
        if (title := f"{row.figure}: {row.setting}") != above:
            parts.append(title)
            above = title
        parts.append(line)
    return "\n".join((*parts, *finding.notes, ""))


def _bounds(row: Row) -> str:
    if row.low is not None and row.high is not None:
        return f"{_figure(row.low)} to {_figure(row.high)}"
    return (
        f">= {_figure(row.low)}" if row.low is not None else f"<= {_figure(row.high)}" if row.high is not None else ""
    )


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"
