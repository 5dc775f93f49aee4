// SPDX-License-Identifier: MIT
// A text as Markdown, block by block: while it grows, finished blocks stay as they are.
import { useLayoutEffect, useMemo, useRef } from "preact/hooks";

import { blocksOf, renderMarkdown } from "../markdown.js";

function Block({ source }) {
    const box = useRef();
    useLayoutEffect(() => box.current.replaceChildren(renderMarkdown(source)), [source]);
    return <div class="block" ref={box} />;
}

export function Markdown({ text }) {
    const blocks = useMemo(() => blocksOf(text), [text]);
    return <div class="prose">{blocks.map((source, i) => <Block key={i} source={source} />)}</div>;
}
