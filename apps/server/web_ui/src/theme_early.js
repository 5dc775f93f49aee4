// SPDX-License-Identifier: MIT
// Sets the theme before the first paint, so that a dark UI does not flash white.
try {
    const theme = localStorage.getItem("frit-theme");
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
    // without storage, the theme of the system
}
