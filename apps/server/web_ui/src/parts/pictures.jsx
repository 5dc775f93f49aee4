// SPDX-License-Identifier: MIT
// The pictures of a message, before and after it is sent. They cannot be dragged, as a drop would add them again.
import { useRef, useState } from "preact/hooks";

import { ACCEPTED } from "../pictures.js";
import { IconButton } from "./icon.jsx";

export function PictureButton({ add }) {
    const input = useRef();
    return (
        <>
            <IconButton icon="picture" label="Add pictures" class="attach" onClick={() => input.current.click()} />
            <input ref={input} class="hidden" type="file" multiple accept={ACCEPTED} tabIndex={-1} aria-label="Pictures to add"
                onChange={(event) => { add([...event.target.files]); event.target.value = ""; }} />
        </>
    );
}

export function Thumbnails({ pictures, remove }) {
    if (pictures.length === 0) return null;
    return (
        <ul class="thumbnails" aria-label="Pictures of the message">
            {pictures.map(({ name, url }, i) => (
                <li key={`${name} ${i}`} class="thumbnail">
                    <img src={url} alt={name} title={name} draggable={false} decoding="async" />
                    <IconButton icon="close" label={`Remove ${name}`} onClick={() => remove(i)} />
                </li>
            ))}
        </ul>
    );
}

function SentPicture({ name, url }) {
    const [isLarge, setLarge] = useState(false);
    return (
        <button type="button" class="sent-picture" aria-expanded={isLarge} title={isLarge ? "Show smaller" : "Show larger"}
            onClick={() => setLarge(!isLarge)}>
            <img src={url} alt={name} draggable={false} decoding="async" />
        </button>
    );
}

export function SentPictures({ pictures }) {
    return <div class="sent-pictures">{pictures.map((picture, i) => <SentPicture key={i} {...picture} />)}</div>;
}
