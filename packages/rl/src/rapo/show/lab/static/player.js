// Play, pause and scrub: one clock for both pictures and all curves.

export class Player {
  constructor(onstep) {
    this.onstep = onstep;
    this.time = 0;
    this.T = 1200;
    this.playing = false;
    this.range = document.querySelector("#step");
    this.button = document.querySelector("#play");
    this.speed = document.querySelector("#speed");
    this.when = document.querySelector("#when");
    this.bands = [...document.querySelectorAll("#bands span")];
    this.range.addEventListener("input", () => this.go(Number(this.range.value)));
    this.button.addEventListener("click", () => this.play(!this.playing));
    document.querySelector("#to-replay").addEventListener("click", () => {
      this.go(this.spans[0] + this.spans[1]);
      this.play(true);
    });
    document.addEventListener("keydown", (event) => {
      const typing = event.target.closest("input:not([type=range]), select, textarea, button, dialog, summary");
      if (event.key === " " && !typing) { event.preventDefault(); this.play(!this.playing); }
    });
  }

  phases(spans) {
    this.spans = spans;
    this.T = spans.reduce((a, b) => a + b, 0);
    this.range.max = this.T - 1;
    document.querySelector("#bands").style.gridTemplateColumns = spans.map((s) => `${s}fr`).join(" ");
    this.go(Math.min(this.time, this.T - 1));
  }

  play(on) {
    this.playing = on;
    this.button.textContent = on ? "Pause" : "Play";
    this.button.setAttribute("aria-pressed", String(on));
    if (!on) return;
    if (this.time >= this.T - 1) this.go(0);
    let last = null, owed = 0;
    const tick = (now) => {
      if (!this.playing) return;
      last ??= now; // a frame's time may lie before this call: no step backwards
      owed += (now - last) / 1000 * Number(this.speed.value);
      last = now;
      const steps = Math.floor(owed);
      owed -= steps;
      if (steps) this.go(Math.min(this.time + steps, this.T - 1));
      if (this.time >= this.T - 1) this.play(false); else requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  }

  go(time) {
    this.time = time;
    this.range.value = time;
    if (!this.spans) return;
    let phase = 0, start = 0;
    while (phase < 2 && time >= start + this.spans[phase]) start += this.spans[phase++];
    this.bands.forEach((band, i) => band.classList.toggle("now", i === phase));
    const words = `${this.bands[phase].textContent}, step ${time - start + 1} of ${this.spans[phase]}`;
    this.when.textContent = words;
    this.range.setAttribute("aria-valuetext", words);
    this.onstep(time);
  }
}
