// Elements of the page from reports.

import {
  changeText, count, currentText, dryRows, dryText, learntText, lengthOf, linkTo, modelRow, money, NONE, percent, phasesOf,
  placesText, planRows, planText, rate, seconds, sinceText, spread, timeOf, withUnit, words,
} from "./figures.js";
import { colourOf } from "./graph.js";

const byId = (name) => document.getElementById(name);
const POINTS = 24; // of the table of points

function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  Object.assign(made, properties);
  made.append(...children);
  return made;
}

// Only on a change: a selection stays, and a screen reader reads nothing twice.
export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// Rows of texts; the first cell is the row's head, numbers are those of the given columns. `fill` replaces cells.
function rows(body, lines, numbers = [], fill = null) {
  const keys = JSON.stringify(lines);
  if (body.dataset.keys === keys) return;
  body.dataset.keys = keys;
  body.replaceChildren(
    ...lines.map((cells, at) => {
      const row = element("tr");
      cells.forEach((text, column) => {
        const cell = element(column ? "td" : "th", { className: numbers.includes(column) ? "number" : "" }, text);
        if (!column) cell.scope = "row";
        row.append(cell);
      });
      fill?.(row, at);
      return row;
    }),
  );
}

// --- the list

export function showNav(names, shown) {
  const keys = JSON.stringify([names, shown]);
  const nav = byId("nav");
  if (nav.dataset.keys === keys) return;
  nav.dataset.keys = keys;
  const link = (text, href, current) => {
    const made = element("a", { href }, text);
    if (current) made.setAttribute("aria-current", "page");
    return made;
  };
  const few = names.length <= 12 ? names : names.filter((name) => name === shown);
  nav.replaceChildren(link("All", "#/", shown === null), ...few.map((name) => link(name, linkTo(name), name === shown)));
}

const missingText = (missing) => missing.map((one) => `${one.what} since ${timeOf(one.since)}`).join(", ");

export function showList(told) {
  const lines = told.topologies.map((one) => [
    one.topology, one.role === "leader" ? one.phase || "starting" : one.role, count(one.replicas), rate(one.rate),
    seconds(one.response_s), seconds(one.modelled_response_s), money(one.cost_per_h), percent(one.downtime_share),
    one.last_action ? `${words(one.last_action)}, ${timeOf(one.last_at)}` : NONE, missingText(one.missing),
  ]);
  rows(document.querySelector("#topologies tbody"), lines, [2, 3, 4, 5, 6, 7], (row, at) => {
    const name = told.topologies[at].topology;
    row.cells[0].replaceChildren(element("a", { href: linkTo(name) }, name));
    row.classList.toggle("lacks", told.topologies[at].missing.length > 0);
  });
  byId("none").hidden = lines.length > 0;
}

// --- one topology

function phaseText(report) {
  const frozen = report.frozen === null ? "" : `frozen${report.frozen ? `: ${report.frozen}` : ""}`;
  const waits = report.proposal === null ? "" : `plan ${report.proposal} waits for approval`;
  return [report.phase, frozen, waits].filter(Boolean).join(", ") || NONE;
}

export function showReport(report, now) {
  const replicas = report.components.reduce((sum, one) => sum + one.replicas, 0);
  const facts = [
    ["Led", report.role === "leader" ? "by this service" : report.role], ["Policy", report.policy || NONE],
    ["Phase", phaseText(report)], ["Epoch", count(report.epoch)], ["Rate", withUnit(rate(report.rate), "tuples/s")],
    ["Response, measured", withUnit(seconds(report.response_s), "s")],
    ["Response, modelled", withUnit(seconds(report.modelled_response_s), "s")], ["Cost", withUnit(money(report.cost_per_h), "$/h")],
    ["Replicas", count(replicas)], ["Waiting before the source", count(report.backlog)],
    ["Downtime", `${percent(report.downtime_share)} (${seconds(report.downtime_s)} s)`],
  ];
  const list = byId("facts");
  if (list.children.length !== facts.length) {
    list.replaceChildren(...facts.map(() => element("div", {}, element("dt"), element("dd"))));
  }
  facts.forEach(([name, value], at) => {
    say(list.children[at].firstChild, name);
    say(list.children[at].lastChild, value);
  });
  const missing = byId("missing");
  const lacks = report.missing.map((one) => `Missing: ${one.what}, since ${timeOf(one.since)}. ${one.why}`);
  if (missing.dataset.keys !== JSON.stringify(lacks)) {
    missing.dataset.keys = JSON.stringify(lacks);
    missing.replaceChildren(...lacks.map((text) => element("li", {}, text)));
  }
  say(byId("current"), currentText(report.current));
  say(byId("current-since"), sinceText(report.current, now));
  showComponents(report.components);
  showModels(report);
  showPlan(report);
}

