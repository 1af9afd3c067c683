// The live page: asks for the figures each second and shows them. First figures as text, then what draws them.
// The figures' shape is in figures.py.

const EVERY_MS = 1000;
const PATIENCE_MS = 4000; // a server that takes longer does not answer
const NONE = "–";
const SCALE = 1.5; // the objective is at two thirds of a bar's length
const COLOURS = 6; // --series-1 and so on in page.css
const DASHES = [[], [9, 3], [2, 2]]; // a line is told from others by its colour and its dashes
const BORDERS = ["solid", "dashed", "dotted"]; // of the legend, for the same
const MEAN_OF = 10; // snapshots: a second has few starts in a domain, so its own share says little

// --- figures: pure

export const count = (value) => value.toLocaleString("en");

export const inSeconds = (value) => (value === null ? NONE : value.toFixed(2));

export const perSecond = (value) => `${value.toFixed(1)}/s`;

export function elapsed(seconds) {
  const whole = Math.floor(seconds);
  const two = (part) => String(part).padStart(2, "0");
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  return hours ? `${hours}:${two(minutes)}:${two(rest)}` : `${minutes}:${two(rest)}`;
}

export const share = (part, whole) => (part === null || !whole ? null : part / whole);

export function percent(part) {
  if (part === null) return NONE;
  return `${(100 * part).toFixed(part > 0 && part < 0.0995 ? 1 : 0)} %`;
}

// Rounded away from the objective: 100 % is on it, 101 % is over it.
export function verdict(part) {
  if (part === null) return NONE;
  return part > 1 ? `▲ ${Math.ceil(100 * part)} % over` : `${Math.floor(100 * part)} %`;
}

// "p99" if all classes have the same percentile.
export function tailName(classes) {
  const names = new Set(classes.map((one) => `p${one.percent}`));
  return names.size === 1 ? [...names][0] : "Tail";
}

export const sharesOf = (tails, objective) => tails.map((tail) => share(tail, objective));

// The mean of the last snapshots at each, of the known ones among them.
export function smooth(values, width) {
  return values.map((_, at) => {
    const known = values.slice(Math.max(0, at + 1 - width), at + 1).filter((value) => value !== null);
    return known.length ? known.reduce((sum, value) => sum + value, 0) / known.length : null;
  });
}

export const heat = (waiting) => (waiting > 10 ? 3 : waiting > 4 ? 2 : waiting > 0 ? 1 : 0);

export const clockTime = (date) => date.toLocaleTimeString("en-GB");

// `silent` is null, or {since, error}: the time of the last answer, and the status of errors since, if there are any.
export function stateOf(figures, silent) {
  if (silent) return figures && !figures.running ? "ended" : "silent";
  if (!figures) return "waiting";
  return figures.running ? "live" : "ended";
}

export function statusText(figures, silent) {
  if (silent) {
    if (figures && !figures.running) return "The run has ended, and the server too. These are the last figures.";
    const since = clockTime(silent.since);
    const how = silent.error
      ? `The server has answered with errors (${silent.error}) since ${since}.`
      : `The server has not answered since ${since}.`;
    return `${how} ${figures ? "The figures are of that time. " : ""}The page asks again each second.`;
  }
  if (!figures) return "Waiting for the server.";
  if (!figures.running) return "The run has ended. These are its last figures.";
  const away = figures.domains.filter((domain) => !domain.answers).map((domain) => domain.name);
  const first = figures.done ? "Running." : "Running. No query is done yet.";
  if (!away.length) return first;
  return `${first} ${away.join(", ")} ${away.length > 1 ? "do" : "does"} not answer.`;
}

// --- elements

function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  Object.assign(made, properties);
  made.append(...children);
  return made;
}

// Only on a change: a selection stays, and a screen reader reads nothing twice.
function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// Children of `parent` are built anew only if their keys change; `show` brings them up to date.
function keep(parent, items, key, build, show) {
  const keys = JSON.stringify(items.map(key));
  if (parent.dataset.keys !== keys) {
    parent.replaceChildren(...items.map(build));
    parent.dataset.keys = keys;
  }
  items.forEach((item, at) => show(parent.children[at], item));
}

// --- head and tables

function showFacts(figures) {
  const texts = {
    profile: figures.profile,
    discipline: figures.discipline,
    rate: perSecond(figures.rate),
    served: perSecond(figures.served),
    seconds: elapsed(figures.seconds),
    done: count(figures.done),
    partial: count(figures.partial),
  };
  for (const node of document.querySelectorAll("[data-fact]")) say(node, texts[node.dataset.fact]);
  document.title = `${figures.profile}, ${figures.discipline}: DSSP, live`;
}

