// The user's own images go to the model behind `upright serve`, if this page
// came from one. From a file or a plain host nothing is asked or sent.
const drop = (() => {
  const [zone, results, files] = ["zone", "results", "files"].map(byId);
  let info = null;

  const headers = () => {
    const token = byId("token").value.trim();
    return token ? { authorization: `Bearer ${token}` } : {};
  };

  async function detect() {
    if (!location.protocol.startsWith("http")) return;
    try {
      const answer = await fetch("v1/info", { headers: headers() });
      if (answer.status === 401) {
        byId("unserved").hidden = true;
        zone.hidden = byId("token-row").hidden = false;
        byId("drop-hint").textContent = "This server asks for its token.";
        return;
      }
      if (!answer.ok) return;
      const found = await answer.json();
      if (typeof found.classes !== "number") return;
      info = found;
    } catch {
      return;
    }
    byId("unserved").hidden = true;
    zone.hidden = false;
    const bare = info.shadow ? "; in shadow mode, its answers are the bare model's" : "";
    byId("drop-hint").textContent =
      `They go to ${info.name} on this server: ${info.classes} classes, budget ${info.budget}${bare}.`;
  }

  const text = (tag, words, name = "") => {
    const element = document.createElement(tag);
    element.textContent = words;
    if (name) element.className = name;
    return element;
  };
  const picture = (address, words) => {
    const image = document.createElement("img");
    [image.src, image.alt] = [address, words];
    return image;
  };

  function row(file, one) {
    const li = document.createElement("li");
    const pictures = document.createElement("span");
    pictures.className = "pair";
    if (file.type.startsWith("image/")) {
      const address = URL.createObjectURL(file);
      const image = picture(address, "");
      image.onload = () => URL.revokeObjectURL(address);
      image.onerror = () => image.remove();
      pictures.append(image);
    }
    if (one.view?.startsWith("data:image/")) {
      pictures.append(text("span", "\u2192", "to"), picture(one.view, "the view that answered"));
    }
    const words = document.createElement("span");
    words.className = "words";
    if (one.error) {
      li.className = "failed";
      words.append(text("b", one.error.message ?? "not understood"), text("span", one.error.hint ?? ""));
    } else {
      const name = (label, known) => known ?? info?.class_names?.[label] ?? String(label);
      words.append(text("b", name(one.label, one.class)));
      const became = {
        kept: "looks familiar, kept",
        accepted: `another view answers; the model alone says ${name(one.model_label, one.model_class)}`,
        rejected: "searched, no view looks better",
        abstained: "in doubt",
        switched: "answered by the second model",
      }[one.verdict] ?? one.verdict;
      const spent = `energy ${number(one.energy_before)} \u2192 ${number(one.energy_after)}, ${one.evaluations} forward passes`;
      words.append(text("span", became), text("span", spent + (one.truncated ? ", cut short" : "")));
    }
    words.append(text("span", file.name, "name"));
    li.append(pictures, words);
    return li;
  }

  async function send(list) {
    const all = [...list].filter((f) => f.size > 0);
    if (!all.length) return;
    zone.setAttribute("aria-busy", "true");
    for (const file of all) {
      const form = new FormData();
      form.append("file", file, file.name || "pasted.png");
      let one;
      try {
        const answer = await fetch("v1/predict?view=png", { method: "POST", body: form, headers: headers() });
        const body = await answer.json();
        one = body.predictions?.[0] ?? { error: body.error ?? { message: `the server said ${answer.status}` } };
      } catch {
        one = { error: { message: "the server could not be reached", hint: "is it still running?" } };
      }
      results.prepend(row(file, one));
    }
    zone.removeAttribute("aria-busy");
  }

  files.addEventListener("change", () => {
    send(files.files);
    files.value = "";
  });
  byId("token").addEventListener("change", detect);
  for (const name of ["dragenter", "dragover", "dragleave", "drop"]) {
    window.addEventListener(name, (e) => {
      if (!e.dataTransfer?.types.includes("Files")) return;
      e.preventDefault();
      zone.classList.toggle("over", name === "dragenter" || name === "dragover");
      if (name === "drop" && info) send(e.dataTransfer.files);
    });
  }
  window.addEventListener("paste", (e) => {
    if (info && e.clipboardData?.files.length) send(e.clipboardData.files);
  });
  detect();
  return { detect };
})();
