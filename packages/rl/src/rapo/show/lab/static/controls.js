// The controls of the page; each says below itself why a value is refused.

const CONSTANTS = [
  // name, label, low, high, logarithmic, what it is
  ["w_G", "w_G", 0, 5, false, "weight of the trace G in psi = exp(-w_G G - w_H H)"],
  ["w_H", "w_H", 0, 8, false, "weight of the scar H in psi"],
  ["eta", "η eta", 0.001, 1, true, "growth of a scar per unit of trace above tau"],
  ["tau", "τ tau", 0.0001, 3, true, "trace above which a scar grows"],
  ["lam", "λ lam", 0.005, 1, true, "decay of the trace per step"],
  ["psi_min", "ψ_min", 0.01, 1, true, "lower bound of psi"],
  ["delta", "δ delta", 0.95, 1, false, "what is left of a scar after a step; 1 is for ever"],
];
const GRID = 1000;
const REGIONS = ["node", "community:3.2", "community:5", "pieces:5", "pieces:3", "grid:12"];
const SOURCES = { generated: "A generated graph", file: "A graph of your own", "rapo/Feed-v0": "Feed",
  "rapo/Routing-v0": "Routing", "rapo/Warehouse-v0": "Warehouse", "rapo/Twin-v0": "Twin" };

export class Controls {
  // moved: called with what has changed: "source", "variant" or "episodes". fit: of the fit button.
  constructor(start, { moved, fit, upload }) {
    this.limits = start.limits;
    this.moved = moved;
    this.fields = {};
    this.tab = "a";
    this.variants = { a: null, b: null };
    this.where(start, upload);
    this.setting(fit);
    this.episodes(start.first);
    for (const radio of document.querySelectorAll("[name=tab]")) {
      radio.addEventListener("change", () => this.openTab(radio.value));
    }
    this.mode = document.querySelector("#b_mode");
    this.mode.addEventListener("change", () => this.own(this.mode.value === "own"));
    document.querySelector("#controls").addEventListener("submit", (event) => event.preventDefault());
  }

  where(start, upload) {
    const box = document.querySelector("#where");
    const kind = select("source", start.kinds.map((k) => [k, SOURCES[k] || k]));
    kind.value = start.source.kind;
    kind.addEventListener("change", () => { this.kinds(); if (kind.value !== "file") this.moved("source"); });
    this.add(box, "source", "Run on", kind);
    this.add(box, "nodes", "Nodes", number("nodes", start.source.nodes, 20, start.limits.nodes, 10));
    this.add(box, "graph_seed", "Seed", number("graph_seed", start.source.seed, 0, 2147483647, 1));
    const path = document.createElement("input");
    Object.assign(path, { type: "text", id: "path", value: start.source.path, placeholder: "edges.csv, net.npz, net.graphml" });
    this.add(box, "path", "File", path);
    const file = document.createElement("input");
    Object.assign(file, { type: "file", id: "upload", accept: ".npz,.csv,.tsv,.gz,.graphml,.xml" });
    file.addEventListener("change", () => file.files.length && upload(file.files[0]));
    this.add(box, "upload", "or upload", file,
      `Up to ${Math.round(start.limits.bytes / 2 ** 20)} MB. CSV: columns src and dst; rapo graph makes .npz files of anything else.`);
    for (const name of ["nodes", "graph_seed", "path"]) {
      this.input(name).addEventListener("change", () => this.moved("source"));
    }
    this.kinds();
  }

  kinds() {
    const kind = this.input("source").value;
    for (const name of ["path", "upload"]) this.fields[name].box.hidden = kind !== "file";
    this.fields.nodes.box.hidden = kind !== "generated";
    this.fields.graph_seed.box.hidden = kind === "file";
  }

