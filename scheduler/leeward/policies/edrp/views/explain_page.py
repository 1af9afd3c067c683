"""An explanation as one HTML page: the picture, the critical path as a bar, the tables.  It loads nothing.

The page is also well-formed XML.  Style and script stand in `explain.css` and `explain.js` beside this file.
"""

from __future__ import annotations

from html import escape
from importlib.resources import files

from leeward.policies.edrp.views.explain_picture import picture
from leeward.policies.edrp.views.explain_words import (
    Document,
    TableOfWords,
    headline,
    limit_notes,
    ms,
    objective,
    tables,
)

#: Nothing from anywhere else may be loaded, even if a bug let an id become an element.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


def page(document: Document) -> str:
    """The page for any explanation document, also for one without a deployment."""
    title = escape(document["name"] or "EDRP problem")
    body = _found(document) if document["deployment"] is not None else _nothing(document)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8"/>\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}"/>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1"/>\n'
        f"<title>{title}: why this deployment</title>\n<style>\n{_asset('explain.css')}</style>\n</head>\n<body>\n"
        f"<h1>{title}</h1>\n{body}\n</body>\n</html>\n"
    )


def _asset(name: str) -> str:
    return (files("leeward.policies.edrp.views") / name).read_text(encoding="utf-8")


def _nothing(document: Document) -> str:
    reasons = "".join(f"<li>{escape(reason)}</li>" for reason in document["why"])
    return f"<p><b>{escape(document['status'])}</b>: no deployment.</p>\n<ul>{reasons}</ul>"


def _found(document: Document) -> str:
    notes = "".join(f'<p class="warning">{escape(note)}</p>' for note in limit_notes(document))
    idle = sum(not node["placed"] for node in document["nodes"])
    others = f" {idle} other nodes are not used and not shown." if idle else ""
    return "\n".join(
        (
            f'<p class="sum">{escape(headline(document))}</p>',
            f"<p>{escape(objective(document))}</p>",
            f"<p>{escape(document['learnt'])}</p>" if "learnt" in document else "",
            notes,
            "<h2>Deployment</h2>",
            '<p class="legend"><span class="key hot">critical path</span><span class="key">other replicas and streams'
            f"</span> Boxes are nodes with the units in use.{others}</p>",
            f'<div class="scroll">{picture(document)}</div>',
            '<p id="detail" aria-live="polite">Point at a node, a replica or a stream, or tab to it.</p>',
            "<h2>Where the response time goes</h2>",
            _bar(document),
            *(_table(table) for table in tables(document)),
            f"<p>{escape(document['method'])}: {document['seconds']:.2f} s; "
            f"all questions {document['seconds_in_all']:.2f} s.</p>",
            f"<script>\n{_asset('explain.js')}</script>",
        )
    )


def _bar(document: Document) -> str:
    """The critical path as one bar."""
    pieces = []
    for hop in document["path"]:
        if hop["share"] <= 0:
            continue
        inside = "operator" in hop
        name = hop["operator"] if inside else f"{hop['from']} → {hop['to']}"
        detail = escape(f"{name}: {ms(hop['seconds'])}, {100 * hop['share']:.1f} % of R")
        shown = f"{100 * hop['share']:.0f} %" if hop["share"] >= 0.05 else ""
        pieces.append(
            f'<span class="piece {"operator" if inside else "stream"} spot" tabindex="0" title="{detail}" '
            f'data-detail="{detail}" style="flex-grow:{1000 * hop["share"]:.2f}">{shown}</span>'
        )
    return (
        f'<div class="bar">{"".join(pieces)}</div>\n<p class="legend"><span class="key operator">operators</span>'
        '<span class="key stream">network</span></p>'
    )


def _table(table: TableOfWords) -> str:
    def cell(tag: str, at: int, text: str) -> str:
        side = ' class="number"' if at in table.right else ""
        return f"<{tag}{side}>{escape(text)}</{tag}>"

    head = "".join(cell("th", at, text) for at, text in enumerate(table.head))
    rows = "\n".join(
        ('<tr class="marked">' if number in table.marked else "<tr>")
        + "".join(cell("td", at, text) for at, text in enumerate(row))
        + "</tr>"
        for number, row in enumerate(table.rows)
    )
    notes = "".join(f'<p class="note">{escape(note)}</p>' for note in table.notes)
    return (
        f'<h2>{escape(table.title)}</h2>\n<div class="scroll"><table>\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{rows}\n</tbody></table></div>\n{notes}"
    )
