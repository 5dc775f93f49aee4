// SPDX-License-Identifier: MIT
// What differs between browsers, Node and Deno: how a worker starts, and which module the engine can load.

/** A worker as the package uses it. */
export interface Peer {
    post(message: unknown, transfer?: Transferable[]): void;
    onMessage(receive: (message: unknown) => void): void;
    onError(receive: (message: string) => void): void;
    end(): void;
}

export const isNode = typeof (globalThis as { Worker?: unknown }).Worker === "undefined" && typeof process === "object";

/** True if the engine can have several threads: in a browser only on a page with cross-origin isolation. */
export const hasThreads: boolean = typeof crossOriginIsolated === "undefined" || crossOriginIsolated;

/** True in a page or a worker of a browser; false in Node and Deno. */
export const isPage = typeof location === "object" && location.protocol.startsWith("http");

const NODE_OS = "node:os", NODE_WORKERS = "node:worker_threads";   // variables, so that bundlers for browsers do not look for them

export async function nProcessors(): Promise<number> {
    if (!isNode) return navigator.hardwareConcurrency || 1;
    return ((await import(/* @vite-ignore */ /* webpackIgnore: true */ NODE_OS)) as typeof import("node:os")).availableParallelism();
}

// i8x16.relaxed_swizzle in a function.
const RELAXED = new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 15, 1, 13, 0, 65, 1, 253, 15, 65, 2, 253, 15,
                                253, 128, 2, 11]);

/** The addresses of the package's files. A bundler that knows this form of addresses copies the files. */
export function filesAt(base: string | URL | undefined) {
    const isRelaxed = WebAssembly.validate(RELAXED);
    if (base !== undefined) {
        const folder = new URL(String(base).replace(/\/?$/, "/"), typeof location === "object" ? location.href : "file:///");
        const name = isRelaxed ? "frit-relaxed" : "frit";
        return { worker: new URL("worker.js", folder), module: new URL(`${name}.js`, folder), wasm: new URL(`${name}.wasm`, folder) };
    }
    const worker = new URL("./worker.js", import.meta.url);
    return isRelaxed
        ? { worker, module: new URL("./frit-relaxed.js", import.meta.url), wasm: new URL("./frit-relaxed.wasm", import.meta.url) }
        : { worker, module: new URL("./frit.js", import.meta.url), wasm: new URL("./frit.wasm", import.meta.url) };
}

/** Starts a worker. A script of another origin, as on a CDN, is loaded by a script of this one. */
export async function startWorker(url: URL): Promise<Peer> {
    if (isNode) return startNodeWorker(url);
    const isForeign = typeof location === "object" && url.origin !== location.origin && url.protocol.startsWith("http");
    const source = isForeign ? URL.createObjectURL(new Blob([`import ${JSON.stringify(url.href)};`], { type: "text/javascript" })) : url;
    const worker = new Worker(source, { type: "module", name: "frit" });
    return {
        post: (message, transfer = []) => worker.postMessage(message, transfer),
        onMessage: (receive) => { worker.onmessage = ({ data }) => receive(data); },
        onError: (receive) => {
            worker.onerror = (event) => receive(event.message || `the script ${url.href} cannot be loaded`);
        },
        end: () => worker.terminate(),
    };
}

async function startNodeWorker(url: URL): Promise<Peer> {
    const { Worker: NodeWorker } = (await import(/* @vite-ignore */ /* webpackIgnore: true */ NODE_WORKERS)) as typeof import("node:worker_threads");
    const worker = new NodeWorker(url);
    return {
        post: (message, transfer = []) => worker.postMessage(message, transfer as never),
        onMessage: (receive) => { worker.on("message", receive); },
        onError: (receive) => { worker.on("error", (error: Error) => receive(error.message)); },
        end: () => void worker.terminate(),
    };
}