  setting(fit) {
    const box = document.querySelector("#setting");
    for (const [name, label, low, high, log, about] of CONSTANTS) {
      const slide = document.createElement("input");
      Object.assign(slide, { type: "range", id: `${name}-slide`, min: 0, max: GRID, step: 1, title: about });
      slide.setAttribute("aria-label", `${name}: ${about}`);
      const box_ = number(name, 0, undefined, undefined, "any");
      box_.title = about;
      const place = (v) => Math.round(GRID * (log ? Math.log(Math.max(v, low) / low) / Math.log(high / low) : (v - low) / (high - low)));
      const value = (i) => Number((log ? low * (high / low) ** (i / GRID) : low + (high - low) * i / GRID).toPrecision(3));
      slide.addEventListener("input", () => { box_.value = value(Number(slide.value)); this.read(name, Number(box_.value)); });
      box_.addEventListener("input", () => {
        if (box_.value !== "") slide.value = place(Number(box_.value));
        this.read(name, count(box_));
      });
      const parts = [slide, box_];
      if (name === "tau") {
        const button = document.createElement("button");
        Object.assign(button, { type: "button", id: "fit", textContent: "fit", title: "rapo.fit: tau and regions by a measured odds ratio" });
        button.addEventListener("click", fit);
        parts.push(button);
      }
      this.add(box, name, label, parts, undefined, about);
      this.fields[name].set = (v) => { box_.value = v; slide.value = place(v); };
    }
    const regions = document.createElement("input");
    Object.assign(regions, { type: "text", id: "regions" });
    regions.setAttribute("list", "region-specs");
    const list = document.createElement("datalist");
    list.id = "region-specs";
    list.append(...REGIONS.map((spec) => new Option(spec)));
    this.add(box, "regions", "Regions", [regions, list], undefined, "node, community:<size>, pieces:<size>, grid:<k>, label:<column>");
    regions.addEventListener("change", () => this.read("regions", regions.value));
    const scope = select("scope", [["full", "full"], ["off", "off: P0"], ["topk", "top k"], ["local", "local share"]]);
    const much = number("scope-much", 8, 0, undefined, "any");
    much.setAttribute("aria-label", "k, or share of the regions");
    const scoped = () => {
      much.hidden = !["topk", "local"].includes(scope.value);
      const word = scope.value === "topk" ? `topk:${much.value}` : scope.value === "local" ? `local:${much.value}` : scope.value;
      this.read("scope", word);
    };
    scope.addEventListener("change", () => { much.value = scope.value === "local" ? 0.5 : 8; scoped(); });
    much.addEventListener("change", scoped);
    this.add(box, "scope", "Scope", [scope, much], undefined, "where the kernel is deformed");
    this.fields.scope.set = (word) => {
      const [kind, rest] = word.split(":");
      scope.value = kind;
      much.hidden = rest === undefined;
      if (rest !== undefined) much.value = rest;
    };
    const policy = select("policy", []);
    const from = document.createElement("input");
    Object.assign(from, { type: "text", id: "policy-path", placeholder: "runs/RAPO, model.zip", hidden: true });
    from.setAttribute("aria-label", "File of the policy");
    policy.addEventListener("change", () => {
      from.hidden = policy.value !== "file";
      if (policy.value === "file") from.focus();
      const word = policy.value === "file" ? from.value.trim() : policy.value;
      if (word) this.read("policy", word);   // a path from before is taken at once
    });
    from.addEventListener("change", () => from.value.trim() && this.read("policy", from.value.trim()));
    this.add(box, "policy", "Policy", [policy, from], undefined, "a constant action, the folder of a run of rapo train, a model of Stable-Baselines3");
    this.fields.policy.set = (word) => {
      const known = [...policy.options].some((o) => o.value === word && word !== "file");
      policy.value = known ? word : "file";
      from.hidden = known;
      if (!known) from.value = word;
    };
  }

  episodes(initial) {
    const box = document.querySelector("#draws");
    const first = { count: 40, seed: 0, stimulus: 0, coupled: false, shown: 0, ...initial.episodes };
    this.add(box, "stimulus", "Stimulus", select("stimulus", [["0", "drawn"]]));
    this.add(box, "episodes", "Episodes", number("episodes", first.count, 2, this.limits.episodes, 1));
    this.add(box, "seed", "Seed", number("seed", first.seed, 0, 2147483647, 1));
    const coupled = document.createElement("input");
    Object.assign(coupled, { type: "checkbox", id: "coupled", checked: first.coupled });
    this.add(box, "coupled", "Coupled", coupled, undefined, "Replay reuses the draws of Exposure: under P0 it repeats it exactly");
    this.add(box, "shown", "Film of", number("shown", first.shown, 0, undefined, 1), "episode, counted from 0");
    for (const name of ["stimulus", "episodes", "seed", "coupled", "shown"]) {
      this.input(name).addEventListener("change", () => this.moved(name === "shown" ? "shown" : "episodes"));
    }
    this.first = first;
  }

