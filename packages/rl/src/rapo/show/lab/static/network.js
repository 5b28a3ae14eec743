// A side's picture: what stays is drawn once, what moves at every frame.

import { colours, sharp } from "./palette.js";
import { platformShapes } from "./platform.js";

const TRAIL = 5;      // steps for which a node glows on after it was active
const NEAR = 16;      // pixels within which the pointer finds a node

export class Picture {
  constructor(canvas) {
    this.canvas = canvas;
    this.still = document.createElement("canvas");
    this.scene = null;
    this.film = null;
    this.time = 0;
    this.chosen = -1;
  }

  // scene: of the place. film: arrays of this side, `every` and `stimulus`. side: its setting.
  show(scene, film, side) {
    const same = this.scene === scene && this.film && film && this.film.stimulus === film.stimulus;
    this.scene = scene;
    this.film = film;
    this.side = side;
    if (!same) this.layout(); else this.draw(this.time);
  }

  layout() {
    if (!this.scene) return;
    const width = this.canvas.clientWidth;
    const box = sharp(this.canvas, Math.round(width / Math.min(Math.max(this.scene.aspect, 1), 2.2)));
    Object.assign(this, { width: box.width, height: box.height, ratio: box.ratio });
    const pad = this.scene.kind === "graph" ? 12 : 4;
    this.at = (x, y) => [pad + x * (this.width - 2 * pad), pad + y * (this.height - 2 * pad)];
    this.still.width = this.canvas.width;
    this.still.height = this.canvas.height;
    const pen = this.still.getContext("2d");
    pen.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    pen.clearRect(0, 0, this.width, this.height);
    this.size = this.scene.kind === "graph"
      ? Math.min(6, Math.max(1.1, 0.2 * this.width / Math.sqrt(this.scene.n))) : 3;
    this.halo = sprite(3.2 * this.size, this.ratio, colours.scar);
    this.glow = sprite(2.6 * this.size, this.ratio, colours.active);
    this.shapes = null;
    if (this.scene.kind === "graph") this.graph(pen);
    else this.shapes = platformShapes(this);
    if (this.shapes) this.shapes.still(pen);
    this.draw(this.time);
  }

  graph(pen) {
    const { positions, edges, sensitive, support } = this.scene.arrays;
    const n = this.scene.n;
    this.x = new Float32Array(n);
    this.y = new Float32Array(n);
    for (let v = 0; v < n; v++) {
      const [x, y] = this.at(positions.data[2 * v], 1 - positions.data[2 * v + 1]);
      this.x[v] = x;
      this.y[v] = y;
    }
    pen.strokeStyle = colours.edge;
    pen.globalAlpha = Number(colours["edge-strength"]) * Math.min(1, 12 / Math.sqrt(edges.shape[0] / 10));
    pen.lineWidth = 0.6;
    pen.beginPath();
    for (let e = 0; e < edges.shape[0]; e++) {
      const u = edges.data[2 * e], v = edges.data[2 * e + 1];
      pen.moveTo(this.x[u], this.y[u]);
      pen.lineTo(this.x[v], this.y[v]);
    }
    pen.stroke();
    pen.globalAlpha = 1;
    const seeds = new Set();
    if (this.film) {
      const k = support.shape[1], z = this.film.stimulus - 1;
      for (let j = 0; j < k; j++) seeds.add(support.data[z * k + j]);
    }
    for (let v = 0; v < n; v++) {
      pen.beginPath();
      pen.arc(this.x[v], this.y[v], this.size * 0.8, 0, 7);
      pen.fillStyle = sensitive.data[v] ? colours.land : colours.node;
      pen.fill();
      if (sensitive.data[v]) {
        pen.strokeStyle = colours.sensitive;
        pen.lineWidth = Math.max(0.7, this.size * 0.3);
        pen.stroke();
      }
      if (seeds.has(v)) {
        pen.beginPath();
        pen.arc(this.x[v], this.y[v], this.size * 1.5, 0, 7);
        pen.strokeStyle = colours.quiet;
        pen.lineWidth = 0.8;
        pen.stroke();
      }
    }
  }

  // How far the scar of region r has closed it at a step, 0 to 1.
  closed(r, row) {
    const { H } = this.film.arrays;
    const h = H.data[row * H.shape[1] + r];
    const most = 1 - this.side.params.psi_min;
    return most > 0 ? Math.min(1, (1 - Math.exp(-this.side.params.w_H * h)) / most) : 0;
  }

  // Row of the fields that is nearest before a step, or -1.
  row(time) { return Math.min(Math.floor((time + 1) / this.film.every), this.film.arrays.H.shape[0]) - 1; }

  draw(time) {
    this.time = time;
    if (!this.scene || !this.width) return;
    const pen = this.canvas.getContext("2d");
    pen.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    pen.clearRect(0, 0, this.width, this.height);
    pen.drawImage(this.still, 0, 0, this.width, this.height);
    if (!this.film) return;
    if (this.shapes) this.shapes.moving(pen, time, this.row(time));
    else this.nodes(pen, time);
    if (this.chosen >= 0) this.ring(pen);
  }

