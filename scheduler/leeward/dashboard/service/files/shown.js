// The newest result that a topology shows: arrows over its grid, zoomed to where they are, and the same as a list.

import { windowOf } from "./figures.js";
import { svg } from "./graph.js";

const EVERY_MS = 2000; // between two questions
const PATIENCE_MS = 10000; // an answer that takes longer is not waited for
const LINES = 60; // cells of the window up to which the grid is drawn

export class ShownResult {
  constructor(topology) {
    this.topology = topology; // () -> name of the topology that is shown and served here, or null
    this.section = document.getElementById("shown");
    this.asks = false; // one question at a time
    setInterval(() => this.ask(), EVERY_MS);
  }

  async ask() {
    const name = this.topology();
    if (name === null || document.hidden || this.asks) return;
    this.asks = true;
    try {
      const signal = AbortSignal.timeout(PATIENCE_MS);
      const answer = await fetch(`api/topologies/${encodeURIComponent(name)}/status`, { cache: "no-store", signal });
      if (answer.ok && name === this.topology()) this.show((await answer.json()).shown);
    } catch {
      // the page says elsewhere that the service does not answer
    } finally {
      this.asks = false;
    }
  }

  // Another topology was chosen.
  drop() {
    this.section.hidden = true;
  }

  show(view) {
    this.section.hidden = !view;
    if (!view) return;
    document.getElementById("shown-about").textContent = [view.title, view.note].filter(Boolean).join(", ");
    document.getElementById("shown-picture").replaceChildren(picture(view));
    document.getElementById("shown-list").replaceChildren(
      ...view.arrows.map(([, , , , label]) => {
        const entry = document.createElement("li");
        entry.textContent = label;
        return entry;
      }),
    );
  }
}

function picture(view) {
  const { left, top, side } = windowOf(view);
  const grid = [];
  if (side <= LINES) {
    for (let at = 0; at <= side; at += 1) {
      grid.push(svg("line", { x1: left + at, y1: top, x2: left + at, y2: top + side }));
      grid.push(svg("line", { x1: left, y1: top + at, x2: left + side, y2: top + at }));
    }
  }
  const head = svg("marker", { id: "head", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 5, markerHeight: 5, orient: "auto" }, svg("path", { d: "M0 0 L8 4 L0 8 z" }));
  const arrows = view.arrows.map(([x1, y1, x2, y2, label], number) => {
    const inside = x1 === x2 && y1 === y2; // within one cell
    const way = inside
      ? svg("circle", { cx: x1, cy: y1, r: 0.4 })
      : svg("line", { x1, y1, x2, y2, "marker-end": "url(#head)" });
    const rank = svg("text", { x: x1 + (x2 - x1) / 3, y: y1 + (y2 - y1) / 3, "font-size": side / 26 }, String(number + 1));
    return svg("g", { class: "arrow", "stroke-width": side / (130 + 22 * number) }, svg("title", {}, label), way, rank);
  });
  const about = `${view.arrows.length} arrows over a part of ${side} by ${side} cells; the list beside it names them.`;
  return svg(
    "svg", { role: "img", "aria-label": about, viewBox: `${left} ${top} ${side} ${side}` },
    svg("defs", {}, head), svg("g", { class: "cells", "stroke-width": side / 900 }, ...grid), ...arrows,
  );
}
