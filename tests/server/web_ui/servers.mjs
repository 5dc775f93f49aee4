// SPDX-License-Identifier: MIT
// The servers of the tests. Each is started when a test first needs it.
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";

export const KEY = "secret-key";
const ANSWERS = ["--port", "0", "--threads", "2", "--parallel", "2", "--ctx", "1024"];

export class Servers {
    constructor(frit) {
        this.frit = frit;
        this.folder = mkdtempSync(join(tmpdir(), "frit-web-ui-"));
        this.running = new Map();
    }

    // fable: the bundled model, with a context that tests can fill. careful: it reads 16 tokens of a prompt at once.
    // scripted: the model of tests/support/tool_model.h. keyed: the bundled model, with a key.
    arguments(name) {
        switch (name) {
        case "fable":
            return ANSWERS;
        case "careful":
            return [...ANSWERS, "--batch", "16"];
        case "keyed":
            return [...ANSWERS, "--api-key", KEY];
        case "scripted":
            return [this.scripted(), ...ANSWERS, "--temp", "0"];
        default:
            throw new Error(`there is no server '${name}'`);
        }
    }

    scripted() {
        const maker = join(dirname(this.frit), "tests", "test_server_tools"), path = join(this.folder, "scripted.gguf");
        if (!existsSync(maker)) throw new Error(`${maker} is not built`);
        execFileSync(maker, ["--model", path]);
        return path;
    }

    async url(name) {
        if (!this.running.has(name)) this.running.set(name, await this.start(name));
        return this.running.get(name).url;
    }

    async start(name) {
        const child = spawn(this.frit, ["serve", ...this.arguments(name)], { stdio: ["ignore", "ignore", "pipe"] });
        for await (const line of createInterface({ input: child.stderr })) {
            const found = /http:\/\/\S+/.exec(line);
            if (found) {
                child.stderr.resume();
                return { child, url: found[0] };
            }
        }
        throw new Error(`frit serve did not start for '${name}'`);
    }

    async stop(keepFolder) {
        for (const { child } of this.running.values()) {
            const ended = new Promise((resolve) => child.once("exit", resolve));
            child.kill("SIGTERM");
            const code = await ended;
            if (code !== 0) console.log(`frit serve ended with ${code}`);
        }
        if (keepFolder) console.log(`pictures of failed tests are in ${this.folder}`);
        else rmSync(this.folder, { recursive: true });
    }
}