  nodes(pen, time) {
    const { active, region } = this.film.arrays;
    const n = this.scene.n, bytes = active.shape[1], row = this.row(time);
    const regions = this.film.arrays.H.shape[1];
    if (row >= 0 && this.side.scope !== "off") {
      const strength = new Float32Array(regions);
      for (let r = 0; r < regions; r++) {
        strength[r] = this.film.arrays.never_gated.data[r] ? 0 : this.closed(r, row);
      }
      const half = 3.2 * this.size;
      for (let v = 0; v < n; v++) {
        const r = region.data[v];
        if (r < 0 || strength[r] < 0.02) continue;
        pen.globalAlpha = 0.75 * strength[r];
        pen.drawImage(this.halo, this.x[v] - half, this.y[v] - half, 2 * half, 2 * half);
      }
    }
    const start = this.scene.start(time);
    for (let back = TRAIL; back >= 0; back--) {
      if (time - back < start) continue;  // a phase that resets who is active has no past
      const base = (time - back) * bytes;
      pen.globalAlpha = back ? 0.5 * (1 - back / (TRAIL + 1)) : 1;
      pen.fillStyle = colours.active;
      const radius = this.size * (back ? 1 : 1.25), half = 2.6 * this.size;
      for (let byte = 0; byte < bytes; byte++) {
        let bits = active.data[base + byte];
        while (bits) {
          const v = 8 * byte + 31 - Math.clz32(bits & -bits);
          bits &= bits - 1;
          if (!back) pen.drawImage(this.glow, this.x[v] - half, this.y[v] - half, 2 * half, 2 * half);
          pen.beginPath();
          pen.arc(this.x[v], this.y[v], radius, 0, 7);
          pen.fill();
          if (!back) { pen.strokeStyle = colours["active-edge"]; pen.lineWidth = 0.7; pen.stroke(); }
        }
      }
    }
    pen.globalAlpha = 1;
  }

  ring(pen) {
    const spot = this.spot(this.chosen);
    if (!spot) return;
    pen.beginPath();
    pen.arc(spot[0], spot[1], Math.max(7, 2.2 * this.size), 0, 7);
    pen.strokeStyle = colours.ink;
    pen.lineWidth = 1.5;
    pen.stroke();
  }

  spot(i) {
    if (this.shapes) return this.shapes.spot(i);
    return i < this.scene.n ? [this.x[i], this.y[i]] : null;
  }

  get count() { return this.shapes ? this.shapes.count : this.scene.n; }

  // What is nearest to a point of the canvas, or -1.
  nearest(x, y) {
    if (!this.scene || !this.film) return -1;
    let best = -1, least = NEAR * NEAR;
    for (let i = 0; i < this.count; i++) {
      const spot = this.spot(i);
      if (!spot) continue;
      const far = (spot[0] - x) ** 2 + (spot[1] - y) ** 2;
      if (far < least) { least = far; best = i; }
    }
    return best;
  }

  // Words about a node or a region: [name, rest].
  words(i) {
    const graph = !this.shapes;
    const r = graph ? this.film.arrays.region.data[i] : i;
    const id = graph && this.scene.ids ? this.scene.ids[i] : i;
    const name = graph ? `node ${id}` : `region ${i}`;
    const inside = graph && this.scene.arrays.sensitive.data[i] ? " of V_sens" : "";
    if (r < 0) return [name, `${inside}, in a region that never carries harm: psi 1`];
    const { G, H, never_gated } = this.film.arrays;
    const row = this.row(this.time);
    const g = row < 0 ? 0 : G.data[row * G.shape[1] + r], h = row < 0 ? 0 : H.data[row * H.shape[1] + r];
    const { w_G, w_H, psi_min } = this.side.params;
    const psi = Math.min(1, Math.max(psi_min, Math.exp(-w_G * g - w_H * h)));
    const idle = this.side.scope === "off" || never_gated.data[r] ? " (not applied here)" : "";
    const of = graph ? `, region ${r + 1} of ${G.shape[1]} that carry harm` : "";
    return [name, `${inside}${of}: G ${g.toFixed(3)}, H ${h.toFixed(3)}, psi ${psi.toFixed(3)}${idle}`];
  }
}

// A soft disc.
function sprite(radius, ratio, colour) {
  const size = Math.max(4, Math.ceil(2 * radius * ratio));
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = size;
  const pen = canvas.getContext("2d");
  const fade = pen.createRadialGradient(size / 2, size / 2, 0, size / 2, size / 2, size / 2);
  fade.addColorStop(0, colour);
  fade.addColorStop(0.45, `${colour}88`);
  fade.addColorStop(1, `${colour}00`);
  pen.fillStyle = fade;
  pen.fillRect(0, 0, size, size);
  return canvas;
}
