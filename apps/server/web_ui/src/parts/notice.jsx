// SPDX-License-Identifier: MIT
// A notice at the bottom that disappears after a time: a failure, or an undo.
import { useEffect } from "preact/hooks";

import { notice } from "../store.js";
import { IconButton } from "./icon.jsx";

const SHOWN_MS = 12000;

export function Notice() {
    const shown = notice.value;
    useEffect(() => {
        if (!shown) return undefined;
        const timer = setTimeout(() => { notice.value = null; }, SHOWN_MS);
        return () => clearTimeout(timer);
    }, [shown]);
    const act = () => {
        notice.value = null;
        shown.action.run();
    };
    return (
        <div class="notice-place" role="status">
            {shown && (
                <div class="notice">
                    <span>{shown.text}</span>
                    {shown.action && <button type="button" class="link" onClick={act}>{shown.action.label}</button>}
                    <IconButton icon="close" label="Close this notice" onClick={() => { notice.value = null; }} />
                </div>
            )}
        </div>
    );
}
