// The numbers: a row per metric, values with intervals, and the intervals drawn.

const NAMES = {
  RAG: ["RAG", "peak reach of Replay over Exposure's; 1 is full replay"],
  AUC_R: ["AUC-R", "total reach of Replay over Exposure's"],
  SM_R: ["SM-R", "sensitive mass of Replay over Exposure's"],
  OddsRatio: ["Odds", "odds of harmful entry in Replay over P0's at the same state"],
  Selectivity: ["Selectivity", "odds under another stimulus less odds under the same one: near 0, the gate holds back whatever comes"],
  SM_vs_P0: ["SM vs P0", "sensitive mass of Replay over that of a P0 run with the same draws"],
  ReplayReturn: ["Return", "discounted return of Replay"],
  ReturnKept: ["Return kept", "return of Replay over that of a P0 run with the same draws"],
  ScarMass: ["Scar mass", "sum of H when Replay begins"],
};
const PLAIN = new Set(["ReplayReturn", "ScarMass"]);   // no ratios: drawn on no axis
const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 66, MOST = 1.3;

// variants: [{rows: [{name, mean, low, high, pooled}]}] of A and B.
export function fill(body, variants) {
  body.replaceChildren(...variants[0].rows.map((row, i) => {
    const other = variants[1].rows[i];
    const line = document.createElement("tr");
    const [name, about] = NAMES[row.name];
    const head = document.createElement("th");
    head.scope = "row";
    head.textContent = name;
    head.title = about;
    line.append(head, cell(row, "a"), cell(other, "b"), plot(row, other));
    line.dataset.metric = row.name;
    return line;
  }));
}

export function said(value) {
  if (value === null) return "–";
  const size = Math.abs(value);
  return value.toFixed(size >= 100 ? 1 : size >= 10 ? 2 : 3);
}

function cell(row, side) {
  const td = document.createElement("td");
  td.dataset.side = side;
  for (const key of ["mean", "low", "high"]) td.dataset[key] = row[key] === null ? "" : String(row[key]);
  td.append(said(row.mean));
  if (row.low !== null) {
    const range = document.createElement("span");
    range.className = "range";
    range.textContent = `${said(row.low)} to ${said(row.high)}`;
    td.append(range);
  }
  return td;
}

function plot(a, b) {
  const td = document.createElement("td");
  td.className = "plot";
  if (PLAIN.has(a.name)) return td;
  const svg = node("svg", { viewBox: `0 0 ${WIDTH} 26`, width: WIDTH, height: 26, "aria-hidden": "true" });
  const x = (v) => 3 + Math.min(Math.max(v, 0), MOST) / MOST * (WIDTH - 6);
  for (const v of [0, 1]) svg.append(node("line", { class: "one", x1: x(v), x2: x(v), y1: 0, y2: 26 }));
  for (const [row, y, kind] of [[a, 8, "dot-a"], [b, 18, "dot-b"]]) {
    if (row.mean === null) continue;
    if (row.low !== null) {
      svg.append(node("line", { class: kind, x1: x(row.low), x2: x(row.high), y1: y, y2: y, "stroke-width": 4, "stroke-opacity": 0.45 }));
    }
    svg.append(node("circle", { class: kind, cx: x(row.mean), cy: y, r: 2.4 }));
  }
  td.append(svg);
  return td;
}

function node(name, attributes) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}
