// Theme switch: buttons with data-theme-choice="system|light|dark".
// The choice is kept in localStorage; without one the account's (then the system's) theme is used.

const root = document.documentElement;

/** The theme in force: "light" or "dark". */
export function currentTheme() {
  if (root.dataset.theme) return root.dataset.theme;
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

/** Call back whenever the theme in force changes. */
export function onThemeChange(callback) {
  document.addEventListener("themechange", () => callback(currentTheme()));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    if (!root.dataset.theme) callback(currentTheme());
  });
}

function choose(theme) {
  if (theme === "light" || theme === "dark") {
    root.dataset.theme = theme;
  } else {
    delete root.dataset.theme;
  }
  try {
    localStorage.setItem("theme", theme);
  } catch {
    // Private mode: the choice lasts for this page.
  }
  showChoice();
  document.dispatchEvent(new CustomEvent("themechange"));
}

function showChoice() {
  const chosen = root.dataset.theme || "system";
  for (const button of document.querySelectorAll("[data-theme-choice]")) {
    button.setAttribute("aria-pressed", String(button.dataset.themeChoice === chosen));
  }
}

export function start() {
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-theme-choice]");
    if (button) choose(button.dataset.themeChoice);
  });
  // The profile form's own theme field takes effect at once, and stays when the form is saved.
  document.addEventListener("change", (event) => {
    if (event.target.matches("select[data-theme-field]")) choose(event.target.value || "system");
  });
  showChoice();
}
