// SPDX-License-Identifier: MIT
// Shows a text as Markdown, block by block: while the text grows, finished blocks do not change.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

import { render } from "../render.js";
import { sanitize } from "../sanitize.js";

function Block({ source, html }) {
    const box = useRef();
    useLayoutEffect(() => {
        if (html === null) box.current.textContent = source.trimEnd();
        else box.current.replaceChildren(sanitize(html));
    }, [source, html]);
    return <div class={html === null ? "block as-written" : "block"} ref={box} />;
}

export function Markdown({ text }) {
    const [made, setMade] = useState(null);   // of the text that `made.text` is
    const wanted = useRef(text), isBusy = useRef(false), isGone = useRef(false);
    wanted.current = text;
    const work = async (before) => {
        isBusy.current = true;
        const asked = wanted.current;
        const result = await render(asked, before);
        isBusy.current = false;
        if (isGone.current) return;
        setMade({ ...result, text: asked });
        if (wanted.current !== asked) work(result);
    };
    useEffect(() => {
        if (!isBusy.current && made?.text !== text) work(made);
    }, [text]);
    useEffect(() => () => { isGone.current = true; }, []);
    return (
        <div class="prose" aria-busy={made?.text !== text}>
            {made ? made.blocks.map(({ source, html }, i) => <Block key={i} source={source} html={html} />)
                  : <div class="as-written late">{text}</div>}
        </div>
    );
}
