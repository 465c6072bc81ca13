// What came of an input: both answers, the gate, the views and the landscape.
const byId = (id) => document.getElementById(id);
const still = window.matchMedia("(prefers-reduced-motion: reduce)");
const number = (v, digits = 1) => v.toFixed(digits).replace("-", "\u2212");
const percent = (v) => `${v > 0.995 && v < 1 ? ">99" : Math.round(100 * v)} %`;

const energies = { low: -12, high: 9 };
const along = (energy) =>
  Math.max(0, Math.min(1, (energy - energies.low) / (energies.high - energies.low)));

function showAnswer(card, scene, label, shares, note) {
  const { facts, truth } = scene;
  const known = truth !== null;
  card.classList.toggle("right", known && truth === label);
  card.classList.toggle("wrong", known && truth !== label);
  const name = facts.classes[label];
  card.querySelector(".big").textContent = name;
  card.querySelector(".big").classList.toggle("word", name.length > 1);
  card.querySelector(".share").textContent = percent(shares[label]);
  card.querySelector(".note").textContent = note;
  showBars(card.querySelector(".bars"), facts.classes, shares, label);
}

// A bar for each digit; of classes with longer names the three likeliest.
function showBars(bars, classes, shares, label) {
  const words = classes.some((c) => c.length > 1);
  const order = shares.map((_, i) => i);
  if (words) order.sort((a, b) => shares[b] - shares[a]).splice(3);
  bars.classList.toggle("words", words);
  bars.innerHTML = order.map((i) => {
    const share = Math.max(words ? 0.5 : 2, 100 * shares[i]);
    const bar = `<i style="--share:${share.toFixed(1)}%"></i>`;
    const name = `<span>${classes[i]}</span>`;
    return `<li class="${i === label ? "top" : ""}" title="${classes[i]}: ${percent(shares[i])}">${words ? name + bar : bar + name}</li>`;
  }).join("");
}

// The input as it is, or on its way to the view that answered.
function drawSnap(canvas, scene, share) {
  const { context, width, height } = paint.on(canvas);
  const [middle, half] = [[width / 2, height / 2], Math.min(width, height) / 2];
  const { looked } = scene;
  const colour = paint.colour("--ink");
  if (scene.facts.signal === "cloud") {
    const back = space.between(space.transpose(looked.map), share);
    paint.cloud(context, scene.drawn, space.times(back, scene.rotation), middle, half, colour);
  } else {
    const [a, b, , c, d] = looked.map;
    const back = plane.between(plane.inverse([a, b, c, d]), share);
    paint.ink(context, scene.drawn, plane.times(back, scene.matrix), middle, half * 1.25, colour, scene.pen);
  }
}

let snapping = 0;
function snap(scene, settled) {
  cancelAnimationFrame(snapping);
  const canvas = byId("own").querySelector(".snap");
  drawSnap(byId("bare").querySelector(".snap"), scene, 0);
  if (!settled || still.matches || scene.looked.verdict !== "accepted") {
    return drawSnap(canvas, scene, 1);
  }
  const [began, { looked }] = [performance.now(), scene];
  const step = (now) => {
    if (scene.looked !== looked) return;
    const t = Math.max(0, Math.min(1, (now - began) / 520));
    drawSnap(canvas, scene, 1 - (1 - t) ** 3);
    if (t < 1) snapping = requestAnimationFrame(step);
  };
  snapping = requestAnimationFrame(step);
}

function showAnswers(scene, settled) {
  const { looked } = scene;
  showAnswer(byId("bare"), scene, looked.model_label, looked.model, "The input as it is, one forward pass.");
  const spent = `${looked.evaluations} forward pass${looked.evaluations > 1 ? "es" : ""}, ${number(looked.milliseconds, looked.milliseconds < 10 ? 1 : 0)} ms.`;
  const became = {
    kept: "Looks familiar: the model's own answer.",
    accepted: `View ${looked.answered} answers.`,
    rejected: "No view looks better: the model's own answer.",
  }[looked.verdict];
  showAnswer(byId("own"), scene, looked.label, looked.answer, `${became} ${spent}`);
  snap(scene, settled);
  if (settled) {
    const [bare, own] = [looked.model_label, looked.label].map((l) => scene.facts.classes[l]);
    byId("spoken").textContent = `Model alone: ${bare}. With upright: ${own}. ${became}`;
  }
}

