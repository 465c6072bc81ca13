// Runs in a worker, after the glue: answers one message after the other.
const stages = {};

const acts = {
  take: (s, { of, seed }) => s.take(of, seed),
  look(s, { drawn, budget, tau }) {
    const input = s.input(drawn);
    const began = performance.now();
    const looked = JSON.parse(s.look(input, budget, tau ?? NaN));
    looked.milliseconds = performance.now() - began;
    const maps = new Float32Array(looked.views.flatMap((v) => v.map));
    return { ...looked, input, items: s.views(input, maps) };
  },
  row: (s, { input, through, columns, rows, row }) =>
    s.landscape(input, new Float32Array(through), columns, rows, row),
};

onmessage = async ({ data: { id, act, subject, with: given } }) => {
  try {
    if (act === "start") {
      await wasm_bindgen({ module_or_path: given });
      return postMessage({ id, value: null });
    }
    if (act === "open") {
      stages[subject] = new wasm_bindgen.Page(subject, new Uint8Array(given));
      return postMessage({ id, value: JSON.parse(stages[subject].facts()) });
    }
    postMessage({ id, value: acts[act](stages[subject], given) });
  } catch (why) {
    postMessage({ id, error: String(why?.message ?? why) });
  }
};