  // A field: label, inputs, a line of what it is, and room for why it refuses.
  add(box, name, label, inputs, hint, title) {
    const field = document.createElement("div");
    field.className = "field";
    const head = document.createElement("label");
    head.textContent = label;
    const parts = Array.isArray(inputs) ? inputs : [inputs];
    const main = parts.find((part) => part.id === name);
    head.htmlFor = name;
    if (title) head.title = title;
    const value = document.createElement("div");
    value.className = "value";
    value.append(...parts);
    const why = document.createElement("p");
    Object.assign(why, { className: "why", id: `${name}-why`, hidden: true });
    why.setAttribute("role", "alert");
    main.setAttribute("aria-describedby", why.id);
    field.append(head, value);
    if (hint) {
      const words = document.createElement("p");
      Object.assign(words, { className: "hint", textContent: hint });
      field.append(words);
    }
    field.append(why);
    box.append(field);
    this.fields[name] = { box: field, why, main, set: (v) => { if (main.type === "checkbox") main.checked = v; else main.value = v; } };
  }

  input(name) { return this.fields[name].main; }

  // A new source: its stimuli, policies and first variant.
  opened(about, first) {
    this.about = about;
    const policy = this.input("policy");
    policy.replaceChildren(...about.policies.map((p) => new Option(p)), new Option("from a file…", "file"));
    const stimulus = this.input("stimulus");
    stimulus.replaceChildren(new Option("drawn", "0"), ...Array.from({ length: about.stimuli }, (_, i) => new Option(String(i + 1))));
    stimulus.value = this.first.stimulus <= about.stimuli ? String(this.first.stimulus) : "0";
    const variant = { ...about.variant, ...first.a, params: { ...about.variant.params, ...(first.a || {}).params } };
    this.variants = { a: structuredClone(variant), b: { ...structuredClone(variant), scope: "off" } };
    this.fields.regions.box.hidden = about.platform;
    document.querySelector("#fit").disabled = about.platform;
    this.own(false, true);
  }

  // Whether B has a setting of its own.
  own(on, quietly) {
    this.mode.value = on ? "own" : "nominal";
    if (on) this.variants.b = { ...structuredClone(this.variants.a), scope: "off" };
    const radio = document.querySelector("[name=tab][value=b]");
    radio.disabled = !on;
    this.openTab(on ? "b" : "a");
    if (!quietly) this.moved("variant");
  }

  openTab(tab) {
    this.tab = tab;
    document.querySelector(`[name=tab][value=${tab}]`).checked = true;
    const { params, ...rest } = this.variants[tab];
    for (const [name, value] of Object.entries({ ...params, ...rest })) {
      this.fields[name].set(value);
      this.clear(name);
    }
  }

  // A control of the present variant was moved.
  read(name, value) {
    const variant = this.variants[this.tab];
    (name in variant.params ? variant.params : variant)[name] = value;
    this.clear(name);
    this.moved("variant");
  }

  set(name, value) { this.fields[name].set(value); this.read(name, value); }

  refuse(name, words) {
    const field = this.fields[name];
    if (!field) return false;
    field.why.textContent = words;
    field.why.hidden = false;
    field.box.classList.add("wrong");
    field.main.setAttribute("aria-invalid", "true");
    return true;
  }

  clear(name) {
    for (const key of name ? [name] : Object.keys(this.fields)) {
      const field = this.fields[key];
      field.why.hidden = true;
      field.box.classList.remove("wrong");
      field.main.removeAttribute("aria-invalid");
    }
  }

  get source() {
    const kind = this.input("source").value;
    if (kind === "file") return { kind, path: this.input("path").value };
    const seed = count(this.input("graph_seed"));
    return kind === "generated" ? { kind, seed, nodes: count(this.input("nodes")) } : { kind, seed };
  }

  get choice() {
    return {
      source: this.settled, a: this.variants.a, b: this.mode.value === "own" ? this.variants.b : null,
      episodes: {
        count: count(this.input("episodes")), seed: count(this.input("seed")),
        stimulus: Number(this.input("stimulus").value), coupled: this.input("coupled").checked,
        shown: count(this.input("shown")),
      },
    };
  }
}

// What a number field holds; empty is null, which the server refuses by name.
function count(input) { return input.value === "" ? null : Number(input.value); }

function number(id, value, min, max, step) {
  const input = document.createElement("input");
  Object.assign(input, { type: "number", id, value, step });
  if (min !== undefined) input.min = min;
  if (max !== undefined) input.max = max;
  return input;
}

function select(id, options) {
  const made = document.createElement("select");
  made.id = id;
  made.append(...options.map(([value, words]) => new Option(words, value)));
  return made;
}
