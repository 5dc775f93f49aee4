// SPDX-License-Identifier: MIT
// The choice of one of the server's models.
import { changeSettings, chosenModel, models, refreshModels } from "../store.js";

export function ModelPicker() {
    const chosen = chosenModel();
    return (
        <span class="model">
            <select aria-label="Model" value={chosen?.id} onFocus={() => refreshModels().catch(() => {})}
                onChange={(event) => changeSettings({ model: event.target.value })}>
                {models.value.map(({ id }) => <option key={id} value={id}>{id}</option>)}
            </select>
        </span>
    );
}
