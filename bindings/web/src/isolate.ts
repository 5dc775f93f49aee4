// SPDX-License-Identifier: MIT
// A service worker that gives a page cross-origin isolation where the server sets no headers, so that the engine has
// several threads. The page loads this script with a script element of its own folder; the page is loaded a second time
// when the service worker has started:
//
//     <script src="isolate.js"></script>

const scope = globalThis as unknown as { clients?: { claim(): Promise<void> }; skipWaiting?(): Promise<void> } & typeof globalThis;

function isolated(response: Response): Response {
    if (response.status === 0) return response;   // of another origin, without CORS: its headers are not readable
    const headers = new Headers(response.headers);
    headers.set("Cross-Origin-Embedder-Policy", "require-corp");
    headers.set("Cross-Origin-Opener-Policy", "same-origin");
    headers.set("Cross-Origin-Resource-Policy", "cross-origin");
    return new Response(response.body, { status: response.status, statusText: response.statusText, headers });
}

interface FetchEvent extends Event {
    request: Request;
    respondWith(response: Promise<Response>): void;
}

if (typeof window === "undefined") {
    scope.addEventListener("install", () => void scope.skipWaiting!());
    scope.addEventListener("activate", (event) => (event as unknown as { waitUntil(p: Promise<void>): void }).waitUntil(scope.clients!.claim()));
    scope.addEventListener("fetch", (event) => {
        const { request } = event as FetchEvent;
        const isForeign = new URL(request.url).origin !== location.origin;
        // Answers of other origins pass unless they could not be used in an isolated page: those are the page's own concern.
        if (isForeign || (request.cache === "only-if-cached" && request.mode !== "same-origin")) return;
        (event as FetchEvent).respondWith(fetch(request).then(isolated));
    });
} else if (!window.crossOriginIsolated && window.isSecureContext && navigator.serviceWorker) {
    const AGAIN = "frit-isolated";   // the page was loaded again already
    const own = (document.currentScript as HTMLScriptElement).src;
    navigator.serviceWorker.register(own).then(async (registration) => {
        await navigator.serviceWorker.ready;
        if (registration.active && !navigator.serviceWorker.controller) await new Promise((resolve) =>
            navigator.serviceWorker.addEventListener("controllerchange", resolve, { once: true }));
        if (sessionStorage.getItem(AGAIN)) return;
        sessionStorage.setItem(AGAIN, "1");
        location.reload();
    }, (error: Error) => console.warn(`frit: the page stays without cross-origin isolation: ${error.message}`));
}
