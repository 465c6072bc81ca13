// Everything together: one scene per tab, shown on one stage.
const SLIDERS = {
  plane: [
    { name: "turn", label: "Turn", min: -180, max: 180, step: 1, text: (v) => `${number(v, 0)}°` },
    { name: "shear", label: "Shear", min: -0.8, max: 0.8, step: 0.02, text: (v) => number(v, 2) },
    { name: "stretch", label: "Stretch", min: 0.5, max: 2, step: 0.02, text: (v) => `× ${number(v, 2)}` },
    { name: "size", label: "Size", min: 0.55, max: 1.45, step: 0.01, text: (v) => `× ${number(v, 2)}` },
  ],
  space: [
    { name: "x", label: "Nod", axis: [1, 0, 0] },
    { name: "y", label: "Roll", axis: [0, 1, 0] },
    { name: "z", label: "Spin", axis: [0, 0, 1] },
  ].map((s) => ({ ...s, min: -180, max: 180, step: 1, text: (v) => `${number(v, 0)}°` })),
};
const BUDGETS = [2, 4, 8, 16, 32, 60];
// A first picture that the bare model gets wrong.
const FIRST = {
  digits: { of: 4, seed: 12, parts: { turn: 128, shear: 0.18, stretch: 1, size: 1 } },
  strokes: { of: 2, seed: 5, parts: { turn: -105, shear: 0.25, stretch: 1.1, size: 0.9 } },
  solids: { of: 2, seed: 3, rotation: space.times(space.about([0, 1, 0], 2.2), space.about([1, 0, 0], 0.7)) },
};

const scenes = {};
let current = null;
const shown = () => scenes[current];
const pad = makePad(byId("pad"), changed);

function fail(why) {
  byId("busy").hidden = false;
  byId("busy").textContent = `This browser cannot run it: ${why.message}`;
}

async function open(subject) {
  const { of, seed, parts, rotation } = FIRST[subject];
  const facts = await core.open(subject);
  scenes[subject] = {
    subject, facts, seed, truth: of, tau: null, budget: facts.budget, roll: 0,
    drawn: [...(await core.take(subject, of, seed))],
    matrix: parts ? plane.of(parts) : plane.identity,
    rotation: rotation ?? space.identity,
    turns: { x: 0, y: 0, z: 0 },
    pen: subject === "strokes" ? 0.35 : 1,
    looked: null, land: null, ring: null,
  };
}

async function choose(subject) {
  for (const tab of document.querySelectorAll("[role=tab]")) {
    const on = tab.dataset.subject === subject;
    tab.setAttribute("aria-selected", on);
    tab.tabIndex = on ? 0 : -1;
    if (on) byId("work").setAttribute("aria-labelledby", tab.id);
  }
  current = subject;
  document.body.dataset.still = "no";
  if (!scenes[subject]) await open(subject);
  if (current !== subject) return;
  const scene = shown();
  const solid = scene.facts.signal === "cloud";
  document.body.dataset.subject = subject;
  byId("stage-hint").textContent = solid
    ? "Drag it to turn it in space. The ring rolls it."
    : "Draw here. The ring turns it, the corners shear and scale it.";
  byId("land-hint").textContent = solid
    ? "energy over two of the three turns, through the answer"
    : "energy over angle and size, through the answer";
  byId("pad").setAttribute("aria-label", solid ? "A thing to turn in space" : "Drawing area");
  byId("clear").hidden = byId("undo").hidden = solid;
  takes(scene);
  sliders(scene);
  byId("budget").value = BUDGETS.findIndex((b) => b >= scene.budget);
  byId("budget-value").textContent = `${scene.budget} views`;
  pad.show(scene);
  changed(true);
}

function takes(scene) {
  const name = scene.facts.classes;
  byId("takes").innerHTML = name
    .map((c, i) => `<button type="button" class="take" data-of="${i}" aria-label="Take a ${c}">${c}</button>`)
    .join("");
}

function sliders(scene) {
  const kind = scene.facts.signal === "cloud" ? "space" : "plane";
  byId("sliders").innerHTML = SLIDERS[kind]
    .map((s) => `<label><span>${s.label}</span><input type="range" data-name="${s.name}" min="${s.min}" max="${s.max}" step="${s.step}"><output></output></label>`)
    .join("");
  byId("sliders").dataset.kind = kind;
  showSliders(scene);
}

function showSliders(scene) {
  const { kind } = byId("sliders").dataset;
  const values = kind === "plane" ? plane.parts(scene.matrix) : scene.turns;
  for (const [i, label] of [...byId("sliders").children].entries()) {
    const { name, text } = SLIDERS[kind][i];
    const range = label.querySelector("input");
    if (document.activeElement !== range || kind === "plane") range.value = values[name];
    label.querySelector("output").textContent = text(values[name]);
    range.setAttribute("aria-valuetext", text(values[name]));
  }
}

// What the model gets: the drawing as it stands.
function posed(scene) {
  const out = new Float32Array(scene.drawn.length);
  if (scene.facts.signal === "cloud") {
    for (let i = 0; i < out.length; i += 3) {
      out.set(space.apply(scene.rotation, ...scene.drawn.slice(i, i + 3)), i);
    }
    return out;
  }
  const thick = Math.sqrt(Math.abs(plane.determinant(scene.matrix)));
  for (let i = 0; i < out.length; i += 4) {
    const [x, y, nib, start] = scene.drawn.slice(i, i + 4);
    out.set([...plane.apply(scene.matrix, x, y), nib * thick, start], i);
  }
  return out;
}

let busy = false;
let next = null;
let later = 0;

