// Figures as people read them, and what is drawn of them; no function here touches the page.

export const NONE = "–";
export const COLOURS = 6; // --series-1 and so on in base.css

const known = (value) => value !== null && value !== undefined;

export const count = (value) => (known(value) ? Math.round(value).toLocaleString("en") : NONE);

export const fixed = (digits) => (value) => (known(value) ? value.toFixed(digits) : NONE);

export const rate = (value) => (known(value) ? (value < 100 ? value.toFixed(1) : count(value)) : NONE);

export const seconds = fixed(3);

export const money = fixed(2);

export function percent(part) {
  if (!known(part)) return NONE;
  const value = 100 * part;
  return `${value.toFixed(value === 0 || value >= 10 ? 0 : value >= 1 ? 1 : 3)} %`;
}

const milliseconds = (value) => (known(value) ? fixed(2)(1000 * value) : NONE);

// A row of model against measurement; the learnt time with its standard error.
export function modelRow(id, model) {
  const learnt = known(model.learnt_s) ? `${milliseconds(model.learnt_s)} ± ${milliseconds(model.error_s)}` : NONE;
  return [
    id, percent(model.utilisation), milliseconds(model.measured_s), learnt, milliseconds(model.mm1_s),
    count(model.samples), `${percent(model.low)} to ${percent(model.high)}`,
  ];
}

const megabytes = (value) => (known(value) ? `${fixed(1)(value / 1e6)} MB/s` : NONE);

// What is known of the nodes' links to the DataStore, of restarts and of streams, in words.
export function learntText(report) {
  const stores = report.stores.map((one) => `${one.node}: up ${megabytes(one.up_rate)}, down ${megabytes(one.down_rate)}, `
    + `round trip ${milliseconds(one.trip_s)} ms`);
  const ratios = report.selectivities.map((one) => `${one.source} to ${one.target} ${fixed(3)(one.ratio)} ± ${fixed(3)(one.error)}`);
  return [
    stores.length ? `State to and from the DataStore, ${stores.join("; ")}.` : "",
    report.handover?.handovers ? `Longest wait in a handover: ${milliseconds(report.handover.constant_s)} ms and `
      + `${fixed(3)(1e9 * report.handover.per_byte_s)} ms a MB, ${milliseconds(report.handover.off_s)} ms off in the median `
      + `of ${report.handover.handovers}.` : "",
    report.rest ? `Response time beside the parts that are modelled: ${milliseconds(report.rest.seconds)} ± `
      + `${milliseconds(report.rest.error_s)} ms.` : "",
    known(report.restart_pause_s) ? `Pause of a restart: ${seconds(report.restart_pause_s)} s, median of ${report.restarts_seen}.` : "",
    ratios.length ? `Tuples out for each in: ${ratios.join("; ")}.` : "",
  ].filter(Boolean).join(" ");
}

export const withUnit = (text, unit) => (text === NONE ? NONE : `${text} ${unit}`);

export const clockTime = (date) => date.toLocaleTimeString("en-GB");

export const clockOf = (at) => clockTime(new Date(1000 * at));

// With the day, if that is not today's.
export function timeOf(at, today = new Date()) {
  if (!known(at) || at <= 0) return NONE;
  const date = new Date(1000 * at);
  const day = date.toLocaleDateString("en-CA"); // as in 2026-11-26
  return day === today.toLocaleDateString("en-CA") ? clockTime(date) : `${day} ${clockTime(date)}`;
}

export const words = (action) => action.replaceAll("_", " ");

// "n1, n2 x 3"
export function placesText(places) {
  const parts = Object.entries(places ?? {})
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([node, replicas]) => (replicas === 1 ? node : `${node} × ${replicas}`));
  return parts.join(", ") || NONE;
}

export function changeText(change) {
  return `${change.kind} ${change.component}: ${placesText(change.before)} → ${placesText(change.after)}`;
}

// --- dots

// The dots of a deployment: those that can stay do, the others move to where one is missing; only then some come or go.
// `dots`: [{key, component, node}], `deployment`: component -> node -> replicas. A dot keeps its key when it moves.
export function placed(dots, deployment) {
  const result = [];
  for (const component of Object.keys(deployment).sort()) {
    const wanted = { ...deployment[component] };
    const mine = dots.filter((dot) => dot.component === component);
    const free = [];
    for (const dot of mine) {
      if (wanted[dot.node] > 0) {
        wanted[dot.node] -= 1;
        result.push(dot);
      } else free.push(dot);
    }
    const missing = Object.keys(wanted).sort().flatMap((node) => Array(Math.max(0, wanted[node])).fill(node));
    const used = new Set(mine.map((dot) => dot.key));
    let number = 0;
    for (const node of missing) {
      const moved = free.shift();
      if (moved) {
        result.push({ ...moved, node });
      } else {
        while (used.has(`${component}#${number}`)) number += 1;
        used.add(`${component}#${number}`);
        result.push({ key: `${component}#${number}`, component, node });
      }
    }
  }
  return result;
}

