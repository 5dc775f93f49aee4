// SPDX-License-Identifier: MIT
// Runs jobs in a browser: serves the modules, models and tests/web/page.html on this machine, starts the browser without
// a window, and waits until the page has posted all results.
import { spawn, spawnSync } from "node:child_process";
import { createReadStream, existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { extname, join, normalize } from "node:path";

const TYPES = { ".html": "text/html", ".js": "text/javascript", ".mjs": "text/javascript", ".wasm": "application/wasm" };
const ISOLATED = { "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Embedder-Policy": "require-corp" };

// name -> how the browser is started without a window
export const BROWSERS = {
    chromium: {
        commands: ["chromium", "chromium-browser", "google-chrome"],
        arguments: (profile, url) => ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
                                      `--user-data-dir=${profile}`, url],
    },
    firefox: {
        commands: ["firefox-esr", "firefox"],
        arguments: (profile, url) => ["--headless", "--no-remote", "--profile", profile, url],
    },
};

export function find(name) {
    return BROWSERS[name].commands.find((command) => spawnSync("which", [command]).status === 0);
}

// folders: prefix of a path -> folder
function serve(folders, isolated, jobs, results, done) {
    const server = createServer((request, response) => {
        const path = normalize(new URL(request.url, "http://x").pathname);
        const headers = isolated ? { ...ISOLATED } : {};
        if (request.method === "POST") {
            let body = "";
            request.on("data", (part) => (body += part));
            request.on("end", () => {
                if (path === "/done") done();
                else results[Number(path.split("/").at(-1))] = JSON.parse(body);
                response.writeHead(204, headers).end();
            });
            return;
        }
        if (path === "/jobs") {
            response.writeHead(200, { ...headers, "Content-Type": "application/json" }).end(JSON.stringify(jobs));
            return;
        }
        const prefix = Object.keys(folders).find((each) => path.startsWith(each));
        const file = prefix && join(folders[prefix], path.slice(prefix.length));
        if (!file || !existsSync(file)) {
            response.writeHead(404, headers).end();
            return;
        }
        headers["Content-Type"] = TYPES[extname(file)] ?? "application/octet-stream";
        headers["Content-Length"] = statSync(file).size;
        response.writeHead(200, headers);
        createReadStream(file).pipe(response);
    });
    return new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(server)));
}

// Returns the results of all jobs; a job without one has the error of the browser.
export async function run(name, folders, jobs, { isolated = true, seconds = 300 } = {}) {
    const results = jobs.map(() => ({ error: `${name} gave no result in ${seconds} s` }));
    let finish;
    const finished = new Promise((resolve) => (finish = resolve));
    const server = await serve(folders, isolated, jobs, results, finish);
    const profile = mkdtempSync(join(tmpdir(), "frit-browser-"));
    writeFileSync(join(profile, "user.js"), 'user_pref("browser.shell.checkDefaultBrowser", false);\n' +
                                            'user_pref("datareporting.policy.dataSubmissionEnabled", false);\n');
    const url = `http://127.0.0.1:${server.address().port}/tests/page.html`;
    const browser = spawn(find(name), BROWSERS[name].arguments(profile, url), { stdio: "ignore", detached: true });
    const timer = setTimeout(finish, seconds * 1000);
    browser.on("exit", finish);
    await finished;
    clearTimeout(timer);
    try {
        process.kill(-browser.pid, "SIGKILL");
    } catch {
        // it has ended
    }
    server.closeAllConnections();
    server.close();
    rmSync(profile, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
    return results;
}
