// SPDX-License-Identifier: MIT
// The settings of a conversation: system prompt and sampling, the form of answers, tools.
import { useState } from "preact/hooks";

import { toolList } from "../generate.js";
import { FIRST, helpOf, labelOf } from "../sampling.js";
import { changeSettings, current, samplingRows } from "../store.js";
import { IconButton } from "./icon.jsx";

const TABS = [["general", "General"], ["schema", "Schema"], ["tools", "Tools"]];

const EXAMPLES = {
    schema: { type: "object", properties: { name: { type: "string" }, age: { type: "integer" } }, required: ["name", "age"] },
    tools: [{ name: "get_weather", description: "The weather of a city",
              parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] } }],
};

const EFFORTS = [["", "as the model does"], ["none", "none"], ["low", "little"], ["medium", "medium"], ["high", "much"]];
const CHOICES = [["auto", "where the model wants to"], ["required", "always"], ["none", "never"]];

// ------------------------------------------------------------------------------------ fields

function Select({ name, label, choices }) {
    return (
        <div class="field">
            <label for={name}>{label}</label>
            <select id={name} value={current.value.settings[name]}
                onChange={(event) => changeSettings({ [name]: event.target.value })}>
                {choices.map(([value, text]) => <option key={value} value={value}>{text}</option>)}
            </select>
        </div>
    );
}

function Check({ name, label, help }) {
    return (
        <label class="check">
            <input type="checkbox" checked={current.value.settings[name]}
                onChange={(event) => changeSettings({ [name]: event.target.checked })} />
            <span>{label}{help && <small>{help}</small>}</span>
        </label>
    );
}

function NumberField({ id, label, help, value, change, ...limits }) {
    const [problem, setProblem] = useState("");
    const onInput = (event) => {
        const { validity, value: text, validationMessage } = event.target;
        setProblem(validity.valid ? "" : validationMessage);
        if (validity.valid) change(text);
    };
    return (
        <div class="field number">
            <label for={id}>{label}</label>
            <input id={id} type="number" value={value} aria-describedby={`${id}-help`} aria-invalid={problem !== ""}
                onInput={onInput} {...limits} />
            <small id={`${id}-help`} class={problem ? "wrong" : ""}>{problem || help}</small>
        </div>
    );
}

function SamplingField({ row }) {
    const { sampling } = current.value.settings;
    const change = (text) => {
        const next = { ...sampling };
        if (text === "") delete next[row.name];
        else next[row.name] = Number(text);
        changeSettings({ sampling: next });
    };
    return (
        <NumberField id={`sampling-${row.name}`} label={labelOf(row)} help={helpOf(row)} value={sampling[row.name] ?? ""} change={change}
            placeholder={String(row.default)} min={row.min} max={row.max} step={row.type === "integer" ? 1 : "any"} />
    );
}

function Sampling() {
    const { sampling } = current.value.settings, n = Object.keys(sampling).length;
    const rows = FIRST.map((name) => samplingRows.value.find((row) => row.name === name)).filter(Boolean);
    return (
        <fieldset>
            <legend>How words are chosen</legend>
            <div class="numbers">{rows.map((row) => <SamplingField key={row.name} row={row} />)}</div>
            {n > 0 && <button type="button" class="reset" onClick={() => changeSettings({ sampling: {} })}>
                {n === 1 ? "Reset 1 option" : `Reset ${n} options`}</button>}
        </fieldset>
    );
}

function MoreSampling() {
    const [wanted, setWanted] = useState("");
    const rows = samplingRows.value.filter((row) => !FIRST.includes(row.name));
    const n = rows.filter((row) => row.name in current.value.settings.sampling).length;
    const shown = rows.filter((row) => `${row.name} ${labelOf(row)} ${helpOf(row)}`.toLowerCase().includes(wanted.toLowerCase()));
    return (
        <details class="more">
            <summary>More options of sampling{n > 0 && ` (${n} changed)`}</summary>
            <input type="search" aria-label="Find an option" placeholder="Find an option" value={wanted}
                onInput={(event) => setWanted(event.target.value)} />
            <div class="numbers">{shown.map((row) => <SamplingField key={row.name} row={row} />)}</div>
            {shown.length === 0 && <p class="quiet">Nothing found.</p>}
        </details>
    );
}