export const DOT = 22; // pixels of a dot with its margin
const HEAD = 24;
const GAP = 10;
const MOST = 120; // nodes that are drawn

// The nodes that are drawn: those with replicas first; so many others as fit.
export function drawnNodes(nodes, dots) {
  const busy = new Set(dots.map((dot) => dot.node));
  const names = [...new Set([...nodes.map((node) => node.id), ...busy])].sort();
  const chosen = [...names.filter((name) => busy.has(name)), ...names.filter((name) => !busy.has(name))].slice(0, MOST);
  return { names: chosen.sort(), leftOut: names.length - chosen.length };
}

// Boxes of nodes and places of dots for a width in pixels: {boxes: [{id, x, y, width, height}], at: key -> [x, y], height}
export function layout(names, dots, width) {
  const columns = Math.max(1, Math.min(names.length, Math.floor((width + GAP) / (150 + GAP))));
  const box = Math.floor((width - GAP * (columns - 1)) / columns);
  const inside = Math.max(1, Math.floor((box - 16) / DOT));
  const of = new Map(names.map((name) => [name, dots.filter((dot) => dot.node === name)]));
  const boxes = [];
  const at = {};
  let top = 0;
  for (let first = 0; first < names.length; first += columns) {
    const row = names.slice(first, first + columns);
    const lines = Math.max(1, ...row.map((name) => Math.ceil(of.get(name).length / inside)));
    const height = HEAD + lines * DOT + 8;
    row.forEach((name, column) => {
      const x = column * (box + GAP);
      boxes.push({ id: name, x, y: top, width: box, height });
      of.get(name).forEach((dot, number) => {
        const line = Math.floor(number / inside);
        at[dot.key] = [x + 8 + DOT / 2 + DOT * (number % inside), top + HEAD + DOT / 2 + DOT * line];
      });
    });
    top += height + GAP;
  }
  return { boxes, at, height: Math.max(0, top - GAP) };
}

// --- a view: arrows over a grid

const MARGIN = 2; // cells around the arrows
const LEAST = 12; // cells of a window, at least

// The square part of a view's grid that holds all its arrows: {left, top, side}, whole cells.
export function windowOf(view) {
  const xs = view.arrows.flatMap(([x1, , x2]) => [x1, x2]);
  const ys = view.arrows.flatMap(([, y1, , y2]) => [y1, y2]);
  if (!xs.length) return { left: 0, top: 0, side: Math.max(view.width, view.height) };
  const [left, right, top, bottom] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  const side = Math.max(LEAST, Math.ceil(Math.max(right - left, bottom - top)) + 2 * MARGIN);
  return { left: Math.floor((left + right - side) / 2), top: Math.floor((top + bottom - side) / 2), side };
}

// --- tables

// Rows of the plan: [component, before, now, plan, difference]
export function planRows(report) {
  const plan = report.plan?.deployment ?? {};
  const names = new Set([...Object.keys(report.deployment), ...Object.keys(plan)]);
  const changes = new Map((report.plan?.changes ?? []).map((change) => [change.component, change]));
  return [...names].sort().map((name) => [
    name,
    placesText((report.before ?? {})[name]),
    placesText(report.deployment[name]),
    report.plan ? placesText(plan[name]) : NONE,
    changes.has(name) ? changes.get(name).kind : "",
  ]);
}

export function planText(plan) {
  if (!plan) return "No plan yet: the policy has not been asked, or plans are made by hand only.";
  const facts = [
    known(plan.objective) && known(plan.objective_now)
      ? `objective ${plan.objective.toFixed(4)} against ${plan.objective_now.toFixed(4)} now`
      : "",
    known(plan.response_s) ? `response ${seconds(plan.response_s)} s` : "",
    known(plan.cost_per_h) ? `cost ${money(plan.cost_per_h)} $/h` : "",
    known(plan.downtime_s) ? `wait ${seconds(plan.downtime_s)} s` : "",
  ].filter(Boolean);
  const about = facts.length ? ` (${facts.join(", ")})` : "";
  const why = plan.why ? `: ${plan.why}` : "";
  return `${timeOf(plan.at)}, ${plan.verdict}${why}. ${plan.reason || "The policy gave no reason"}${about}.`;
}

