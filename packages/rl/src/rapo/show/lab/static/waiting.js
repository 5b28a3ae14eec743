// What the server is asked for, and how far it has come; work that takes long can be stopped.

import { ask } from "./api.js";

const SHOWN = 700;   // milliseconds after which work counts as long
const EVERY = 300;   // milliseconds between two looks at it

export class Waiting {
  constructor() {
    this.asked = {};   // kind of question: the one that is not answered yet
    this.words = document.querySelector("#busy");
    this.box = document.querySelector("#waiting");
    this.bar = document.querySelector("#share");
    this.far = document.querySelector("#far");   // the same in words, which nobody reads out
    this.looking = false;
    document.querySelector("#stop").addEventListener("click", () => this.stop());
  }

  // Ask; a newer question of the kind takes the place of this one. null if it was not answered.
  async newest(kind, body, words, refused) {
    if (this.asked[kind]) this.asked[kind].abort();
    const mine = this.asked[kind] = new AbortController();
    this.say(words, true);
    this.look();
    try {
      return await ask(kind, body, mine.signal);
    } catch (error) {
      refused(error);
      return null;
    } finally {
      if (this.asked[kind] === mine) {
        this.asked[kind] = null;
        if (!this.any) { this.box.hidden = true; if (!this.stopped) this.say("", false); }
      }
    }
  }

  get any() { return Object.values(this.asked).some(Boolean); }

  say(words, on) {
    this.stopped = false;
    this.words.textContent = words;
    this.words.classList.toggle("on", on);
  }

  // While anything is asked for: how far it has come.
  async look() {
    if (this.looking) return;
    this.looking = true;
    const began = performance.now();
    while (this.any) {
      await new Promise((done) => setTimeout(done, EVERY));
      if (!this.any || performance.now() - began < SHOWN) continue;
      let reply = { part: "", share: null };
      try { reply = await ask("progress", {}); } catch { /* the question itself tells */ }
      if (!this.any || this.stopped) continue;
      this.box.hidden = false;
      if (reply.share === null) this.bar.removeAttribute("value"); else this.bar.value = reply.share;
      this.far.textContent = reply.share === null ? "" : `${reply.part} ${Math.round(100 * reply.share)}%`;
    }
    this.looking = false;
  }

  // Forget questions whose answers nobody needs any more.
  drop(...kinds) {
    for (const kind of kinds) if (this.asked[kind]) this.asked[kind].abort();
  }

  async stop() {
    this.say("stopped", false);
    this.stopped = true;
    this.box.hidden = true;
    try { await ask("stop", {}); } catch { /* then it has ended anyway */ }
    this.drop(...Object.keys(this.asked));
  }
}
