(function () {
  const sheet = document.getElementById("cells");
  const buttons = document.querySelectorAll(".sort button");
  const value = (cell, name) => parseFloat(cell.dataset[name]);
  const gain = (a, b) => value(b, "gain") - value(a, "gain");
  const first = (verdict) => (a, b) =>
    (b.dataset.verdict === verdict) - (a.dataset.verdict === verdict) || gain(a, b);
  const orders = {
    gain,
    loss: (a, b) =>
      b.classList.contains("harmed") - a.classList.contains("harmed") || gain(b, a),
    rejected: first("rejected"),
    kept: first("kept"),
    energy: (a, b) => value(b, "energy") - value(a, "energy"),
    truth: (a, b) => value(a, "truth") - value(b, "truth") || gain(a, b),
  };
  buttons.forEach((button) => {
    button.addEventListener("click", () => {
      buttons.forEach((b) => b.setAttribute("aria-pressed", String(b === button)));
      [...sheet.children].sort(orders[button.dataset.by]).forEach((c) => sheet.append(c));
    });
  });
})();