// Of a dry run: what would be done, by which way, for which price.
export function dryText(told) {
  const verdict = told.change ? "would be carried out" : told.refused ? `would be refused: ${told.refused}` : "no change";
  const moved = Object.values(told.key_groups ?? {}).reduce((sum, groups) => sum + groups, 0);
  const facts = [
    known(told.way) && told.way !== "nothing" ? `by ${told.way}: ${told.why}` : "",
    moved ? `${count(moved)} key groups move` : "",
    known(told.response_s) ? `response ${seconds(told.response_s)} s` : "",
    known(told.cost_per_h) ? `cost ${money(told.cost_per_h)} $/h` : "",
    known(told.wait_s) ? `a tuple waits for ${seconds(told.wait_s)} s at most` : told.way === "restart" ? "the stream stops" : "",
  ].filter(Boolean);
  const price = facts.join(", ");
  const then = price ? ` ${price[0].toUpperCase()}${price.slice(1)}.` : "";
  const later = told.change && told.approval ? " It would wait for approval." : "";
  return `${told.policy}: ${verdict}. ${told.reason || "The policy gave no reason"}.${then}${later}`;
}

// Rows of a dry run: [component, now, then, difference]
export const dryRows = (told) =>
  (told.changes ?? []).map((one) => [one.component, placesText(one.before), placesText(one.after), one.kind]);

// Phases with their share of the longest entry: [{name, seconds, share}]
export function phasesOf(entry, longest) {
  return Object.entries(entry.phases).map(([name, value]) => ({
    name,
    seconds: value,
    share: longest > 0 ? value / longest : 0,
  }));
}

export const lengthOf = (entry) => Object.values(entry.phases).reduce((sum, value) => sum + value, 0);

export function currentText(current) {
  if (!current) return "";
  const mark = current.marks.length ? `, ${current.marks.at(-1).name}` : "";
  const what = current.changes.map(changeText).join("; ") || current.reason || words(current.kind);
  return `In progress${mark}: ${what}`;
}

export const sinceText = (current, now) => (known(current?.begun) ? `For ${Math.max(0, now - current.begun).toFixed(0)} s.` : "");

// "n1:2 n2:1", commas allowed, as {n1: 2, n2: 1}; null if it cannot be read.
export function readPlaces(text) {
  const found = {};
  for (const part of text.split(/[\s,]+/).filter(Boolean)) {
    const at = part.lastIndexOf(":");
    const node = part.slice(0, at);
    const replicas = part.slice(at + 1);
    if (at < 1 || !/^[1-9]\d{0,3}$/.test(replicas) || node in found) return null;
    found[node] = Number(replicas);
  }
  return Object.keys(found).length ? found : null;
}

// --- series

// New points behind those that are kept; both {t, values}.
export function joined(kept, more) {
  if (!kept.t.length) return more;
  const from = more.t.findIndex((t) => t > kept.t.at(-1));
  const added = from < 0 ? [] : more.t.slice(from);
  const t = [...kept.t, ...added];
  const values = {};
  for (const name of new Set([...Object.keys(kept.values), ...Object.keys(more.values)])) {
    const old = kept.values[name] ?? Array(kept.t.length).fill(null);
    const fresh = from < 0 ? [] : (more.values[name] ?? Array(more.t.length).fill(null)).slice(from);
    values[name] = [...old, ...fresh];
  }
  return { t, values };
}

// Places of at most `most` times, evenly over all of them, the first and the newest included.
export function spread(t, most) {
  if (t.length <= most) return t.map((_, at) => at);
  const step = (t.at(-1) - t[0]) / (most - 1);
  const found = new Set();
  let at = 0;
  for (let number = 0; number < most - 1; number += 1) {
    while (t[at] < t[0] + number * step) at += 1;
    found.add(at);
  }
  return [...found.add(t.length - 1)];
}

// --- the route: "#/t/NAME" is a topology, all else the list

export function topologyOf(hash) {
  const match = /^#\/t\/(.+)$/.exec(hash);
  if (!match) return null;
  try {
    return decodeURIComponent(match[1]);
  } catch {
    return null;
  }
}

export const linkTo = (name) => `#/t/${encodeURIComponent(name)}`;
