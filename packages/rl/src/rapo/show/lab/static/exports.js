// What can be taken away: code, a picture, a table, a film.

import { ask } from "./api.js";
import { colours } from "./palette.js";

export function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

export async function copy(kind, choice) {
  const text = (await ask("code", choice))[kind];
  const dialog = document.querySelector("#code");
  document.querySelector("#code-name").textContent = kind === "python" ? "As Python" : "As a command";
  const area = document.querySelector("#code-text");
  area.value = text;
  area.rows = Math.min(24, text.split("\n").length + 1);
  dialog.showModal();
  area.select();
  let words = "It is on the clipboard.";
  try { await navigator.clipboard.writeText(text); } catch { words = "Select it and copy it."; }
  document.querySelector("#code-said").textContent = words;
}

// Both pictures above the four curves, as they are on the page.
export function picture(pictures, curves, words) {
  const ratio = pictures[0].ratio;
  const gap = 16 * ratio, line = 26 * ratio;
  const width = 2 * pictures[0].canvas.width + 3 * gap;
  const tall = pictures[0].canvas.height;
  const each = (width - 3 * gap) / 2;
  const scaled = curves.map((c) => c.canvas.height * each / c.canvas.width);
  const out = document.createElement("canvas");
  out.width = width;
  out.height = 2 * line + tall + 2 * (scaled[0] + line + gap) + gap;
  const pen = out.getContext("2d");
  pen.fillStyle = colours.panel;
  pen.fillRect(0, 0, out.width, out.height);
  const write = (text, x, y, colour, weight = 400) => {
    pen.fillStyle = colour;
    pen.font = `${weight} ${13 * ratio}px system-ui, sans-serif`;
    pen.fillText(text, x, y);
  };
  write(words.title, gap, 0.8 * line, colours.quiet);
  pictures.forEach((p, i) => {
    const x = gap + i * (p.canvas.width + gap);
    write(words.names[i], x, 1.75 * line, colours[i ? "b" : "a"], 600);
    pen.drawImage(p.canvas, x, 2 * line);
  });
  curves.forEach((c, i) => {
    const x = gap + (i % 2) * (each + gap);
    const y = 2 * line + tall + gap + Math.floor(i / 2) * (scaled[0] + line + gap);
    write(c.name.replaceAll("_", " "), x, y + 0.7 * line, colours.ink, 500);
    pen.drawImage(c.canvas, x, y + line, each, scaled[i]);
  });
  return new Promise((done) => out.toBlob(done, "image/png"));
}
