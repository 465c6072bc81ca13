// Runs the wasm of the page in node, over the inputs whose answers the library wrote down:
// labels, verdicts and forward passes must be equal, energies within 1e-4.
//
//   node tests/browser/wasm.mjs

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";

const read = (path) => readFileSync(new URL(`../../crates/${path}`, import.meta.url), "utf8");
const page = read("upright-serve/site/index.html");
const script = (id) => page.split(`<script type="text/plain" id="${id}">\n`)[1].split("\n</script>")[0];

const began = performance.now();
const module = gunzipSync(Buffer.from(script("core"), "base64"));
const core = new Function(`${script("glue")}; return wasm_bindgen;`)();
core.initSync({ module });
const loaded = performance.now();

const answers = JSON.parse(read("upright-wasm/fitted/answers.json"));
const stages = {};
const times = {};
let furthest = 0;
for (const want of answers) {
  const { subject } = want;
  if (!stages[subject]) {
    const from = performance.now();
    const artifact = gunzipSync(Buffer.from(script(subject), "base64"));
    const stage = new core.Page(subject, artifact);
    stages[subject] = { stage, budget: JSON.parse(stage.facts()).budget };
    console.log(`${subject}: opened in ${(performance.now() - from).toFixed(0)} ms`);
  }
  const { stage, budget } = stages[subject];
  const sample = stage.input(stage.take(want.class, want.seed));
  const input = stage.views(sample, new Float32Array(want.map));
  const from = performance.now();
  const got = JSON.parse(stage.look(input, budget, NaN));
  (times[subject] ??= []).push(performance.now() - from);
  const name = `${subject}, class ${want.class}, seed ${want.seed}`;
  for (const what of ["model_label", "label", "verdict", "evaluations"]) {
    assert.equal(got[what], want[what], `${name}: ${what}`);
  }
  for (const what of ["energy_before", "energy_after"]) {
    const far = Math.abs(got[what] - want[what]);
    furthest = Math.max(furthest, far);
    assert.ok(far <= 1e-4, `${name}: ${what} ${got[what]}, natively ${want[what]}`);
  }
}
console.log(`wasm of ${module.length} bytes, unpacked and compiled in ${(loaded - began).toFixed(0)} ms`);
for (const [subject, all] of Object.entries(times)) {
  all.sort((a, b) => a - b);
  const at = (share) => all[Math.floor(share * (all.length - 1))].toFixed(1);
  console.log(`${subject}: ${all.length} inputs, median ${at(0.5)} ms, slowest ${at(1)} ms`);
}
console.log(`labels, verdicts and forward passes equal; energies within ${furthest.toExponential(1)}`);