function showGate(scene) {
  const { looked, facts } = scene;
  const tau = scene.tau ?? facts.tau;
  const open = looked.energy_before > tau;
  byId("lamp").classList.toggle("open", open);
  byId("gate-state").textContent = open ? "open: this input is searched" : "closed: this input is kept";
  byId("fitted").hidden = scene.tau === null;
  const range = byId("tau");
  [range.min, range.max] = [energies.low, energies.high];
  range.value = tau;
  range.setAttribute("aria-valuetext", `${number(tau)}; the input has ${number(looked.energy_before)}`);
  const x = (e) => 100 * along(e);
  const dots = looked.views.slice(1).map((v, i) => i + 1 === looked.answered ? "" :
    `<circle class="view" cx="${x(v.energy)}%" cy="50%" r="3.5"/>`);
  const [before, after] = [x(looked.energy_before), x(looked.energy_after)];
  const won = looked.answered > 0;
  byId("energies").innerHTML = `
    <rect class="shut" x="0" y="24" width="${x(tau)}%" height="8" rx="4"/>
    <rect class="open" x="${x(tau)}%" y="24" width="${100 - x(tau)}%" height="8" rx="4"/>
    ${won ? `<line class="drop" x1="${before}%" x2="${after}%" y1="28" y2="28"/>` : ""}
    ${dots.join("").replaceAll('cy="50%"', 'cy="28"')}
    <circle class="raw" cx="${before}%" cy="28" r="6.5"/>
    ${won ? `<circle class="won" cx="${after}%" cy="28" r="6.5"/>` : ""}
    ${mark(before, "input", looked.energy_before)}
    ${won ? mark(after, `view ${looked.answered}`, looked.energy_after) : ""}`;
}

function mark(x, name, energy) {
  const anchor = x < 12 ? "start" : x > 88 ? "end" : "middle";
  return `<text x="${Math.max(0, Math.min(100, x))}%" y="13" text-anchor="${anchor}">${name} ${number(energy)}</text>`;
}

function showViews(scene, settled) {
  const { looked, facts } = scene;
  const list = byId("views");
  const size = facts.shape.reduce((a, b) => a * b, 1);
  const text = (v, i) => {
    const what = i ? `View ${i}` : "Input";
    return `<li class="${i === looked.answered ? "won" : ""}" style="--n:${i}">
      <canvas aria-hidden="true"></canvas>
      <span class="what"><span>${what}</span><b>${facts.classes[v.label]}</b></span>
      <span class="energy">${number(v.energy)}</span></li>`;
  };
  list.classList.toggle("arrive", settled && !still.matches && looked.views.length > 1);
  list.innerHTML = looked.views.map(text).join("");
  [...list.children].forEach((li, i) => {
    const { context, width } = paint.on(li.querySelector("canvas"));
    const item = looked.items.subarray(i * size, (i + 1) * size);
    paint.item(context, facts, item, [0, 0, width], paint.colour("--ink"));
  });
}

const GRID = { columns: 48, rows: 15 };
// Energies at the ends of the colours: most lie between.
const TINTS = { low: -6, high: 4 };

// The colour of an energy.
function colours() {
  const read = (name) => paint.colour(name).match(/\w\w/g).map((h) => parseInt(h, 16));
  const ramp = ["--low", "--middle", "--high"].map(read);
  return (energy) => {
    const share = (energy - TINTS.low) / (TINTS.high - TINTS.low);
    const at = Math.max(0, Math.min(1, share)) * 2;
    const i = Math.min(1, Math.floor(at));
    return `rgb(${ramp[i].map((v, k) => Math.round(v + (ramp[i + 1][k] - v) * (at - i))).join(" ")})`;
  };
}

