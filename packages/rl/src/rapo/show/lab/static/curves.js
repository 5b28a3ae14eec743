// Curves over exposure, washout and replay: the mean of the episodes, and faintly the shown one.

import { colours, sharp } from "./palette.js";

const SMOOTH = 10;   // steps of the moving mean
const LEFT = 34, BOTTOM = 4, TOP = 8;

export class Curve {
  constructor(canvas, name) {
    this.canvas = canvas;
    this.name = name;
    this.data = null;
    this.time = 0;
    this.still = document.createElement("canvas");
  }

  // arrays: `a.NAME.mean`, `a.NAME.shown` and the same of b; spans: steps of the phases.
  show(arrays, spans) {
    this.spans = spans;
    this.data = Object.fromEntries(["b", "a"].map((side) => [side, {
      mean: smoothed(arrays[`${side}.${this.name}.mean`].data, spans),
      shown: smoothed(arrays[`${side}.${this.name}.shown`].data, spans),
    }]));
    this.layout();
  }

  clear() {
    this.data = null;
    this.canvas.getContext("2d").clearRect(0, 0, this.canvas.width, this.canvas.height);
  }

  layout() {
    if (!this.data) return;
    const { width, height, ratio } = sharp(this.canvas);
    Object.assign(this, { width, height, ratio });
    this.still.width = this.canvas.width;
    this.still.height = this.canvas.height;
    const pen = this.still.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    this.T = this.spans.reduce((a, b) => a + b, 0);
    this.most = this.top();
    this.x = (t) => LEFT + (t + 0.5) / this.T * (width - LEFT - 4);
    this.y = (v) => height - BOTTOM - v / this.most * (height - BOTTOM - TOP);
    pen.fillStyle = colours.band;
    pen.fillRect(this.x(this.spans[0]), 0, this.x(this.spans[0] + this.spans[1]) - this.x(this.spans[0]), height);
    this.grid(pen);
    for (const side of ["b", "a"]) {
      this.line(pen, this.data[side].shown, colours[side], 0.9, 0.28);
      this.line(pen, this.data[side].mean, colours[side], 1.7, 1);
    }
    this.draw(this.time);
  }

  top() {
    let most = 0;
    for (const side of ["a", "b"]) {
      for (const v of this.data[side].mean) if (v > most) most = v;
      for (const v of this.data[side].shown) if (v > most) most = v;
    }
    return most > 0 ? most * 1.05 : 1;
  }

  grid(pen) {
    pen.font = "10.5px system-ui, sans-serif";
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    pen.strokeStyle = colours.line;
    pen.lineWidth = 1;
    for (const v of ticks(this.most)) {
      pen.beginPath();
      pen.moveTo(LEFT, this.y(v));
      pen.lineTo(this.width - 4, this.y(v));
      pen.stroke();
      pen.fillStyle = colours.quiet;
      pen.fillText(String(v), LEFT - 5, this.y(v));
    }
  }

  line(pen, values, colour, width, alpha) {
    pen.strokeStyle = colour;
    pen.lineWidth = width;
    pen.globalAlpha = alpha;
    pen.lineJoin = "round";
    pen.beginPath();
    let down = false, at = 0, next = this.spans[0];
    for (let t = 0, phase = 0; t < values.length; t++) {
      if (t === next && phase < 2) { phase += 1; next += this.spans[phase]; down = false; }
      const v = values[t];
      if (Number.isNaN(v)) { down = false; continue; }
      if (down) pen.lineTo(this.x(t), this.y(v)); else pen.moveTo(this.x(t), this.y(v));
      down = true;
      at += 1;
    }
    if (at) pen.stroke();
    pen.globalAlpha = 1;
  }

  draw(time) {
    this.time = time;
    if (!this.data || !this.width) return;
    const pen = this.canvas.getContext("2d");
    pen.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    pen.clearRect(0, 0, this.width, this.height);
    pen.drawImage(this.still, 0, 0, this.width, this.height);
    pen.strokeStyle = colours.ink;
    pen.globalAlpha = 0.55;
    pen.lineWidth = 1;
    pen.beginPath();
    pen.moveTo(this.x(time), 0);
    pen.lineTo(this.x(time), this.height);
    pen.stroke();
    pen.globalAlpha = 1;
  }
}

function ticks(most) {
  const rough = most / 3;
  const unit = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((k) => k * unit).find((k) => k >= rough);
  const out = [];
  for (let i = 0; i * step <= most; i++) out.push(Number((i * step).toPrecision(6)));
  return out;
}

// Moving mean within each phase; what is undefined is left out.
function smoothed(values, spans) {
  const out = new Float32Array(values.length);
  let from = 0;
  for (const span of spans) {
    for (let t = from; t < from + span; t++) {
      let sum = 0, count = 0;
      for (let s = Math.max(from, t - SMOOTH + 1); s <= t; s++) {
        if (!Number.isNaN(values[s])) { sum += values[s]; count += 1; }
      }
      out[t] = count ? sum / count : NaN;
    }
    from += span;
  }
  return out;
}
