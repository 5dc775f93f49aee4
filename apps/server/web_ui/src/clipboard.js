// SPDX-License-Identifier: MIT
// Copies a text. navigator.clipboard needs a secure context, but a server in the local network has plain HTTP.
export async function copyText(text) {
    try {
        await navigator.clipboard.writeText(text);
        return true;
    } catch {
        const area = document.createElement("textarea");
        area.value = text;
        area.className = "hidden";
        document.body.append(area);
        area.select();
        const good = document.execCommand("copy");
        area.remove();
        return good;
    }
}
