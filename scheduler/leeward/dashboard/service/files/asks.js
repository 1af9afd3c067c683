// Asking what the policy would do, and why: the service computes, and nothing is changed.

import { showDry, showWords } from "./views.js";

const PATIENCE_MS = 240000; // longer than any answer takes: measuring, and computing up to its limit
const WIDTHS = [[1500, 140], [0, 110]]; // of the window, px -> of a line of words, characters; below it scrolls

const byId = (name) => document.getElementById(name);

export class Asks {
  constructor(topology) {
    this.topology = topology; // () -> name of the topology that is shown
    this.asking = null; // the question in progress
    byId("dry-do").addEventListener("click", () => this.plan());
    byId("explain-do").addEventListener("click", () => this.explain());
  }

  // Another topology is shown.
  drop() {
    this.asking?.abort();
    this.asking = null;
    this.say("");
    showDry(null);
    showWords(null);
  }

  plan() {
    const headers = { "Content-Type": "application/json" };
    const asked = { method: "POST", headers, body: "{}" };
    this.ask("plan", asked, "Measuring and planning", (answer) => answer.json(), showDry);
  }

  explain() {
    const [, width] = WIDTHS.find(([least]) => innerWidth >= least);
    const path = `explain?output=text&width=${width}`;
    this.ask(path, {}, "Measuring and explaining", (answer) => answer.text(), showWords);
  }

  // One question at a time; `read` gives the value of an answer, which is shown if the topology still is.
  async ask(path, options, doing, read, show) {
    if (this.asking) return;
    const asking = new AbortController();
    this.asking = asking;
    this.say(`${doing}: this takes half a minute or more.`);
    let [text, bad] = ["", false];
    try {
      const signal = AbortSignal.any([asking.signal, AbortSignal.timeout(PATIENCE_MS)]);
      const answer = await fetch(`api/topologies/${encodeURIComponent(this.topology())}/${path}`, {
        ...options, cache: "no-store", signal,
      });
      if (answer.ok) {
        const value = await read(answer);
        if (this.asking === asking) show(value);
        text = "Answered, below. Nothing was changed.";
      } else {
        const told = await answer.json();
        [text, bad] = [`${told.error} ${told.remedy}`, true];
      }
    } catch {
      [text, bad] = ["The service does not answer. Try again when it does.", true];
    }
    if (this.asking !== asking) return; // another topology is shown
    this.asking = null;
    this.say(text, bad);
  }

  say(text, bad = false) {
    byId("asked").textContent = text;
    byId("asked").classList.toggle("bad", bad);
  }
}
