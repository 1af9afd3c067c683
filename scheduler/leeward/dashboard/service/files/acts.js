// Acting: asks for the token once, keeps it in memory only, and says how it ended.

import { readPlaces, words } from "./figures.js";

const byId = (name) => document.getElementById(name);

export class Acts {
  constructor(topology) {
    this.topology = topology; // () -> name of the topology that is shown
    this.token = "";
    this.proposal = null; // number of the plan that waits for approval, as shown
    byId("ask-no").addEventListener("click", () => this.answered(null));
    byId("ask").addEventListener("cancel", () => this.answered(null));
    byId("ask-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.answered(byId("token").value);
    });
    byId("drain-form").addEventListener("submit", (event) => {
      event.preventDefault();
      const node = byId("drain-node");
      const act = node.selectedOptions[0]?.dataset.draining === "true" ? "undrain" : "drain";
      const path = `api/nodes/${encodeURIComponent(node.value)}/${act}`;
      if (node.value) this.act(path, {}, `${act} ${node.value}`, ", for all topologies");
    });
    byId("drain-node").addEventListener("change", () => this.nameDrain());
    byId("scale-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.scale(byId("scale-component").value, byId("scale-places").value);
    });
  }

  path(act) {
    return `api/topologies/${encodeURIComponent(this.topology())}/${act}`;
  }

  scale(component, text) {
    const places = readPlaces(text);
    if (!places) {
      this.say("Replicas cannot be read. Write node:count, such as node1:2 node2:1.", true);
      byId("scale-places").focus();
      return;
    }
    this.act(this.path("reconfigure"), { replicas: { [component]: places } }, `reconfigure ${component}`);
  }

  // Another topology is shown.
  drop() {
    if (this.resolve) this.answered(null);
    this.say("");
  }

  // By a click. Approved is the plan that is shown, whatever waits when the token is typed.
  click(name) {
    const plan = name === "approve" ? this.proposal : undefined;
    if (plan === null) this.say("No plan waits for approval here.", true);
    else this.act(this.path(name), { plan }, plan === undefined ? words(name) : `approve plan ${plan}`);
  }

  // Buttons for the acts that need no more than a click; `acts`: [{name, about, plain}]
  show(acts, acting, nodes, { components, proposal }) {
    this.proposal = proposal;
    byId("no-acts").hidden = acting;
    byId("acts").hidden = !acting;
    const plain = acts.filter((act) => act.plain);
    keepOptions(byId("plain"), plain.map((act) => act.name), (name) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = words(name);
      button.title = acts.find((act) => act.name === name).about;
      button.addEventListener("click", () => this.click(name));
      return button;
    });
    keepOptions(byId("drain-node"), nodes.map((node) => `${node.id}${node.draining ? " (drains)" : ""}`), (text, at) => {
      const option = new Option(text, nodes[at].id);
      option.dataset.draining = String(nodes[at].draining);
      return option;
    });
    keepOptions(byId("scale-component"), components.filter((one) => !one.source).map((one) => one.id), (name) => new Option(name));
    this.nameDrain();
  }

  nameDrain() {
    const draining = byId("drain-node").selectedOptions[0]?.dataset.draining === "true";
    byId("drain-do").textContent = draining ? "Undrain" : "Drain";
  }

  // `of`: of what, for the question. The answer is said if the topology is still shown.
  async act(path, body, what, of = `, topology ${this.topology()}`) {
    const shown = this.topology();
    const say = (text, bad = false) => {
      if (this.topology() === shown) this.say(text, bad);
    };
    const token = this.token || (await this.ask(`${what}${of}`));
    if (!token) return;
    say(`${what}: asked, waiting for the end.`);
    try {
      const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
      const answer = await fetch(path, { method: "POST", headers, body: JSON.stringify(body) });
      const told = await answer.json();
      if (answer.ok) {
        this.token = token;
        say(`${what}: ${told.ending ?? (answer.status === 202 ? "still in progress" : "done")}${told.why ? `, ${told.why}` : ""}.`);
      } else {
        if (answer.status === 401) this.token = "";
        say(`${what}: ${told.error} ${told.remedy}`, true);
      }
    } catch {
      say(`${what}: the service does not answer. Try again when it does.`, true);
    }
  }

  ask(what) {
    byId("ask-what").textContent = `You are about to: ${what}.`;
    byId("token").value = "";
    byId("ask").showModal();
    byId("token").focus();
    return new Promise((resolve) => {
      this.resolve = resolve;
    });
  }

  answered(token) {
    byId("ask").close();
    this.resolve?.(token);
    this.resolve = null;
  }

  say(text, bad = false) {
    byId("told").textContent = text;
    byId("told").classList.toggle("bad", bad);
  }
}

// Children anew only if their texts change: a choice and the focus stay.
function keepOptions(parent, texts, build) {
  const keys = JSON.stringify(texts);
  if (parent.dataset.keys === keys) return;
  const chosen = parent.value;
  parent.replaceChildren(...texts.map(build));
  parent.dataset.keys = keys;
  if (chosen && [...(parent.options ?? [])].some((option) => option.value === chosen)) parent.value = chosen;
}
