// Time series by uPlot.

import { clockOf, fixed, money, NONE, percent, rate, timeOf } from "./figures.js";

const DASHES = [[], [9, 4]];
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
// The legend has the newest values while the pointer is elsewhere.
function newest(plot) {
  if (!(plot.cursor.left >= 0)) plot.setLegend({ idx: plot.data[0].length - 1 });
}

const range = (least) => (_, __, high) => [0, Math.max(least, (high ?? 0) * 1.08)];

// For each chart its lines, [label, figure], and how its values are written.
export const CHARTS = {
  rate: { lines: [["rate", "rate"]], text: rate, range: range(1) },
  response: { lines: [["measured", "response_s"], ["modelled", "modelled_response_s"]], text: fixed(3), range: range(0.01) },
  cost: { lines: [["cost", "cost_per_h"]], text: money, range: range(1) },
  downtime: { lines: [["downtime", "downtime_share"]], text: percent, range: range(0.0001) },
};

export const FIGURES = Object.values(CHARTS).flatMap((chart) => chart.lines.map(([, figure]) => figure));

export class Charts {
  constructor() {
    this.drawn = new Map(); // name of a chart -> plot
  }

  // False if uPlot is not there.
  show(series) {
    if (typeof uPlot === "undefined") return false;
    for (const [name, chart] of Object.entries(CHARTS)) {
      const data = [series.t, ...chart.lines.map(([, figure]) => series.values[figure] ?? series.t.map(() => null))];
      const plot = this.drawn.get(name);
      if (plot) plot.setData(data);
      else this.drawn.set(name, this.plot(document.getElementById(name), chart, data));
      newest(this.drawn.get(name));
    }
    return true;
  }

  plot(box, chart, data) {
    const axis = (more) => ({
      stroke: colour("--quiet"),
      font: "12px system-ui, sans-serif",
      grid: { stroke: colour("--line"), width: 1 },
      ticks: { show: false },
      ...more,
    });
    const line = ([label], at) => ({
      label,
      stroke: colour(`--series-${at + 1}`),
      width: 2,
      dash: DASHES[at],
      points: { show: false },
      value: (_, value) => (value === null || value === undefined ? NONE : chart.text(value)),
    });
    return new uPlot(
      {
        width: Math.max(200, box.clientWidth),
        height: 190,
        padding: [10, 12, 0, 0],
        scales: { x: { time: true }, y: { range: chart.range } },
        axes: [axis({ size: 26, space: 90, values: (_, ticks) => ticks.map(clockOf) }), axis({ size: 62, values: (_, ticks) => ticks.map(chart.text) })],
        series: [{ label: "time", value: (_, value) => timeOf(value) }, ...chart.lines.map(line)],
        cursor: { sync: { key: "charts" }, drag: { x: false, y: false } },
        hooks: { ready: [newest] },
      },
      data,
      box,
    );
  }

  // Their colours and the topology are fixed when they are made.
  drop() {
    for (const plot of this.drawn.values()) plot.destroy();
    this.drawn.clear();
  }

  fit() {
    for (const plot of this.drawn.values()) {
      const width = Math.max(200, plot.root.parentElement.clientWidth);
      if (width !== plot.width) plot.setSize({ width, height: plot.height });
    }
  }
}
