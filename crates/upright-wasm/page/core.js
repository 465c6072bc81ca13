// The library, in a worker made of this page itself: no file is loaded, so that
// it works from file:// and any host.
const core = (() => {
  const text = (id) => document.getElementById(id).textContent;
  const waiting = new Map();
  let next = 0;
  const url = URL.createObjectURL(
    new Blob([text("glue"), "\n", text("worker")], { type: "text/javascript" }));
  const worker = new Worker(url);
  worker.onmessage = ({ data: { id, value, error } }) => {
    const { done, failed } = waiting.get(id);
    waiting.delete(id);
    if (error === undefined) done(value);
    else failed(new Error(error));
  };
  worker.onerror = (e) => {
    for (const { failed } of waiting.values()) failed(new Error(e.message || "the worker failed"));
    waiting.clear();
  };

  function ask(act, subject, given, transfer = []) {
    const id = next++;
    return new Promise((done, failed) => {
      waiting.set(id, { done, failed });
      worker.postMessage({ id, act, subject, with: given }, transfer);
    });
  }

  async function unpack(base64) {
    const raw = atob(base64.trim());
    const bytes = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).arrayBuffer();
  }

  const started = unpack(text("core")).then((bytes) => ask("start", null, bytes, [bytes]));
  return {
    // What is known of a subject, once its classifier is there.
    async open(subject) {
      const [bytes] = await Promise.all([unpack(text(subject)), started]);
      return ask("open", subject, bytes, [bytes]);
    },
    take: (subject, of, seed) => ask("take", subject, { of, seed }),
    look: (subject, given) => ask("look", subject, given),
    row: (subject, given) => ask("row", subject, given),
  };
})();
