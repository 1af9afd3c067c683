// The page of the service: asks for reports when an event says that there is news, and shows them.

import { Acts } from "./acts.js";
import { Asks } from "./asks.js";
import { Charts, FIGURES } from "./charts.js";
import { clockTime, joined, topologyOf } from "./figures.js";
import { Graph } from "./graph.js";
import { ShownResult } from "./shown.js";
import { say, showList, showNav, showNodes, showPoints, showReport, showTimeline } from "./views.js";

const PATIENCE_MS = 5000; // a service that takes longer does not answer
const LEAST_MS = 900; // between two questions
const LISTEN_MS = 5000; // until it listens again after the service has refused
const MOST = 2400; // points that are kept; then all are asked for anew, older ones as means of a minute

const byId = (name) => document.getElementById(name);

const graph = new Graph(byId("picture"));
const charts = new Charts();
let shown = null; // name of the topology; null: the list
const acts = new Acts(() => shown);
const asks = new Asks(() => shown);
let served = false; // its status can be asked here
const result = new ShownResult(() => (served ? shown : null));
let told = null; // the list
let report = null;
let nodes = [];
let series = { t: [], values: {} };
let heard = new Date();
let silent = null; // null, or {since, error}
let dirty = new Set(["list", "nodes", "history"]); // parts to ask for beside the report
let asking = false;
let askAt = 0;
let timer = null;

// --- asking

async function get(path) {
  const answer = await fetch(path, { cache: "no-store", signal: AbortSignal.timeout(PATIENCE_MS) });
  if (!answer.ok) throw Object.assign(new Error(path), { status: answer.status });
  return answer.json();
}

async function refresh() {
  const wanted = dirty;
  dirty = new Set();
  told = await get("api/topologies");
  if (shown === null) return;
  const name = shown;
  const base = `api/topologies/${encodeURIComponent(name)}`;
  const query = FIGURES.map((figure) => `figure=${figure}`).join("&");
  const since = series.t.length && series.t.length < MOST ? series.t.at(-1) : 0;
  const [fresh, more, seen, history] = await Promise.all([
    get(base), get(`${base}/series?since=${since}&${query}`),
    wanted.has("nodes") ? get(`${base}/nodes`) : null, wanted.has("history") ? get(`${base}/history`) : null,
  ]);
  if (name !== shown) return; // another one was chosen meanwhile
  report = fresh.report;
  served = fresh.served;
  series = since ? joined(series, more) : more;
  if (seen) nodes = seen.nodes;
  if (history) showTimeline(history);
}

async function ask() {
  if (asking) return;
  asking = true;
  const wanted = dirty;
  try {
    await refresh();
    heard = new Date();
    silent = null;
  } catch (error) {
    dirty = new Set([...dirty, ...wanted]);
    silent = { since: heard, error: error.status ?? null };
  }
  asking = false;
  askAt = performance.now() + LEAST_MS;
  show();
  if (silent || dirty.size) soon(1000);
}

// At most one question waits.
function soon(least = 0) {
  if (timer !== null) return;
  timer = setTimeout(() => {
    timer = null;
    ask();
  }, Math.max(least, askAt - performance.now(), 0));
}

// --- hearing

// Actions after which more than the report is asked for.
const PARTS = {
  reconfiguration_ended: ["history", "nodes"],
  cluster_seen: ["nodes"],
  node_drains: ["nodes"],
  node_undrained: ["nodes"],
  service_started: ["nodes", "history"],
  leading: ["nodes", "history"],
};

let source = null;

// A browser has six connections for all its tabs of a service: one that nobody sees has none.
function listen() {
  source?.close();
  source = null;
  if (document.hidden) return;
  const opened = new EventSource(`api/events${shown === null ? "" : `?topology=${encodeURIComponent(shown)}`}`);
  source = opened;
  source.onopen = () => news(["list", "nodes", "history"]);
  source.onerror = () => {
    news(["list"]);
    // An answer that is no stream, as a proxy gives while the service restarts, ends it for good.
    if (opened.readyState === EventSource.CLOSED) {
      setTimeout(() => {
        if (source === opened) listen();
      }, LISTEN_MS);
    }
  };
  source.onmessage = (event) => news(PARTS[JSON.parse(event.data).action] ?? []);
  source.addEventListener("missed", () => news(["nodes", "history"]));
}

function news(parts) {
  for (const part of parts) dirty.add(part);
  soon();
}

// --- showing

function statusText() {
  if (silent?.error === 404) return "The service does not know this topology. It may have ended.";
  if (silent) {
    const how = silent.error ? `answers with errors (${silent.error})` : "has not answered";
    return `The service ${how} since ${clockTime(silent.since)}. The figures are of that time; the page asks again.`;
  }
  if (!told) return "Waiting for the service.";
  const lacks = told.missing.map((one) => one.why);
  return lacks.length ? `The service waits: ${lacks.join("; ")}` : "Live.";
}

function show() {
  document.body.dataset.state = silent ? "silent" : told ? "live" : "waiting";
  say(byId("status"), statusText());
  if (!told) return;
  showNav(told.topologies.map((one) => one.topology), shown);
  byId("list").hidden = shown !== null;
  byId("one").hidden = shown === null || !report;
  say(byId("title"), shown === null ? "" : ` / ${shown}`);
  document.title = shown === null ? "Leeward" : `${shown}, Leeward`;
  if (shown === null) {
    showList(told);
    return;
  }
  if (!report) return;
  showReport(report, Date.now() / 1000);
  const leftOut = draw();
  showNodes(nodes, report.components, leftOut);
  showPoints(series);
  byId("no-charts").hidden = !series.t.length || charts.show(series);
  acts.show(told.acts, told.acting, nodes, report);
}

function draw() {
  const { deployment, components, streams } = report;
  return graph.show({ nodes, deployment, components, streams });
}

function choose() {
  shown = topologyOf(location.hash);
  report = null;
  served = false;
  nodes = [];
  series = { t: [], values: {} };
  graph.dots = [];
  charts.drop();
  acts.drop();
  asks.drop();
  result.drop();
  askAt = 0;
  news(["list", "nodes", "history"]);
  listen();
  byId("main").focus({ preventScroll: true });
}

document.addEventListener("visibilitychange", listen);
addEventListener("hashchange", () => {
  if (location.hash !== "#main") choose();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  charts.drop(); // their colours are fixed when they are made
  show();
});
new ResizeObserver(() =>
  requestAnimationFrame(() => {
    charts.fit();
    if (report && shown !== null) draw();
  }),
).observe(byId("main"));
choose();