function classRow(one) {
  const span = (className, text = "") => element("span", { className }, text);
  const number = (name, unit = "") => element("td", { className: "number" }, span(name), span("unit", unit));
  const goal = span("goal");
  goal.style.left = `${100 / SCALE}%`;
  const bar = element("span", { className: "bar" }, span("fill"), goal);
  bar.setAttribute("aria-hidden", "true"); // the text beside it says the same
  const measure = element("div", { className: "measure" }, bar, span("verdict"));
  const late = number("late");
  late.append(span("rest"));
  return element(
    "tr",
    {},
    element("th", { scope: "row" }, one.name),
    number("objective", " s"),
    number("tail", " s"),
    number("median", " s"),
    element("td", { className: "against" }, measure),
    number("queries"),
    late,
  );
}

function showClass(row, one) {
  const part = share(one.p_s, one.objective_s);
  const text = (name, value) => say(row.querySelector(`.${name}`), value);
  for (const [name, value] of Object.entries({ objective: one.objective_s, tail: one.p_s, median: one.median_s })) {
    text(name, inSeconds(value));
    row.querySelector(`.${name} + .unit`).hidden = value === null;
  }
  text("verdict", verdict(part));
  text("queries", count(one.queries));
  text("late", count(one.late));
  text("rest", one.queries ? ` (${percent(share(one.late, one.queries))})` : "");
  row.querySelector(".fill").style.width = `${(100 * Math.min(part ?? 0, SCALE)) / SCALE}%`;
  row.classList.toggle("over", part !== null && part > 1);
}

function showClasses(figures) {
  const name = tailName(figures.classes);
  say(document.getElementById("tail-name"), name);
  say(document.getElementById("against-name"), `${name} against objective`);
  const key = (one) => one.name;
  keep(document.querySelector("#classes tbody"), figures.classes, key, classRow, showClass);
  document.getElementById("empty").hidden = figures.done > 0;
}

function domainCard(domain) {
  const row = (name) => {
    const cells = domain.waiting.map(() => element("td"));
    return element("tr", { className: name.toLowerCase() }, element("th", { scope: "row" }, name), ...cells);
  };
  const numbers = domain.waiting.map((_, at) => element("th", { scope: "col" }, String(at + 1)));
  const title = element("h3", {}, domain.name);
  const table = element(
    "table",
    {},
    element("thead", {}, element("tr", {}, element("th", { scope: "col" }, "Node"), ...numbers)),
    element("tbody", {}, row("Waiting"), row("Busy"), row("Pods")),
  );
  table.setAttribute("aria-label", `Nodes of ${domain.name}`);
  return element(
    "article",
    { className: "domain" },
    element("div", { className: "head" }, title, element("span", { className: "told" })),
    table,
  );
}

function showDomain(card, domain) {
  const told = `${count(domain.started)} started, ${count(domain.late)} late`;
  const late = domain.started ? ` (${percent(share(domain.late, domain.started))})` : "";
  say(card.querySelector(".told"), domain.answers ? told + late : "does not answer");
  card.classList.toggle("away", !domain.answers);
  for (const name of ["waiting", "busy", "pods"]) {
    domain[name].forEach((value, at) => {
      const cell = card.querySelector(`.${name}`).cells[at + 1];
      say(cell, String(value));
      cell.className = value === 0 ? "zero" : name === "waiting" ? `heat-${heat(value)}` : "";
    });
  }
}

function showDomains(figures) {
  const key = (domain) => [domain.name, domain.waiting.length];
  keep(document.getElementById("domains"), figures.domains, key, domainCard, showDomain);
}

// --- charts

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

const nearest = (least) => (_, low, high) => [0, Math.max(least, (high ?? 0) * 1.08)];

// For each chart its lines (name -> values) of the figures, and how its values are written.
const CHARTS = {
  tails: {
    lines: ({ classes, history }) => [
      ...classes.map((one) => [one.name, sharesOf(history.tails[one.name] ?? [], one.objective_s)]),
      ["objective", history.t.map(() => 1)],
    ],
    text: (value) => value.toFixed(2),
    range: nearest(1.2),
  },
  late: {
    lines: ({ domains, history }) => domains.map((one) => [one.name, smooth(history.late[one.name] ?? [], MEAN_OF)]),
    text: percent,
    range: nearest(0.1),
  },
  waiting: {
    lines: ({ domains, history }) => domains.map((one) => [one.name, smooth(history.waiting[one.name] ?? [], MEAN_OF)]),
    text: (value) => (value < 10 ? value.toFixed(value % 1 ? 1 : 0) : String(Math.round(value))),
    range: nearest(8),
    steps: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000],
  },
};

