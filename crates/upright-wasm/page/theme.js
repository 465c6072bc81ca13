// Before anything is painted: the colours that were chosen, if any.
try {
  const chosen = localStorage.getItem("upright-theme");
  if (chosen) document.documentElement.dataset.theme = chosen;
} catch {}
