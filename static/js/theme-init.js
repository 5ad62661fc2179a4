// Runs before the first paint, as a plain script: a chosen theme must not flash the other one.
(function () {
  try {
    var theme = localStorage.getItem("theme");
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  } catch {
    // Storage is off: the system's theme is used.
  }
})();
