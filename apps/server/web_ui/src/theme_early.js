// SPDX-License-Identifier: MIT
// Before the first paint, so that a dark page does not flash white.
try {
    const theme = localStorage.getItem("frit-theme");
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
    // A browser without storage has the system's colours.
}
