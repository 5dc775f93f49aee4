// SPDX-License-Identifier: MIT
// Tests of downloads for pages, with the server of flaky.mjs: connections that end early, wrong bytes, no ranges.
import { equal, fails, holds, Missing, runTests } from "./api.mjs";

const MIB = 1 << 20;

async function statsOf(origin, id) {
    return (await fetch(`${origin}/stats/${id}`)).json();
}

let nUrls = 0;
const urlOf = (t, kind) => `${t.origin}/${kind}/${t.engine}${Date.now()}${nUrls++}/file.gguf`;
const idOf = (url) => url.split("/").at(-2);

async function cleaned(t, url) {
    await t.api.deleteStored(t.api.storedName(url));
}

// Starts a download by the package's worker, and ends the worker as the browser does when a tab is closed.
async function killAt(t, url, part) {
    const worker = new Worker(`${t.dist}/worker.js`, { type: "module" });
    const name = t.api.storedName(url);
    const loaded = await new Promise((resolve, reject) => {
        worker.onmessage = ({ data }) => {
            if (data.event && data.event.total > 0 && data.event.loaded >= part * data.event.total) resolve(data.event.loaded);
            if (data.error || "result" in data) reject(new Error(data.error?.message ?? "it was complete before it was killed"));
        };
        worker.postMessage({ id: 1, method: "download", args: [{ url, name, sha256: null }] });
    });
    worker.terminate();
    await new Promise((resolve) => setTimeout(resolve, 500));   // the server sees that the connections are closed
    return loaded;
}

const tests = {
    async "a file is downloaded once"(t) {
        const url = urlOf(t, "good"), progress = [];
        const name = await t.api.download(url, { sha256: t.sha256, onProgress: (each) => progress.push(each) });
        equal([progress.at(-1).loaded, progress.at(-1).total], [t.size, t.size]);
        await t.api.download(url);
        const { bytes, requests } = await statsOf(t.origin, idOf(url));
        holds(bytes < t.size + MIB, `${bytes} bytes of ${t.size} in ${requests} requests`);
        const stored = (await t.api.listStored()).find((each) => each.name === name);
        equal([stored.url, stored.size, stored.complete], [url, t.size, true]);
        await cleaned(t, url);
        equal((await t.api.listStored()).some((each) => each.name === name), false);
    },
    async "several connections fetch ranges"(t) {
        const url = urlOf(t, "slow");
        await t.api.download(url, { sha256: t.sha256 });
        const { most } = await statsOf(t.origin, idOf(url));
        holds(most >= 2, `at most ${most} connections at once`);
        await cleaned(t, url);
    },
    async "connections that end early are made again"(t) {
        const url = urlOf(t, "cut");
        await t.api.download(url, { sha256: t.sha256 });
        const { bytes, requests } = await statsOf(t.origin, idOf(url));
        holds(requests > 5, `${requests} requests`);
        await cleaned(t, url);
        return `${requests} requests, ${(bytes / t.size).toFixed(2)} of the file`;
    },
    async "a killed download fetches at most 1 MiB again"(t) {
        const url = urlOf(t, "slow");
        const loaded = await killAt(t, url, 0.5), { bytes: before } = await statsOf(t.origin, idOf(url));
        equal((await t.api.listStored()).find((each) => each.url === url).complete, false);
        await t.api.download(url, { sha256: t.sha256 });
        const { bytes } = await statsOf(t.origin, idOf(url)), again = bytes - before - (t.size - loaded);
        await cleaned(t, url);
        holds(again <= MIB, `${again} bytes were fetched again`);
        return `killed with ${(loaded / MIB).toFixed(1)} MiB, ${(again / MIB).toFixed(2)} MiB again`;
    },
    async "a stopped download continues"(t) {
        const url = urlOf(t, "slow"), controller = new AbortController();
        let name, stored = 0;
        await t.api.download(url, { signal: controller.signal, onProgress: ({ loaded, total }) => {
            stored = loaded;
            if (loaded > total / 3 && total) controller.abort();
        } }).catch((error) => (name = error.name));
        equal(name, "AbortError");
        await new Promise((resolve) => setTimeout(resolve, 1500));
        const { bytes: before } = await statsOf(t.origin, idOf(url));
        await t.api.download(url, { sha256: t.sha256 });
        const { bytes } = await statsOf(t.origin, idOf(url));
        holds(bytes - before <= t.size - stored + MIB, `${bytes - before} bytes again, ${t.size - stored} were missing`);
        await cleaned(t, url);
    },
    async "wrong bytes are refused, and nothing of them stays"(t) {
        const url = urlOf(t, "wrong");
        await fails(t.api.download(url, { sha256: t.sha256 }), "E_FORMAT", "SHA-256");
        await fails(t.api.download(url, { sha256: t.sha256 }), "E_FORMAT", "SHA-256");
        await cleaned(t, url);
    },
    async "a server without ranges gives the file at once"(t) {
        const url = urlOf(t, "whole");
        await t.api.download(url, { sha256: t.sha256 });
        await cleaned(t, url);
    },
    async "answers with other ranges are refused"(t) {
        const url = urlOf(t, "shifted");
        await fails(t.api.download(url), "E_IO", "answers a request for bytes");
        await cleaned(t, url);
    },
    async "a file that changes on the server is refused"(t) {
        const url = urlOf(t, "changing");
        await fails(t.api.download(url), "E_IO", "changed on the server");
        await cleaned(t, url);
    },
    async "a missing file is not asked for again"(t) {
        const url = urlOf(t, "missing");
        await fails(t.api.download(url), "E_NOT_FOUND", "404");
        equal((await statsOf(t.origin, idOf(url))).requests, 1);
        await cleaned(t, url);
    },
    async "a busy server is asked again"(t) {
        const url = urlOf(t, "busy");
        await t.api.download(url, { sha256: t.sha256 });
        await cleaned(t, url);
    },
    async "two tabs download a file once"(t) {
        const url = urlOf(t, "slow");
        const [a, b] = await Promise.all([t.api.download(url, { sha256: t.sha256 }), t.api.download(url)]);
        equal(a, b);
        const { bytes } = await statsOf(t.origin, idOf(url));
        holds(bytes < t.size + 2 * MIB, `${bytes} of ${t.size}`);
        await cleaned(t, url);
    },
    async "a file larger than the quota is refused before it is fetched"(t) {
        const url = urlOf(t, "huge");
        const error = await fails(t.api.download(url), "E_LIMIT", "MiB");
        holds((await statsOf(t.origin, idOf(url))).bytes < 2 * MIB, "it was fetched");
        await cleaned(t, url);
        return error.message.replace(url, "URL");
    },
    async "a stored model loads without the network"(t) {
        const url = urlOf(t, "good");
        await t.api.download(url, { sha256: t.sha256 });
        const { bytes } = await statsOf(t.origin, idOf(url));
        const start = performance.now();
        const frit = await t.api.Frit.load({ stored: t.api.storedName(url) }, t.options);
        const ready = performance.now() - start;
        const answer = await frit.completions.create({ prompt: t.text.prompt, temperature: 0, max_tokens: t.text.n });
        equal(answer.choices[0].text, t.text.expected);
        equal((await statsOf(t.origin, idOf(url))).bytes, bytes);
        frit.close();
        await cleaned(t, url);
        return `loaded in ${ready.toFixed(0)} ms`;
    },
    async "a split set is found by one of its addresses"(t) {
        if (!t.hasParts) throw new Missing("there is no split set");
        const frit = await t.api.Frit.load(`${t.origin}/parts/${t.engine}/parts-00001-of-00003.gguf`, t.options);
        const answer = await frit.completions.create({ prompt: t.text.prompt, temperature: 0, max_tokens: t.text.n });
        equal(answer.choices[0].text, t.text.expected);
        frit.close();
        for (const { name, url } of await t.api.listStored()) if (url.includes("/parts/")) await t.api.deleteStored(name);
    },
};

