// The picture of the nodes: boxes, a dot for each replica, lines between the replicas of streams. Dots move when groups do.

import { COLOURS, drawnNodes, layout, placed } from "./figures.js";

const SVG = "http://www.w3.org/2000/svg";
const LINES = 300; // of streams, at most

export function svg(tag, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

export const colourOf = (number) => `series-${(number % COLOURS) + 1}`;

export class Graph {
  constructor(box) {
    this.box = box;
    this.dots = [];
    this.elements = new Map(); // key of a dot -> its group
    this.lines = svg("g", { class: "streams" });
    this.nodes = svg("g", { class: "nodes" });
    this.replicas = svg("g", { class: "replicas" });
    this.picture = svg("svg", { role: "img" }, this.nodes, this.lines, this.replicas);
    box.replaceChildren(this.picture);
  }

  // Returns how many nodes are not drawn.
  show({ nodes, deployment, components, streams }) {
    this.dots = placed(this.dots, deployment);
    const { names, leftOut } = drawnNodes(nodes, this.dots);
    const shown = this.dots.filter((dot) => names.includes(dot.node));
    const width = Math.max(200, this.box.clientWidth);
    const plan = layout(names, shown, width);
    this.picture.setAttribute("viewBox", `0 0 ${width} ${Math.max(1, plan.height)}`);
    this.picture.setAttribute("height", plan.height);
    this.picture.setAttribute("aria-label", this.told(names, shown));
    this.drawNodes(plan.boxes, new Set(nodes.filter((node) => node.draining).map((node) => node.id)));
    this.drawLines(streams, shown, plan.at);
    this.drawDots(shown, plan.at, components);
    return leftOut;
  }

  told(names, dots) {
    return `${dots.length} replicas on ${new Set(dots.map((dot) => dot.node)).size} of ${names.length} nodes; the table below says where.`;
  }

  drawNodes(boxes, draining) {
    this.nodes.replaceChildren(
      ...boxes.map((box) => {
        const away = draining.has(box.id);
        const frame = svg("rect", { x: box.x + 0.5, y: box.y + 0.5, width: box.width - 1, height: box.height - 1, rx: 6 });
        const name = svg("text", { x: box.x + 8, y: box.y + 17 }, box.id + (away ? " (drains)" : ""));
        return svg("g", { class: away ? "node draining" : "node" }, frame, name);
      }),
    );
  }

  drawLines(streams, dots, at) {
    const of = (component) => dots.filter((dot) => dot.component === component);
    const pairs = streams.flatMap(([from, to]) => of(from).flatMap((one) => of(to).map((other) => [one.key, other.key])));
    this.lines.replaceChildren(
      ...pairs.slice(0, LINES).map(([one, other]) => {
        const [[x1, y1], [x2, y2]] = [at[one], at[other]];
        return svg("line", { x1, y1, x2, y2 });
      }),
    );
  }

  drawDots(dots, at, components) {
    const numbers = new Map(components.map((component, number) => [component.id, number]));
    const keys = new Set(dots.map((dot) => dot.key));
    for (const [key, element] of this.elements) {
      if (!keys.has(key)) {
        element.remove();
        this.elements.delete(key);
      }
    }
    for (const dot of dots) {
      let element = this.elements.get(dot.key);
      const number = numbers.get(dot.component) ?? 0;
      if (!element) {
        element = svg("g", { class: `replica ${colourOf(number)}`, "data-key": dot.key }, svg("circle", { r: 9 }), svg("text"));
        this.elements.set(dot.key, element);
        this.replicas.append(element);
      }
      element.dataset.node = dot.node;
      element.lastChild.textContent = String(number + 1);
      const [x, y] = at[dot.key];
      element.style.transform = `translate(${x}px, ${y}px)`; // page.css moves it there, at once if motion is unwanted
    }
  }
}
