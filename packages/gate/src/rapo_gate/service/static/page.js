// What the reviewer's page does beyond HTML: the overview refreshes, charts can be read off.
// Every page works without this file.
"use strict";

const EVERY = 5000; // milliseconds between refreshes of the overview

function refresh() {
  const live = document.getElementById("live");
  const pause = document.getElementById("pause");
  if (!live || !pause) return;
  pause.hidden = false;
  pause.addEventListener("click", () => {
    const paused = pause.getAttribute("aria-pressed") !== "true";
    pause.setAttribute("aria-pressed", String(paused));
    pause.textContent = paused ? "Updates are paused" : "Pause updates";
  });
  setInterval(() => {
    const paused = pause.getAttribute("aria-pressed") === "true";
    // Nobody looks, or somebody reads a chart: leave what is there.
    const reading = live.querySelector("figure:hover, figure:focus");
    if (!paused && !document.hidden && !reading) htmx.trigger(live, "refresh");
  }, EVERY);
  document.body.addEventListener("htmx:afterSwap", announce);
}

// Screen readers are told only when something has changed, not at every refresh.
function announce() {
  const words = document.querySelector("[data-announce]");
  const announcer = document.getElementById("announcer");
  if (words && announcer && announcer.textContent !== words.textContent) {
    announcer.textContent = words.textContent;
  }
}

function nearest(xs, x) {
  let best = 0;
  for (let i = 1; i < xs.length; i++) {
    if (Math.abs(xs[i] - x) < Math.abs(xs[best] - x)) best = i;
  }
  return best;
}

function read(figure, index) {
  const data = JSON.parse(figure.dataset.chart);
  const at = Math.min(Math.max(index, 0), data.x.length - 1);
  const cursor = figure.querySelector(".cursor");
  cursor.setAttribute("x1", data.x[at]);
  cursor.setAttribute("x2", data.x[at]);
  const names = Object.keys(data.series);
  const values = names.map((n) => (names.length > 1 ? n + " " : "") + data.series[n][at]);
  figure.querySelector(".readout").textContent = data.at[at] + ": " + values.join(", ");
  figure.dataset.index = at;
}

function leave(figure) {
  const cursor = figure.querySelector(".cursor");
  cursor.setAttribute("x1", -9);
  cursor.setAttribute("x2", -9);
  figure.querySelector(".readout").textContent = "";
  delete figure.dataset.index;
}

function charts() {
  document.addEventListener("pointermove", (event) => {
    const figure = event.target.closest && event.target.closest("figure.chart");
    if (!figure) return;
    const svg = figure.querySelector("svg");
    const box = svg.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * svg.viewBox.baseVal.width;
    read(figure, nearest(JSON.parse(figure.dataset.chart).x, x));
  });
  document.addEventListener("pointerout", (event) => {
    const figure = event.target.closest && event.target.closest("figure.chart");
    if (figure && !figure.contains(event.relatedTarget)) leave(figure);
  });
  document.addEventListener("keydown", (event) => {
    const figure = event.target.closest && event.target.closest("figure.chart");
    const step = { ArrowLeft: -1, ArrowRight: 1, Home: -1e6, End: 1e6 }[event.key];
    if (!figure || step === undefined) return;
    event.preventDefault();
    const last = JSON.parse(figure.dataset.chart).x.length - 1;
    read(figure, Number(figure.dataset.index ?? last) + step);
  });
  document.addEventListener("focusout", (event) => {
    if (event.target.matches && event.target.matches("figure.chart")) leave(event.target);
  });
}

// One box that ticks all the others; without this file a link does it.
function chooseAll() {
  for (const all of document.querySelectorAll("input[data-all]")) {
    const boxes = () => all.form.querySelectorAll(`input[name="${all.dataset.all}"]`);
    all.hidden = false;
    all.addEventListener("change", () => {
      for (const box of boxes()) box.checked = all.checked;
    });
    all.form.addEventListener("change", () => {
      const chosen = [...boxes()].filter((box) => box.checked).length;
      all.checked = chosen === boxes().length;
      all.indeterminate = chosen > 0 && !all.checked;
    });
  }
}

refresh();
charts();
chooseAll();
