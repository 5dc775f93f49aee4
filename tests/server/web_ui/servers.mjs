// SPDX-License-Identifier: MIT
// The servers of the tests. Each is started when a test first needs it.
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

export const KEY = "secret-key";
export const GOLDENS = fileURLToPath(new URL("../../../../shared/goldens/media", import.meta.url));
const ANSWERS = ["--port", "0", "--threads", "2", "--parallel", "2", "--ctx", "1024"];

export class Servers {
    constructor(frit) {
        this.frit = frit;
        this.folder = mkdtempSync(join(tmpdir(), "frit-web-ui-"));
        this.running = new Map();
    }

    // fable: the bundled model, with a context that tests can fill. careful: it reads 16 tokens of a prompt at once.
    // scripted: the model of tests/support/tool_model.h. keyed: the bundled model, with a key. seeing: a model that reads
    // pictures, in f32 as transformers computed its goldens.
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
        case "seeing":
            return [join(GOLDENS, "qwen2_5_vl"), "--alias", "seeing", "--port", "0", "--threads", "2", "--ctx", "512", "--temp", "0",
                    "-ctk", "f32", "-ctv", "f32", "--chat-template", this.template()];
        default:
            throw new Error(`there is no server '${name}'`);
        }
    }

    // False: the model is not on this machine, and need not be.
    has(name) {
        return name !== "seeing" || existsSync(GOLDENS) || !["", "0", undefined].includes(process.env.FRIT_REQUIRE_DATA);
    }

    scripted() {
        const maker = join(dirname(this.frit), "tests", "test_server_tools"), path = join(this.folder, "scripted.gguf");
        if (!existsSync(maker)) throw new Error(`${maker} is not built`);
        execFileSync(maker, ["--model", path]);
        return path;
    }

    // The chat template of tests/server/pictures_test.c.
    template() {
        const path = join(this.folder, "pictures.jinja");
        writeFileSync(path, "{%- for message in messages -%}<|im_start|>{{ message.role }}\n"
                      + "{% if message.content is string %}{{ message.content }}{% else %}{% for part in message.content %}"
                      + "{% if part.type == 'image' %}<|vision_start|><|image_pad|><|vision_end|>"
                      + "{% else %}{{ part.text }}{% endif %}{% endfor %}{% endif %}<|im_end|>\n"
                      + "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}");
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