function drawLandscape(scene) {
  const { context, width, height } = paint.on(byId("landscape"));
  const { looked, facts, land } = scene;
  const solid = facts.signal === "cloud";
  const [left, top, right, bottom] = [46, 6, 8, 34];
  const [w, h] = [width - left - right, height - top - bottom];
  const colour = colours();
  const [soft, card, main, ink] = ["--soft", "--card", "--main", "--ink"].map(paint.colour);
  context.fillStyle = paint.colour("--faint");
  context.fillRect(left, top, w, h);
  const cell = [w / GRID.columns, h / GRID.rows];
  land?.rows.forEach((row, y) => {
    row?.forEach((energy, x) => {
      context.fillStyle = colour(energy);
      const top_ = top + (solid ? GRID.rows - 1 - y : y) * cell[1];
      context.fillRect(left + x * cell[0], top_, cell[0] + 0.6, cell[1] + 0.6);
    });
  });
  context.fillStyle = soft;
  context.font = `12px ${getComputedStyle(document.body).fontFamily}`;
  context.textAlign = "center";
  context.textBaseline = "top";
  for (const degrees of [-180, -90, 0, 90, 180]) {
    const x = left + (w * (degrees + 180)) / 360;
    context.textAlign = degrees === -180 ? "left" : degrees === 180 ? "right" : "center";
    context.fillText(`${String(degrees).replace("-", "\u2212")}°`, x, top + h + 5);
  }
  context.textAlign = "center";
  context.fillText(solid ? "turned back about the upright axis" : "turned back by", left + w / 2, top + h + 20);
  context.textAlign = "right";
  context.textBaseline = "middle";
  const marks = solid ? ["90°", "0°", "\u221290°"] : ["× 1.7", "× 1", "× 0.6"];
  marks.forEach((t, i) => context.fillText(t, left - 7, top + 6 + (i * (h - 12)) / 2));
  const spots = looked.views.map((v) =>
    [left + v.place[0] * w, top + (solid ? 1 - v.place[1] : v.place[1]) * h]);
  context.lineWidth = 1.5;
  const last = Math.min(spots.length, land?.shown ?? spots.length);
  for (let i = 0; i < last; i++) {
    const won = i === looked.answered;
    context.beginPath();
    context.arc(...spots[i], won ? 8 : 6.5, 0, 7);
    context.fillStyle = won ? main : card;
    context.strokeStyle = won ? card : ink;
    context.fill();
    context.stroke();
    context.fillStyle = won ? card : ink;
    context.textAlign = "center";
    context.font = `600 10px ${getComputedStyle(document.body).fontFamily}`;
    context.fillText(i || "\u2022", spots[i][0], spots[i][1] + 0.5);
  }
}

// Fills in the landscape row by row, from its middle, until the scene changes.
async function fillLandscape(scene) {
  const { looked } = scene;
  const middle = (GRID.rows - 1) / 2;
  const order = Array.from({ length: GRID.rows }, (_, i) => i)
    .sort((a, b) => Math.abs(a - middle) - Math.abs(b - middle));
  const turn = (plane.parts(scene.matrix).turn * Math.PI) / 180;
  scene.land = { rows: [] };
  for (const row of order) {
    const given = { input: looked.input, through: looked.pose, row, ...GRID };
    const energy = await core.row(scene.subject, given);
    if (scene.looked !== looked) return;
    scene.land.rows[row] = energy;
    if (row === middle && scene.facts.signal !== "cloud") {
      scene.ring = { energies: [...energy], turn };
    }
    if (scene !== shown()) continue;
    drawLandscape(scene);
    if (row === middle) pad.draw();
  }
  if (scene === shown()) document.body.dataset.still = "yes";
}