const TIME_STEPS = [1, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600];

const drawn = new Map(); // name of a chart -> {plot, names}

const isGoal = (name) => name === "objective";

function series(name, at, text) {
  return {
    label: name,
    stroke: colour(isGoal(name) ? "--text" : `--series-${(at % COLOURS) + 1}`),
    width: isGoal(name) ? 1 : 1.75,
    dash: isGoal(name) ? [] : DASHES[at % DASHES.length],
    points: { show: false },
    value: (_, value) => (value === null || value === undefined ? NONE : text(value)),
  };
}

function axis(text, more) {
  return {
    stroke: colour("--quiet"),
    font: "12px system-ui, sans-serif",
    grid: { stroke: colour("--line"), width: 1 },
    ticks: { show: false },
    values: (_, ticks) => ticks.map(text),
    ...more,
  };
}

function plotOf(box, names, chart, data) {
  const time = { label: "time", value: (_, value) => (value === null ? NONE : elapsed(value)) };
  const border = (_, at) => (isGoal(names[at - 1]) ? BORDERS[0] : BORDERS[(at - 1) % BORDERS.length]);
  const options = {
    width: box.clientWidth,
    height: 210,
    padding: [10, 20, 0, 0],
    scales: { x: { time: false }, y: { range: chart.range } },
    axes: [
      axis(elapsed, { size: 26, incrs: TIME_STEPS }),
      axis(chart.text, { size: 46, ...(chart.steps && { incrs: chart.steps }) }),
    ],
    series: [time, ...names.map((name, at) => series(name, at, chart.text))],
    cursor: { sync: { key: "charts" }, drag: { x: false, y: false } },
    legend: { markers: { width: 3, dash: border } },
  };
  return new uPlot(options, data, box);
}

function showCharts(figures) {
  document.getElementById("history").hidden = !figures.history.t.length;
  if (!figures.history.t.length) return;
  if (typeof uPlot === "undefined") {
    document.getElementById("no-charts").hidden = false;
    document.getElementById("charts").hidden = true;
    return;
  }
  for (const [name, chart] of Object.entries(CHARTS)) {
    const lines = chart.lines(figures);
    const names = lines.map(([label]) => label);
    const data = [figures.history.t, ...lines.map(([, values]) => values)];
    let kept = drawn.get(name);
    if (kept && kept.names.join() === names.join()) {
      kept.plot.setData(data);
    } else {
      kept?.plot.destroy();
      kept = { names, plot: plotOf(document.getElementById(name), names, chart, data) };
      drawn.set(name, kept);
    }
    const pointed = kept.plot.cursor.left >= 0;
    if (!pointed) kept.plot.setLegend({ idx: figures.history.t.length - 1 });
  }
}

function dropCharts() {
  for (const { plot } of drawn.values()) plot.destroy();
  drawn.clear();
}

function fitCharts() {
  for (const { plot } of drawn.values()) {
    const width = plot.root.parentElement.clientWidth;
    if (width && width !== plot.width) plot.setSize({ width, height: plot.height });
  }
}

// --- the loop

let figures = null;
let silent = null;
let heard = new Date(); // of the last answer; before the first, of the page's start

function show() {
  document.body.dataset.state = stateOf(figures, silent);
  say(document.getElementById("status"), statusText(figures, silent));
  if (!figures) return;
  showFacts(figures);
  showClasses(figures);
  showDomains(figures);
  showCharts(figures);
}

async function ask() {
  try {
    const answer = await fetch("data", { cache: "no-store", signal: AbortSignal.timeout(PATIENCE_MS) });
    if (answer.ok) {
      figures = await answer.json();
      heard = new Date();
      silent = null;
    } else {
      silent = { since: heard, error: answer.status };
    }
  } catch {
    silent = { since: heard, error: null };
  }
}

async function live() {
  await ask();
  setTimeout(live, EVERY_MS); // before it is shown: a fault of the page's own does not end the questions
  show();
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  dropCharts(); // their colours are fixed when they are made
  show();
});
new ResizeObserver(() => requestAnimationFrame(fitCharts)).observe(document.getElementById("charts"));
live();
