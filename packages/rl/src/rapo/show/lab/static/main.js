// The page: controls on the left, film, metrics and curves beside them, kept in step.

import { Refused, ask, upload } from "./api.js";
import { Controls } from "./controls.js";
import { Curve } from "./curves.js";
import { copy, picture, save } from "./exports.js";
import { Picture } from "./network.js";
import { dark } from "./palette.js";
import { Player } from "./player.js";
import { fill } from "./table.js";
import { tour } from "./tour.js";
import { Waiting } from "./waiting.js";

const $ = (selector) => document.querySelector(selector);
const FILM_WAITS = 220;   // milliseconds of rest after the last move until the film is asked for

const pictures = ["a", "b"].map((side) => new Picture($(`#net-${side}`)));
let curves = [];
let controls, scene, counts = null, rest = 0;
const waiting = new Waiting();
const player = new Player(step);

// For measurements and tests: when numbers were last drawn, and what is shown.
window.lab = { drawn: 0, filmed: 0, pictures, player };

function step(time) {
  pictures.forEach((p) => p.draw(time));
  curves.forEach((c) => c.draw(time));
  if (counts) {
    ["a", "b"].forEach((side) => {
      const [reach, inside] = ["reach", "sensitive_mass"].map((n) => counts[`${side}.${n}.shown`].data[time]);
      $(`#count-${side}`).textContent = `reach ${reach.toFixed(0)}, sensitive ${inside.toFixed(0)}`;
    });
  }
  probe();
}

// --- asking; only the newest question of a kind counts

const newest = (kind, body, words) => waiting.newest(kind, body, words, refused);

function drop(...kinds) {
  clearTimeout(rest);
  filming = false;
  waiting.drop(...kinds);
}

function refused(error) {
  if (!(error instanceof Refused)) throw error;
  if (error.superseded) return;
  if (error.control && controls && controls.refuse(error.control, error.message)) return;
  $("#problem").textContent = error.message;
  $("#problem").hidden = false;
}

async function openSource(first = {}) {
  const source = controls.source;
  const reply = await newest("source", { source }, "opening…");
  if (!reply) return;
  drop("metrics", "film");   // they are of the source before
  controls.clear();
  $("#problem").hidden = true;
  controls.settled = source;
  scene = reply;
  scene.start = (time) => (time < reply.horizons[0] + reply.horizons[1] ? 0 : reply.horizons[0] + reply.horizons[1]);
  forget();
  pictures.forEach((p) => { p.film = null; p.chosen = -1; });
  $("#title").textContent = reply.title;
  $("#warnings").replaceChildren(...reply.warnings.map((text) => Object.assign(document.createElement("li"), { textContent: text })));
  $("#warnings").hidden = !reply.warnings.length;
  $("#of-reach").textContent = reply.counts.reach;
  $("#of-sensitive").textContent = reply.counts.sensitive;
  legend(reply);
  controls.opened(reply, first);
  player.phases(reply.horizons);
  pictures.forEach((p) => { p.scene = scene; p.side = controls.variants.a; p.layout(); });
  await run();
}

// Metrics of the source before are not shown beside another one.
function forget() {
  shown = counts = null;
  curves.forEach((c) => c.clear());
  $("#rows").replaceChildren();
  for (const name of ["#point", "#how", "#count-a", "#count-b"]) $(name).textContent = "";
}

// Metrics and curves of the present choice; the film follows once the controls rest.
async function run() {
  if (!controls.settled) return;
  drop("film");
  const choice = controls.choice;
  const reply = await newest("metrics", choice, `running ${choice.episodes.count} episodes…`);
  if (!reply) return;
  controls.clear();
  $("#problem").hidden = true;
  shown = choice;
  fill($("#rows"), reply.variants);
  $("#of").textContent = choice.episodes.count;
  const own = choice.b !== null;
  const [a, b] = reply.variants.map((each) => each.point);
  $("#point").textContent = !own ? a : a === b ? `A and B: ${a}` : `A: ${a} B: ${b}`;
  $("#how").textContent = reply.variants[0].heavy
    ? "Cascades vary much between episodes: ratios are those of means, with a bootstrap over episodes. Intervals are of 95%, curves moving means of 10 steps."
    : "Means over episodes with 95% intervals; curves are moving means of 10 steps, thin ones of the episode that is filmed.";
  $("#name-a").textContent = scopeName(choice.a.scope);
  $("#name-b").textContent = own ? scopeName(choice.b.scope) : "P0";
  counts = reply.arrays;
  curves.forEach((c) => c.show(reply.arrays, scene.horizons));
  window.lab.drawn = performance.now();
  filming = true;
  rest = setTimeout(() => film(choice), FILM_WAITS);
}

