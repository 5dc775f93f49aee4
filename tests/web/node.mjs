// SPDX-License-Identifier: MIT
// Runs one job of run.mjs in Node: writes the result of a text as JSON, or runs a test program and ends with its code.
import { readFileSync } from "node:fs";

import { answer } from "./engine.mjs";

const job = JSON.parse(process.argv[2]);
if (job.program) {
    const { default: create } = await import(job.url);
    await create({ arguments: job.args ?? [], threads: 8 });
} else {
    const result = await answer({ ...job, model: readFileSync(job.model) });
    console.log(JSON.stringify(result));
    process.exit(0);
}
