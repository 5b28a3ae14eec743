// Colours of the style sheet for canvases; they change with the system's light and dark.

const NAMES = ["ground", "panel", "line", "ink", "quiet", "a", "b", "active", "active-edge",
  "sensitive", "scar", "node", "edge", "edge-strength", "land", "band"];

export const dark = matchMedia("(prefers-color-scheme: dark)");
export let colours = read();
dark.addEventListener("change", () => { colours = read(); });

function read() {
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(NAMES.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

// A canvas with as many pixels as the screen shows; its context measures in CSS pixels.
export function sharp(canvas, height) {
  const ratio = Math.min(devicePixelRatio || 1, 2);
  const width = canvas.clientWidth;
  const tall = height === undefined ? canvas.clientHeight : height;
  if (height !== undefined) canvas.style.height = `${height}px`;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(tall * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(tall * ratio);
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return { context, width, height: tall, ratio };
}
