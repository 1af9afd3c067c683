"""An explanation as rich text."""

from __future__ import annotations

from typing import TextIO

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from leeward.policies.edrp.views.explain_words import Document, TableOfWords, headline, limit_notes, objective, tables


def print_explanation(document: Document, stream: TextIO, *, width: int | None = None) -> None:
    """The tables, one below the other; without a deployment, why there is none. `width`: characters of a line; None:
    as the terminal has.
    """
    if document["deployment"] is None:
        stream.write(f"{document['status']}  {document['name']}\n")
        stream.writelines(f"  {reason}\n" for reason in document["why"])
        return
    console = Console(file=stream, width=width)
    console.print(f"[bold]{document['status']}[/bold]  {escape(document['name'])}", highlight=False)
    console.print(headline(document), objective(document), sep="\n", highlight=False, markup=False)
    if "learnt" in document:
        console.print(document["learnt"], style="dim", highlight=False, markup=False)
    for note in limit_notes(document):
        console.print(note, style="yellow", highlight=False, markup=False)
    for table in tables(document):
        console.print()
        console.print(_rich(table))
        for note in table.notes:
            console.print(note, style="dim", highlight=False, markup=False)
    times = f"{document['method']}: {document['seconds']:.2f} s, all questions {document['seconds_in_all']:.2f} s"
    console.print(f"\n{times}", highlight=False)


def _rich(table: TableOfWords) -> Table:
    view = Table(title=table.title, title_justify="left", title_style="bold", pad_edge=False)
    for at, name in enumerate(table.head):
        view.add_column(escape(name), justify="right" if at in table.right else "left", overflow="fold")
    for at, row in enumerate(table.rows):
        view.add_row(*map(escape, row), style="bold" if at in table.marked else None)
    return view
