// SPDX-License-Identifier: MIT
// The theme: light, dark, or that of the system.
import { signal } from "@preact/signals";

export const THEMES = ["auto", "light", "dark"];
export const theme = signal(document.documentElement.dataset.theme ?? "auto");

export function setTheme(name) {
    theme.value = name;
    if (name === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = name;
    try {
        localStorage.setItem("frit-theme", name);
    } catch {
        // the theme is not stored
    }
}