function showComponents(components) {
  const lines = components.map((one) => [
    one.id, count(one.replicas), `${count(one.tasks)}`, rate(one.rate), rate(one.service_rate), percent(one.busy),
    count(one.queued),
  ]);
  rows(document.querySelector("#components tbody"), lines, [1, 2, 3, 4, 5, 6]);
  const legend = byId("legend");
  const keys = JSON.stringify(components.map((one) => [one.id, one.replicas]));
  if (legend.dataset.keys === keys) return;
  legend.dataset.keys = keys;
  legend.replaceChildren(
    ...components.map((one, number) => {
      const mark = element("span", { className: `mark ${colourOf(number)}` }, String(number + 1));
      return element("li", {}, mark, ` ${one.id}, ${one.replicas} of ${one.tasks}`);
    }),
  );
}

function showModels(report) {
  const timed = report.components.filter((one) => one.model);
  const lines = timed.map(({ id, model }) => modelRow(id, model));
  rows(document.querySelector("#models tbody"), lines, [1, 2, 3, 4, 5, 6]);
  say(byId("learnt"), learntText(report));
}

function showPlan(report) {
  say(byId("why"), planText(report.plan));
  rows(document.querySelector("#plan tbody"), planRows(report), [], (row) => {
    row.classList.toggle("changes", row.cells[4].textContent !== "");
  });
  const refusals = byId("refusals");
  const lines = report.refusals.slice(-8).reverse()
    .map((one) => `${timeOf(one.at)} ${one.request ? "request" : "plan"}: ${one.why}`);
  if (refusals.dataset.keys === JSON.stringify(lines)) return;
  refusals.dataset.keys = JSON.stringify(lines);
  refusals.replaceChildren(...(lines.length ? lines : ["Nothing was refused."]).map((text) => element("li", {}, text)));
}

// A dry run; null hides it.
export function showDry(told) {
  byId("dry").hidden = told === null;
  if (told === null) return;
  say(byId("dry-why"), dryText(told));
  rows(document.querySelector("#dry-plan tbody"), dryRows(told));
  document.querySelector("#dry-plan").hidden = !(told.changes ?? []).length;
}

// An explanation in words; null hides it.
export function showWords(text) {
  byId("explained").hidden = text === null;
  say(byId("words"), text ?? "");
}

export function showNodes(nodes, components, leftOut) {
  const head = document.querySelector("#nodes thead");
  const names = components.map((one) => one.id);
  const columns = ["Node", "Slots", "Drains", ...names];
  if (head.dataset.keys !== JSON.stringify(columns)) {
    head.dataset.keys = JSON.stringify(columns);
    const cell = (name, at) => element("th", { scope: "col", className: at === 1 || at > 2 ? "number" : "" }, name);
    head.replaceChildren(element("tr", {}, ...columns.map(cell)));
  }
  const busy = nodes.filter((node) => node.draining || Object.keys(node.replicas).length || nodes.length <= 50);
  const lines = busy.map((node) => [
    node.id, count(node.slots), node.draining ? "yes" : "no", ...names.map((name) => String(node.replicas[name] ?? 0)),
  ]);
  rows(document.querySelector("#nodes tbody"), lines, [1, ...names.map((_, at) => at + 3)]);
  const hidden = Math.max(leftOut, nodes.length - busy.length);
  byId("left-out").hidden = hidden === 0;
  say(byId("left-out"), hidden ? `${count(hidden)} nodes without replicas are not shown.` : "");
}

export function showPoints(series) {
  const of = (figure, at) => (series.values[figure] ?? [])[at];
  const lines = spread(series.t, POINTS).map((at) => [
    timeOf(series.t[at]), rate(of("rate", at)), seconds(of("response_s", at)), seconds(of("modelled_response_s", at)),
    money(of("cost_per_h", at)), percent(of("downtime_share", at)),
  ]);
  rows(document.querySelector("#points tbody"), lines.reverse(), [1, 2, 3, 4, 5]);
}

export function showTimeline(history) {
  const entries = [...history.reconfigurations].reverse();
  const longest = Math.max(0, ...entries.map(lengthOf));
  const lines = entries.map((entry) => [
    timeOf(entry.ended), entry.kind, entry.changes.map(changeText).join("; ") || entry.reason, entry.result,
    seconds(entry.pause_s), phasesOf(entry, longest).map((one) => `${one.name} ${one.seconds.toFixed(2)}`).join(", "),
  ]);
  rows(document.querySelector("#timeline tbody"), lines, [4], (row, at) => {
    const bar = element("div", { className: "phases" });
    bar.setAttribute("aria-hidden", "true"); // the text beside it says the same
    phasesOf(entries[at], longest).forEach((one, number) => {
      const part = element("span", { className: `phase ${colourOf(number)}`, title: one.name });
      part.style.width = `${100 * one.share}%`;
      bar.append(part);
    });
    row.cells[5].prepend(bar);
    row.classList.toggle("bad", entries[at].ending !== "done");
  });
  byId("incomplete").hidden = history.complete;
  say(byId("incomplete"), history.complete ? "" : `Earlier ones are not known: ${history.why}`);
}

export { placesText };
