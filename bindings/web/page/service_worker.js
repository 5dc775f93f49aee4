// SPDX-License-Identifier: MIT
// Keeps the page's files for use without a network, and gives the page cross-origin isolation on servers that set no
// headers for it. FILES and VERSION are defined by build.mjs.
const CACHE = `frit-page-${VERSION}`;

function isolated(response) {
    if (response.status === 0) return response;
    const headers = new Headers(response.headers);
    headers.set("Cross-Origin-Embedder-Policy", "require-corp");
    headers.set("Cross-Origin-Opener-Policy", "same-origin");
    return new Response(response.body, { status: response.status, statusText: response.statusText, headers });
}

async function install() {
    const cache = await caches.open(CACHE);
    await cache.addAll(FILES.map((file) => new Request(file, { cache: "no-cache" })));
    await self.skipWaiting();
}

async function activate() {
    for (const name of await caches.keys()) if (name.startsWith("frit-page-") && name !== CACHE) await caches.delete(name);
    await self.clients.claim();
}

// Files of the page come from the cache; all others, such as models, from the network.
async function answer(request) {
    const cache = await caches.open(CACHE), found = await cache.match(request, { ignoreSearch: true });
    return isolated(found ?? await fetch(request));
}

if (typeof window === "undefined") {
    self.addEventListener("install", (event) => event.waitUntil(install()));
    self.addEventListener("activate", (event) => event.waitUntil(activate()));
    self.addEventListener("fetch", (event) => {
        const { request } = event;
        if (request.method === "GET" && new URL(request.url).origin === location.origin && !request.headers.has("range"))
            event.respondWith(answer(request));
    });
} else if (navigator.serviceWorker) {
    const AGAIN = "frit-isolated";   // the page was loaded again already
    navigator.serviceWorker.register(document.currentScript.src).then(async () => {
        await navigator.serviceWorker.ready;
        if (!navigator.serviceWorker.controller)
            await new Promise((resolve) => navigator.serviceWorker.addEventListener("controllerchange", resolve, { once: true }));
        if (window.crossOriginIsolated || sessionStorage.getItem(AGAIN)) return;
        sessionStorage.setItem(AGAIN, "1");
        location.reload();
    }, (error) => {
        // Without a network the script cannot be compared with the server's; the one that runs goes on.
        if (!navigator.serviceWorker.controller) console.warn(`frit: the page does not work offline: ${error.message}`);
    });
}