async function film(choice) {
  const reply = await newest("film", choice, "filming one episode…");
  filming = Boolean(waiting.asked.film);   // a newer one may be under way
  if (!reply) return;
  ["a", "b"].forEach((side, i) => {
    const mine = Object.entries(reply.arrays).filter(([name]) => name.startsWith(`${side}.`));
    const arrays = Object.fromEntries(mine.map(([name, array]) => [name.slice(2), array]));
    const setting = side === "b" ? choice.b || { ...choice.a, scope: "off" } : choice.a;
    pictures[i].show(scene, { arrays, every: reply.every[i], stimulus: reply.stimulus }, structuredClone(setting));
  });
  step(player.time);
  window.lab.filmed = performance.now();
}

let shown = null;   // the choice whose numbers are on the page
let filming = false;   // whether its film is still to come

function scopeName(scope) {
  const [kind, rest] = scope.split(":");
  return { full: "RAPO", off: "P0", topk: `top ${rest}`, local: `local, ${rest}` }[kind];
}

function legend(reply) {
  const words = reply.kind === "graph"
    ? [["is-active", "active"], ["is-sensitive", "V_sens"], ["is-scar", "scar"], ["is-seed", "where the stimulus enters"]]
    : [["is-active", reply.kind === "lines" ? "flows on a link" : "walkers"],
       ["is-sensitive", "where harm is done (hidden from the platform)"], ["is-scar", "scar"]];
  $("#legend").replaceChildren(...words.map(([kind, text]) =>
    Object.assign(document.createElement("span"), { className: kind, textContent: text })));
}

// --- what is under the pointer

function probe() {
  const p = pictures.find((each) => each.chosen >= 0 && each.film);
  if (!p) return;
  const [name, rest] = p.words(p.chosen);
  const bold = Object.assign(document.createElement("b"), { textContent: name });
  $("#probe").replaceChildren(bold, rest);
}

pictures.forEach((p) => {
  const choose = (i) => {
    pictures.forEach((each) => { each.chosen = each === p ? i : -1; });
    step(player.time);
  };
  p.canvas.addEventListener("pointermove", (event) => {
    const box = p.canvas.getBoundingClientRect();
    const found = p.nearest(event.clientX - box.left, event.clientY - box.top);
    if (found !== p.chosen && found >= 0) choose(found);
  });
  p.canvas.addEventListener("keydown", (event) => {
    const way = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!way || !p.film) return;
    event.preventDefault();
    choose((p.chosen + way + p.count) % p.count);
  });
});

// --- the rest of the buttons

async function safely(work) {
  try { await work(); } catch (error) { refused(error); }
}

async function copied(kind) {
  if (shown) await copy(kind, shown); else nothing();
}

function nothing() { refused(new Refused({ error: "there are no metrics yet" })); }

// The numbers that are shown, as something to take away.
async function taken(kind, words, name) {
  if (!shown) { nothing(); return; }
  const file = await newest(kind, shown, words);
  if (file) save(file, name);
}

$("#python").addEventListener("click", () => safely(() => copied("python")));
$("#command").addEventListener("click", () => safely(() => copied("command")));
$("#csv").addEventListener("click", () => taken("csv", "writing the table…", "rapo-lab.csv"));
$("#png").addEventListener("click", () => safely(async () => {
  while (filming) await new Promise((done) => setTimeout(done, 50));
  const names = [`A: ${$("#name-a").textContent}`, `B: ${$("#name-b").textContent}`];
  save(await picture(pictures, curves, { title: `${$("#title").textContent}; ${$("#when").textContent}`, names }), "rapo-lab.png");
}));
$("#gif").addEventListener("click", async () => {
  $("#gif").disabled = true;
  await taken("gif", "drawing the film…", "rapo-lab.gif");
  $("#gif").disabled = false;
});

async function fit() {
  const variant = controls.variants[controls.tab];
  const reply = await newest("fit", { ...controls.choice, a: variant }, "fitting…");
  if (!reply) return;
  if (reply.regions) { controls.fields.regions.set(reply.regions); variant.regions = reply.regions; }
  controls.set("tau", reply.tau);
}

async function start() {
  const reply = await ask("start", {});
  curves = reply.curves.map((name) => new Curve($(`#curve-${name}`), name));
  window.lab.curves = curves;
  controls = new Controls(reply, {
    moved: (what) => (what === "source" ? openSource() : run()),
    fit,
    upload: (file) => safely(async () => {
      const { path } = await upload(file);
      controls.fields.path.set(path);
      await openSource();
    }),
  });
  window.lab.controls = controls;
  tour((on) => player.play(on));
  const again = () => { pictures.forEach((p) => p.layout()); curves.forEach((c) => c.layout()); };
  dark.addEventListener("change", () => requestAnimationFrame(again));
  let width = innerWidth;
  addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; again(); } });
  await openSource(reply.first);
}

start().catch(refused);