// Hides the private files, so that the Cache API is used.
async function withoutFiles(body) {
    const { getDirectory } = StorageManager.prototype;
    StorageManager.prototype.getDirectory = undefined;
    try {
        return await body();
    } finally {
        StorageManager.prototype.getDirectory = getDirectory;
    }
}

Object.assign(tests, {
    "the Cache API stores models where there are no private files": (t) => withoutFiles(async () => {
        const url = urlOf(t, "good"), progress = [];
        const frit = await t.api.Frit.load(url, { ...t.options, onProgress: (each) => progress.push(each) });
        const answer = await frit.completions.create({ prompt: t.text.prompt, temperature: 0, max_tokens: t.text.n });
        equal(answer.choices[0].text, t.text.expected);
        frit.close();
        equal(progress.filter(({ phase }) => phase === "download").at(-1).loaded, t.size);
        const { bytes } = await statsOf(t.origin, idOf(url));
        await t.api.download(url);
        equal((await statsOf(t.origin, idOf(url))).bytes, bytes);
        holds((await t.api.listStored()).some((each) => each.url === url && each.size === t.size), "it is not listed");
        await cleaned(t, url);
        equal((await t.api.listStored()).some((each) => each.url === url), false);
        await fails(t.api.download(urlOf(t, "missing")), "E_NOT_FOUND", "404");
        await fails(t.api.download(urlOf(t, "wrong"), { sha256: t.sha256 }), "E_FORMAT", "SHA-256");
        await fails(t.api.download(urlOf(t, "cut")), "E_IO", "cannot be downloaded");
    }),
});

export const run = (context) => runTests(tests, context);
