// SPDX-License-Identifier: MIT
// The messages. Scrolls to the end while the last message grows, unless the reader has scrolled up.
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";

import { chosenModel, current, path, running } from "../store.js";
import { Message } from "./message.jsx";

const NEAR = 80;   // pixels from the end

// A line above the first message that still fits the context.
function Cut() {
    return <li class="cut">The context is full: the model does not see the messages above any more.</li>;
}

export function Thread() {
    const box = useRef(), list = useRef();
    const follows = useRef(true);
    const nodes = path.value;
    const first = nodes.findLast((node) => node.first_seen !== undefined)?.first_seen;   // of the last request
    useEffect(() => {
        follows.current = true;
        box.current.scrollTop = box.current.scrollHeight;
    }, [current.value.id, running.value?.node]);
    useLayoutEffect(() => {
        if (follows.current) box.current.scrollTop = box.current.scrollHeight;
    }, [nodes]);
    useEffect(() => {   // where a text is rendered, a panel opens, or a phone's keyboard
        const observer = new ResizeObserver(() => {
            if (follows.current) box.current.scrollTop = box.current.scrollHeight;
        });
        observer.observe(box.current);
        if (list.current) observer.observe(list.current);
        return () => observer.disconnect();
    }, [nodes.length > 0]);
    const onScroll = () => {
        const { scrollHeight, scrollTop, clientHeight } = box.current;
        follows.current = scrollHeight - scrollTop - clientHeight < NEAR;
    };
    return (
        <section class="thread" aria-label="Messages" ref={box} onScroll={onScroll} tabIndex={0}>
            <h1 class="hidden">{current.value.title || "New conversation"}</h1>
            {nodes.length === 0 && (
                <div class="empty">
                    <p class="empty-title">{chosenModel() ? `Ask ${chosenModel().id}` : "Ask something"}</p>
                    <p>Everything runs on this server. Conversations stay in this browser.</p>
                </div>
            )}
            {nodes.length > 0 && (
                <ol class="messages" ref={list}>
                    {nodes.map((node, i) => [
                        node.id === first && <Cut key="cut" />,
                        <Message key={node.id} node={node} isLast={i === nodes.length - 1} />,
                    ])}
                </ol>
            )}
        </section>
    );
}
