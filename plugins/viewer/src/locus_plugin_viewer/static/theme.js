// Before the page is painted: the theme that was chosen here, or none, for that of the system.
"use strict";
try {
  const chosen = localStorage.getItem("locus-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch (error) {
  // Storage may be switched off: then the system's theme counts.
}
