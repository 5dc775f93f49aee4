// SPDX-License-Identifier: MIT
// The text files of a message, before and after it is sent.
import { sizeOf } from "../files.js";
import { Icon, IconButton } from "./icon.jsx";

export function FileChips({ files, remove }) {
    if (files.length === 0) return null;
    return (
        <ul class="chips" aria-label="Files of the message">
            {files.map(({ name, text }, i) => (
                <li key={`${name} ${i}`} class="chip">
                    <Icon name="file" />
                    <span class="chip-name" title={name}>{name}</span>
                    <small>{sizeOf(text)}</small>
                    <IconButton icon="close" label={`Remove ${name}`} onClick={() => remove(i)} />
                </li>
            ))}
        </ul>
    );
}

export function SentFiles({ files }) {
    return files.map(({ name, text }, i) => (
        <details key={i} class="sent-file">
            <summary><Icon name="file" /><span class="chip-name">{name}</span> <small>{sizeOf(text)}</small></summary>
            <pre tabIndex={0} role="region" aria-label={`Text of ${name}`}>{text}</pre>
        </details>
    ));
}