function General() {
    const { settings } = current.value;
    return (
        <>
            <div class="field">
                <label for="system">System prompt</label>
                <textarea id="system" rows={4} value={settings.system} placeholder="How the model should answer"
                    onInput={(event) => changeSettings({ system: event.target.value })} />
            </div>
            <Sampling />
            <div class="numbers">
                <NumberField id="max-tokens" label="Longest answer" help="In tokens; empty: as the context holds." min={1} step={1}
                    value={settings.max_tokens} change={(text) => changeSettings({ max_tokens: text })} />
                <NumberField id="seed" label="Seed" help="The same number gives the same answer; empty: another one each time." min={0} step={1}
                    value={settings.seed} change={(text) => changeSettings({ seed: text })} />
            </div>
            <Select name="effort" label="Reasoning" choices={EFFORTS} />
            <Check name="logprobs" label="Probabilities of tokens" help="Answers from now on can show them." />
            <MoreSampling />
        </>
    );
}

// A box for JSON, with the error in it.
function JsonField({ name, label, check, example }) {
    const text = current.value.settings[name];
    let problem = "";
    try {
        if (text.trim()) check(JSON.parse(text));
    } catch (error) {
        problem = error.message;
    }
    return (
        <div class="field">
            <label for={name}>{label}</label>
            <textarea id={name} class="code" rows={14} spellcheck={false} value={text} aria-invalid={problem !== ""}
                aria-describedby={`${name}-help`} onInput={(event) => changeSettings({ [name]: event.target.value })} />
            <small id={`${name}-help`} class={problem ? "wrong" : ""} role="status">{problem}</small>
            {!text && <button type="button" onClick={() => changeSettings({ [name]: JSON.stringify(example, null, 2) })}>
                Insert an example</button>}
        </div>
    );
}

function checkSchema(json) {
    if (typeof json !== "boolean" && (typeof json !== "object" || json === null || Array.isArray(json)))
        throw new Error("a schema is an object");
}

function checkTools(json) {
    for (const tool of toolList(json))
        if (typeof tool.function?.name !== "string") throw new Error("each tool needs a name");
}

function Schema() {
    return (
        <>
            <Check name="use_schema" label="Answer in JSON" help="Every answer obeys the schema." />
            <JsonField name="schema" label="JSON Schema" check={checkSchema} example={EXAMPLES.schema} />
        </>
    );
}

function Tools() {
    return (
        <>
            <Check name="use_tools" label="Offer tools" help="The model may call them; you write what they return." />
            <Select name="tool_choice" label="Calls" choices={CHOICES} />
            <JsonField name="tools" label="Definitions" check={checkTools} example={EXAMPLES.tools} />
        </>
    );
}

// ------------------------------------------------------------------------------------ tabs

const PAGES = { general: General, schema: Schema, tools: Tools };

function TabList({ chosen, choose }) {
    const onKeyDown = (event) => {
        const step = { ArrowRight: 1, ArrowLeft: TABS.length - 1 }[event.key];
        if (!step) return;
        const at = TABS.findIndex(([name]) => name === chosen);
        const [next] = TABS[(at + step) % TABS.length];
        choose(next);
        document.querySelector(`#tab-${next}`).focus();
    };
    return (
        <div class="tabs" role="tablist" aria-label="Settings" onKeyDown={onKeyDown}>
            {TABS.map(([name, label]) => (
                <button key={name} type="button" role="tab" id={`tab-${name}`} aria-selected={name === chosen}
                    aria-controls="tab-page" tabIndex={name === chosen ? 0 : -1} onClick={() => choose(name)}>
                    {label}{current.value.settings[`use_${name}`] && <span class="dot" role="img" aria-label="on" />}
                </button>
            ))}
        </div>
    );
}

export function Panel({ close }) {
    const [chosen, choose] = useState("general");
    const Page = PAGES[chosen];
    return (
        <aside id="panel" class="panel" aria-label="Settings of this conversation" tabIndex={-1}>
            <div class="panel-top">
                <h2>Settings</h2>
                <IconButton icon="close" label="Close the settings" onClick={close} />
            </div>
            <TabList chosen={chosen} choose={choose} />
            <div id="tab-page" class="tab-page" role="tabpanel" aria-labelledby={`tab-${chosen}`}><Page /></div>
        </aside>
    );
}
