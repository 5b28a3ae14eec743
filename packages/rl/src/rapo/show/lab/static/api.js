// Questions to the server and its answers: JSON, or a head with typed arrays behind it.

const KINDS = { float32: Float32Array, int32: Int32Array, uint8: Uint8Array, uint16: Uint16Array };

export class Refused extends Error {
  constructor(reply) {
    super(reply.error || "the server did not answer");
    this.control = reply.control || null;
    this.superseded = Boolean(reply.superseded);
  }
}

export async function ask(name, body, signal) {
  const reply = await sent(`/api/${name}`, { method: "POST", body: JSON.stringify(body), signal });
  const kind = reply.headers.get("content-type");
  if (kind.startsWith("application/json")) return reply.json().catch(lost);
  if (kind.startsWith("application/octet-stream")) return unpacked(await reply.arrayBuffer().catch(lost));
  return reply.blob().catch(lost);
}

export async function upload(file) {
  const name = encodeURIComponent(file.name);
  return (await sent(`/api/upload?name=${name}`, { method: "PUT", body: file })).json();
}

async function sent(address, options) {
  const reply = await fetch(address, options).catch(lost);
  if (reply.ok) return reply;
  let content = {};
  try { content = await reply.json(); } catch { /* no JSON: the status has to do */ }
  throw new Refused({ error: `the server answered with ${reply.status}`, ...content });
}

// An answer that did not come, or not to its end: a newer question took its place, or nobody is there.
function lost(error) {
  if (error.name === "AbortError") throw new Refused({ superseded: true });
  throw new Refused({ error: "rapo lab has ended; start it again in the terminal" });
}

// The head, with `arrays` by name: {data, shape}.
function unpacked(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  const arrays = {};
  for (const [name, kind, shape, at] of head.arrays) {
    const size = shape.reduce((a, b) => a * b, 1);
    arrays[name] = { data: new KINDS[kind](buffer, 4 + length + at, size), shape };
  }
  return { ...head, arrays };
}
