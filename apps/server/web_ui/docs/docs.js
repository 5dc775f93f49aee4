// SPDX-License-Identifier: MIT
// Shows /openapi.json: each path, its fields with types and ranges, and its replies.

// Makes an element with attributes and children. Strings become text nodes, never HTML.
function element(name, attributes, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
}

function typeText(schema) {
    const types = [schema.type ?? "any"].flat().filter((type) => type !== "null");
    const item = schema.items?.type;
    return types.map((type) => (type === "array" && item ? `array of ${item}` : type)).join(" or ");
}

function rangeText(schema) {
    if (schema.minimum === undefined) return "";
    return schema.maximum === undefined ? `from ${schema.minimum}` : `${schema.minimum} … ${schema.maximum}`;
}

function fieldRow([name, schema]) {
    const fallback = schema.default === undefined ? "" : JSON.stringify(schema.default);
    const cells = [rangeText(schema), fallback].map((text) => element("td", {}, text));
    return element("tr", {}, element("th", { scope: "row" }, element("code", {}, name)),
                   element("td", {}, typeText(schema)), ...cells);
}

function fieldsTable(properties) {
    const heads = ["Field", "Type", "Range", "Default"].map((text) => element("th", { scope: "col" }, text));
    const rows = Object.entries(properties).map(fieldRow);
    const table = element("table", {}, element("thead", {}, element("tr", {}, ...heads)),
                          element("tbody", {}, ...rows));
    return element("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Fields" }, table);
}

function operation(path, method, described) {
    const properties = described.requestBody?.content["application/json"].schema.properties ?? {};
    const answers = Object.keys(described.responses["200"].content).join(", ");
    const body = element("div", { class: "body" });
    if (Object.keys(properties).length > 0) body.append(fieldsTable(properties));
    const key = described.security?.length === 0 ? "No key is needed." : "";
    body.append(element("p", {}, `Answers with ${answers}. ${key}`));
    const summary = element("summary", {}, element("span", { class: `method ${method}` }, method.toUpperCase()),
                            " ", element("code", {}, path), " ", element("span", {}, described.summary));
    const made = element("details", { id: described.operationId }, summary, body);
    made.searched = `${path} ${described.summary} ${Object.keys(properties).join(" ")}`.toLowerCase();
    return made;
}

function show(description) {
    document.querySelector("#version").textContent = `Version ${description.info.version}.`;
    const operations = [];
    for (const [path, methods] of Object.entries(description.paths))
        for (const [method, described] of Object.entries(methods)) operations.push(operation(path, method, described));
    document.querySelector("#paths").replaceChildren(...operations);
    document.querySelector("#filter").addEventListener("input", (event) => {
        const wanted = event.target.value.trim().toLowerCase();
        for (const made of operations) made.hidden = !made.searched.includes(wanted);
    });
    const linked = location.hash && document.getElementById(location.hash.slice(1));
    if (linked?.tagName === "DETAILS") linked.open = true;
}

async function load() {
    const answer = await fetch("openapi.json");
    if (!answer.ok) throw new Error(`openapi.json: status ${answer.status}`);
    show(await answer.json());
}

load().catch((error) => document.querySelector("#paths").replaceChildren(element("p", { role: "alert" }, error.message)));
