// Five steps for somebody who is new here.

const STEPS = [
  ["A cascade on a network", ".pictures", "Every dot is an account, a place or a machine. Orange ones are active, and may wake those they point to. Blue rings mark V_sens, where activity does harm that is noticed 50 steps later. Grey rings are where the stimulus enters."],
  ["Exposure, washout, replay", "#transport", "Press Play. The stimulus is on, then off for 200 steps, then the same stimulus comes back. Drag the bar to any step. The question is: does the same cascade happen again?"],
  ["A remembers, B does not", ".pictures", "Both sides have the same draws. Under A, harm leaves scars (red) that make it harder to enter a region again. B is P0, the platform as it was. Press Replay and compare."],
  ["Move a constant", "#setting", "Try w_H or tau: numbers and curves follow while you drag. With tau too high no scar can form; the sentence below the numbers says so, and fit finds a tau for this network."],
  ["Take it with you", ".tools", "RAG near 1 is full replay, near 0 none; the lines beside are 95% intervals over the episodes. Copy as Python, or as a command: they give exactly these numbers. Then bring a graph of your own."],
];

export function tour(play) {
  const guide = document.querySelector("#guide");
  const [name, text, step] = ["#guide-name", "#guide-text", "#guide-step"].map((s) => document.querySelector(s));
  const back = document.querySelector("#guide-back"), next = document.querySelector("#guide-next");
  let at = 0, before = null;
  const show = (i) => {
    at = i;
    document.querySelectorAll(".shown").forEach((e) => e.classList.remove("shown"));
    const [title, target, words] = STEPS[i];
    const element = document.querySelector(target);
    element.classList.add("shown");
    element.scrollIntoView({ block: "nearest" });
    name.textContent = title;
    text.textContent = words;
    step.textContent = `${i + 1} of ${STEPS.length}`;
    back.disabled = i === 0;
    next.textContent = i === STEPS.length - 1 ? "Done" : "Next";
    if (i === 1) play(true);
  };
  const end = () => {
    guide.hidden = true;
    document.querySelectorAll(".shown").forEach((e) => e.classList.remove("shown"));
    if (before) before.focus();
  };
  document.querySelector("#tour").addEventListener("click", (event) => {
    before = event.currentTarget;
    guide.hidden = false;
    show(0);
    next.focus();
  });
  back.addEventListener("click", () => show(at - 1));
  next.addEventListener("click", () => (at < STEPS.length - 1 ? show(at + 1) : end()));
  document.querySelector("#guide-end").addEventListener("click", end);
  document.addEventListener("keydown", (event) => { if (event.key === "Escape" && !guide.hidden) end(); });
}
