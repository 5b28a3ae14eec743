// Platforms: their regions on their own map (discs, lines or cells), walkers as dots.

import { colours } from "./palette.js";

const AWAY = 65535;

export function platformShapes(picture) {
  return new { discs: Discs, lines: Lines, cells: Cells }[picture.scene.kind](picture);
}

class Shapes {
  constructor(picture) {
    this.picture = picture;
    this.arrays = picture.scene.arrays;
    this.harmful = this.arrays.harmful.data;
  }

  get count() { return this.harmful.length; }

  scar(r, row) {
    const p = this.picture;
    if (row < 0 || p.side.scope === "off" || p.film.arrays.never_gated.data[r]) return 0;
    return p.closed(r, row);
  }

  walkers(pen, time, radius) {
    const { data, shape } = this.picture.film.arrays.walkers;
    pen.fillStyle = colours.active;
    pen.strokeStyle = colours["active-edge"];
    pen.lineWidth = 0.5;
    for (let i = 0; i < shape[1]; i++) {
      const at = 2 * (time * shape[1] + i);
      if (data[at] === AWAY) continue;
      const [x, y] = this.picture.at(data[at] / (AWAY - 1), data[at + 1] / (AWAY - 1));
      pen.beginPath();
      pen.arc(x, y, radius, 0, 7);
      pen.fill();
      pen.stroke();
    }
  }
}

class Discs extends Shapes {
  spot(i) {
    const s = this.arrays.shapes.data;
    return this.picture.at(s[3 * i], s[3 * i + 1]);
  }

  radius(i) { return this.arrays.shapes.data[3 * i + 2] * Math.max(this.picture.width, this.picture.height) * 0.94; }

  still(pen) {
    for (let i = 0; i < this.count; i++) {
      const [x, y] = this.spot(i);
      pen.beginPath();
      pen.arc(x, y, this.radius(i), 0, 7);
      pen.strokeStyle = this.harmful[i] ? colours.sensitive : colours.line;
      pen.lineWidth = 1;
      pen.stroke();
    }
    const dots = this.arrays.dots;
    pen.fillStyle = colours.node;
    for (let i = 0; i < dots.shape[0]; i++) {
      const [x, y] = this.picture.at(dots.data[2 * i], dots.data[2 * i + 1]);
      pen.fillRect(x - 0.7, y - 0.7, 1.4, 1.4);
    }
  }

  moving(pen, time, row) {
    pen.fillStyle = colours.scar;
    for (let i = 0; i < this.count; i++) {
      const scar = this.scar(i, row);
      if (scar < 0.02) continue;
      const [x, y] = this.spot(i);
      pen.globalAlpha = 0.6 * scar;
      pen.beginPath();
      pen.arc(x, y, this.radius(i), 0, 7);
      pen.fill();
    }
    pen.globalAlpha = 0.85;
    this.walkers(pen, time, 2.6);
    pen.globalAlpha = 1;
  }
}

class Lines extends Shapes {
  ends(i) {
    const s = this.arrays.shapes.data;
    return [this.picture.at(s[4 * i], s[4 * i + 1]), this.picture.at(s[4 * i + 2], s[4 * i + 3])];
  }

  spot(i) {
    const [a, b] = this.ends(i);
    return [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2];
  }

  line(pen, i, width, colour, alpha, dashes = []) {
    const [a, b] = this.ends(i);
    pen.setLineDash(dashes);
    pen.globalAlpha = alpha;
    pen.strokeStyle = colour;
    pen.lineWidth = width;
    pen.lineCap = "round";
    pen.beginPath();
    pen.moveTo(...a);
    pen.lineTo(...b);
    pen.stroke();
    pen.setLineDash([]);
    pen.globalAlpha = 1;
  }