// Looks again, with the newest state only; the landscape follows when nothing moves.
function changed(settled) {
  const scene = shown();
  showSliders(scene);
  clearTimeout(later);
  document.body.dataset.still = "no";
  next = { scene, settled: settled || (next?.settled ?? false) };
  const empty = !scene.drawn.length;
  document.body.classList.toggle("empty", empty);
  if (empty) {
    scene.ring = scene.looked = null;
    byId("busy").textContent = "Write a digit here";
    byId("busy").hidden = false;
    pad.draw();
  }
  if (!busy) look();
}

async function look() {
  busy = true;
  try {
    while (next) {
      const { scene, settled } = next;
      next = null;
      if (!scene.drawn.length) continue;
      const looked = await core.look(scene.subject, {
        drawn: posed(scene), budget: scene.budget, tau: scene.tau,
      });
      if (!scene.drawn.length) continue;
      scene.looked = looked;
      scene.land = null;
      if (scene !== shown()) continue;
      show(scene, settled);
      if (!next) later = setTimeout(() => fillLandscape(scene).catch(fail), settled ? 60 : 200);
    }
  } catch (why) {
    fail(why);
  }
  busy = false;
}

function show(scene, settled) {
  byId("busy").hidden = true;
  showAnswers(scene, settled);
  showGate(scene);
  showViews(scene, settled);
  drawLandscape(scene);
  document.body.dataset.verdict = scene.looked.verdict;
  document.body.dataset.ready ??= performance.now();
}

function repaint() {
  pad.draw();
  const scene = shown();
  if (scene?.looked) {
    snap(scene, false);
    showViews(scene, false);
    drawLandscape(scene);
  }
}

function random() {
  const scene = shown();
  if (scene.facts.signal === "cloud") scene.rotation = space.random();
  else {
    const within = (reach) => reach * (2 * Math.random() - 1);
    let turn = within(180);
    if (Math.abs(turn) < 40) turn += 180;
    scene.matrix = plane.of({ turn, shear: within(0.35), stretch: 1.35 ** within(1), size: 1.2 ** within(1) });
  }
  pad.draw();
  changed(true);
}

async function take(of) {
  const scene = shown();
  scene.seed = 1 + Math.floor(Math.random() * 1e6);
  scene.drawn = [...(await core.take(scene.subject, of, scene.seed))];
  scene.truth = of;
  scene.ring = null;
  pad.draw();
  changed(true);
}

byId("takes").addEventListener("click", (e) => {
  const { of } = e.target.closest("button")?.dataset ?? {};
  if (of !== undefined) take(Number(of));
});
byId("random").addEventListener("click", random);
byId("reset").addEventListener("click", () => {
  Object.assign(shown(), { matrix: plane.identity, rotation: space.identity, roll: 0, turns: { x: 0, y: 0, z: 0 } });
  pad.draw();
  changed(true);
});
byId("clear").addEventListener("click", () => {
  Object.assign(shown(), { drawn: [], truth: null, matrix: plane.identity, ring: null });
  pad.draw();
  changed(true);
});
byId("undo").addEventListener("click", () => {
  const scene = shown();
  let last = scene.drawn.length - 4;
  while (last > 0 && scene.drawn[last + 3] < 0.5) last -= 4;
  scene.drawn = scene.drawn.slice(0, Math.max(0, last));
  if (!scene.drawn.length) scene.truth = null;
  pad.draw();
  changed(true);
});
byId("sliders").addEventListener("input", (e) => {
  const scene = shown();
  const { name } = e.target.dataset;
  const value = Number(e.target.value);
  if (byId("sliders").dataset.kind === "plane") {
    scene.matrix = plane.of({ ...plane.parts(scene.matrix), [name]: value });
  } else {
    const { axis } = SLIDERS.space.find((s) => s.name === name);
    const by = ((value - scene.turns[name]) * Math.PI) / 180;
    scene.rotation = space.times(space.about(axis, by), scene.rotation);
    scene.turns[name] = value;
  }
  pad.draw();
  changed(false);
});
byId("budget").addEventListener("input", (e) => {
  const scene = shown();
  scene.budget = BUDGETS[e.target.value];
  byId("budget-value").textContent = `${scene.budget} views`;
  changed(true);
});
byId("tau").addEventListener("input", (e) => {
  shown().tau = Number(e.target.value);
  changed(false);
});
byId("fitted").addEventListener("click", () => {
  shown().tau = null;
  changed(true);
  byId("tau").focus();
});

const tabs = [...document.querySelectorAll("[role=tab]")];
tabs.forEach((tab, i) => {
  tab.addEventListener("click", () => choose(tab.dataset.subject).catch(fail));
  tab.addEventListener("keydown", (e) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
    if (!by) return;
    const to = tabs[(i + by + tabs.length) % tabs.length];
    to.focus();
    to.click();
  });
});

const themes = { light: "light", dark: "dark", "": "as the system has them" };
byId("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const dark = window.matchMedia("(prefers-color-scheme: dark)").matches;
  const now = root.dataset.theme ?? (dark ? "dark" : "light");
  root.dataset.theme = now === "dark" ? "light" : "dark";
  try {
    localStorage.setItem("upright-theme", root.dataset.theme);
  } catch {}
  byId("theme").setAttribute("aria-label", `Colours: ${themes[root.dataset.theme]}`);
  repaint();
});
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
byId("more").open = window.matchMedia("(min-width: 34.01rem)").matches;
new ResizeObserver(repaint).observe(byId("pad"));

choose("digits").then(() => {
  byId("about").textContent =
    `upright ${shown().facts.version}. The same code as in the library, compiled to WebAssembly; what you draw stays in this page.`;
}).catch(fail);
