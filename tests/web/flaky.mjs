// SPDX-License-Identifier: MIT
// A server of one file for tests of downloads: /KIND/ID/file.gguf. It counts what it sends for each ID (/stats/ID).
import { readFileSync, existsSync } from "node:fs";
import { createServer } from "node:http";

const HUGE = 2 ** 50;
const open = { "Access-Control-Allow-Origin": "*", "Access-Control-Expose-Headers": "Content-Range, ETag, Content-Length",
               "Access-Control-Allow-Headers": "Range", "Cross-Origin-Resource-Policy": "cross-origin" };

// What is unusual about the answers of a kind. n: the number of the request for this ID.
const KINDS = {
    good: () => ({}),
    slow: () => ({ pause: 5 }),
    cut: (n) => ({ cutAfter: n % 3 === 0 ? undefined : 700_000 }),
    wrong: () => ({ flips: true }),
    whole: () => ({ noRanges: true }),
    shifted: (n) => ({ shift: n > 1 ? 5 : 0 }),
    changing: (n) => ({ etag: n > 3 ? '"new"' : undefined }),
    missing: () => ({ status: 404 }),
    busy: (n) => ({ status: n % 4 === 1 ? 503 : undefined }),
    huge: () => ({ size: HUGE }),
};

export async function startFlaky(file, folderOfParts) {
    const whole = readFileSync(file), stats = new Map();
    const server = createServer(async (request, response) => {
        const [, kind, id, name] = request.url.split("/");
        if (request.method === "OPTIONS") return void response.writeHead(204, open).end();
        if (kind === "stats") return void response.writeHead(200, { ...open, "Content-Type": "application/json" }).end(JSON.stringify(stats.get(id) ?? { requests: 0, bytes: 0 }));
        const part = `${folderOfParts}/${name}`;
        const bytes = kind === "parts" && existsSync(part) ? readFileSync(part) : whole;
        const count = stats.get(id) ?? stats.set(id, { requests: 0, bytes: 0, now: 0, most: 0, written: 0 }).get(id);
        count.requests++;
        const unusual = KINDS[kind]?.(count.requests) ?? {};
        if (unusual.status) return void response.writeHead(unusual.status, open).end();
        const size = unusual.size ?? bytes.length, range = /bytes=(\d+)-(\d+)/.exec(request.headers.range ?? "");
        const headers = { ...open, ETag: unusual.etag ?? '"one"', "Content-Type": "application/octet-stream" };
        let from = 0, to = size;
        if (range && !unusual.noRanges) {
            [from, to] = [Number(range[1]), Math.min(Number(range[2]) + 1, size)];
            const shift = unusual.shift ?? 0;
            response.writeHead(206, { ...headers, "Content-Range": `bytes ${from + shift}-${to - 1 + shift}/${size}`, "Content-Length": to - from });
        } else {
            response.writeHead(200, { ...headers, "Content-Length": size });
        }
        let body = bytes.subarray(from, Math.min(to, bytes.length));
        if (unusual.flips) {
            body = Buffer.from(body);
            if (from <= 5_000_000 && to > 5_000_000) body[5_000_000 - from] ^= 1;
        }
        count.most = Math.max(count.most, ++count.now);
        let closed = false, wake = () => {};
        response.on("close", () => { closed = true; count.now--; wake(); });
        response.on("drain", () => wake());
        for (let at = 0; at < body.length && !closed; at += 65536) {
            const piece = body.subarray(at, at + 65536);
            if (unusual.cutAfter !== undefined && at > unusual.cutAfter) return void response.destroy();
            if (!response.write(piece)) await new Promise((resolve) => (wake = resolve));
            count.bytes += piece.length;
            count.written = Math.max(count.written, from + at);
            if (unusual.pause) await new Promise((resolve) => setTimeout(resolve, unusual.pause));
        }
        response.end();
    });
    await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
    return { origin: `http://127.0.0.1:${server.address().port}`, close: () => { server.closeAllConnections(); server.close(); } };
}