  still(pen) {
    for (let i = 0; i < this.count; i++) this.line(pen, i, 1, colours.edge, 0.8);
    pen.fillStyle = colours.quiet;
    const dots = this.arrays.dots;
    for (let i = 0; i < dots.shape[0]; i++) {
      const [x, y] = this.picture.at(dots.data[2 * i], dots.data[2 * i + 1]);
      pen.beginPath();
      pen.arc(x, y, 2.2, 0, 7);
      pen.fill();
    }
  }

  moving(pen, time, row) {
    const { data, shape } = this.picture.film.arrays.load;
    for (let i = 0; i < this.count; i++) {
      const scar = this.scar(i, row);
      if (scar >= 0.02) this.line(pen, i, 5 + 9 * scar, colours.scar, 0.5 * scar);
    }
    for (let i = 0; i < this.count; i++) {
      const load = data[time * shape[1] + i];
      if (load) this.line(pen, i, 1 + 5 * Math.min(1, load / 20), colours.active, 0.95);
      if (this.harmful[i]) this.line(pen, i, 1.6, colours.sensitive, 1, [2, 5]);
    }
  }
}

class Cells extends Shapes {
  constructor(picture) {
    super(picture);
    const { columns, rows } = picture.scene;
    const zone = this.arrays.zone.data;
    this.members = Array.from({ length: this.count }, () => []);
    for (let c = 0; c < zone.length; c++) if (zone[c] >= 0) this.members[zone[c]].push(c);
    this.middle = this.members.map((cells) => {
      if (!cells.length) return null;
      const x = cells.reduce((sum, c) => sum + c % columns, 0) / cells.length;
      const y = cells.reduce((sum, c) => sum + Math.floor(c / columns), 0) / cells.length;
      return [(x + 0.5) / columns, (y + 0.5) / rows];
    });
  }

  spot(i) { return this.middle[i] ? this.picture.at(...this.middle[i]) : null; }

  cell(pen, c) {
    const { columns, rows } = this.picture.scene;
    const x = c % columns, y = Math.floor(c / columns);
    const [left, top] = this.picture.at(x / columns, y / rows);
    const [right, bottom] = this.picture.at((x + 1) / columns, (y + 1) / rows);
    pen.fillRect(left, top, right - left + 0.3, bottom - top + 0.3);
  }

  still(pen) {
    const free = this.arrays.free.data;
    const { scene } = this.picture;
    pen.fillStyle = colours.line;
    for (let c = 0; c < free.length; c++) if (!free[c]) this.cell(pen, c);
    pen.fillStyle = colours.sensitive;
    pen.globalAlpha = 0.35;
    for (let i = 0; i < this.count; i++) if (this.harmful[i]) this.members[i].forEach((c) => this.cell(pen, c));
    pen.globalAlpha = 1;
    pen.fillStyle = colours.quiet;
    pen.font = "11px system-ui, sans-serif";
    if (scene.line !== undefined) {
      const [, y] = this.picture.at(0, scene.line);
      pen.textAlign = "right";
      pen.fillText("damage above (hidden)", this.picture.width - 8, y - 5);
      pen.textAlign = "left";
      pen.strokeStyle = colours.sensitive;
      pen.setLineDash([6, 4]);
      pen.beginPath();
      pen.moveTo(4, y);
      pen.lineTo(this.picture.width - 4, y);
      pen.stroke();
      pen.setLineDash([]);
      pen.fillText(scene.x, 8, this.picture.height - 8);
      pen.fillText(scene.y, 8, 16);
    }
  }

  moving(pen, time, row) {
    pen.fillStyle = colours.scar;
    for (let i = 0; i < this.count; i++) {
      const scar = this.scar(i, row);
      if (scar < 0.02) continue;
      pen.globalAlpha = 0.65 * scar;
      this.members[i].forEach((c) => this.cell(pen, c));
    }
    pen.globalAlpha = 1;
    this.walkers(pen, time, Math.max(1.8, Math.min(4, this.picture.width / 160)));
  }
}
