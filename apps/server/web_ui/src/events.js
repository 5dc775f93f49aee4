// SPDX-License-Identifier: MIT
// Yields the data of each server-sent event of a response body.
export async function* readEvents(body) {
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    try {
        for (;;) {
            const { value, done } = await reader.read();
            if (done) return;
            text += value;
            const blocks = text.split(/\r?\n\r?\n/);
            text = blocks.pop();
            for (const block of blocks) {
                const data = block.split(/\r?\n/).filter((line) => line.startsWith("data:"))
                    .map((line) => line.slice(5).replace(/^ /, ""));
                if (data.length > 0) yield data.join("\n");
            }
        }
    } finally {
        reader.cancel().catch(() => {});
    }
}
