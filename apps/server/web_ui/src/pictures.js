// SPDX-License-Identifier: MIT
// Pictures of a message, as data URIs. Their bytes are those of the file, as the server applies the orientation that a
// camera wrote into it; only a file that is too large for the server is made smaller here.
import { sizeOfBytes } from "./files.js";

const MAX_BYTES = 20 * 1024 * 1024, MAX_COUNT = 32;   // of the server: docs/requests.md
const MAX_PIXELS = 16 * 1024 * 1024;                  // of a picture that is made smaller
const QUALITY = 0.92;

// The types that the server reads, and how their files begin.
const TYPES = [
    ["image/png", /^\x89PNG\r\n\x1a\n/],
    ["image/jpeg", /^\xff\xd8\xff/],
    ["image/webp", /^RIFF[^]{4}WEBP/],
    ["image/gif", /^GIF8[79]a/],
];
const N_BEGIN = 12;
const NAMES = "PNG, JPEG, WebP or GIF";
const TEXT_TYPES = /^image\/(svg\+xml|x-xbitmap|x-xpixmap|x-portable-.*)$/;

export const ACCEPTED = TYPES.map(([type]) => type).join(",");

// The type of a picture by its first bytes; null: none that the server reads.
async function typeOf(file) {
    const bytes = await file.slice(0, N_BEGIN).arrayBuffer().catch(() => new ArrayBuffer(0));
    const begin = String.fromCharCode(...new Uint8Array(bytes));
    return TYPES.find(([, pattern]) => pattern.test(begin))?.[0] ?? null;
}

// Files that are pictures, also of types that the server does not read, and all others.
export async function splitPictures(list) {
    const pictures = [], others = [];
    for (const file of list) {
        const isPicture = await typeOf(file) !== null || (file.type.startsWith("image/") && !TEXT_TYPES.test(file.type));
        (isPicture ? pictures : others).push(file);
    }
    return { pictures, others };
}

// A JPEG of the picture that the server takes, with white for transparent pixels as there; null: the browser cannot read it.
async function shrink(file) {
    const image = await createImageBitmap(file).catch(() => null);
    if (!image) return null;
    const all = image.width * image.height;
    for (let most = Math.min(all, MAX_PIXELS); ; most /= 2) {
        const [width, height] = [image.width, image.height].map((n) => Math.max(1, Math.round(n * Math.sqrt(most / all))));
        const canvas = new OffscreenCanvas(width, height), context = canvas.getContext("2d");
        context.fillStyle = "white";
        context.fillRect(0, 0, width, height);
        context.drawImage(image, 0, 0, width, height);
        const made = await canvas.convertToBlob({ type: "image/jpeg", quality: QUALITY });
        if (made.size <= MAX_BYTES) return made;
    }
}

function readUrl(blob) {
    return new Promise((resolve, reject) => {
        const reader = new FileReader();
        reader.onload = () => resolve(reader.result);
        reader.onerror = () => reject(reader.error);
        reader.readAsDataURL(blob);
    });
}

// The pictures that a message accepts, and a sentence for each file that is refused or made smaller. `n_there`: pictures
// that the conversation has.
export async function readPictures(list, n_there) {
    const pictures = [], problems = [];
    for (const file of list) {
        const { name } = file, type = await typeOf(file);
        if (n_there + pictures.length >= MAX_COUNT) {
            problems.push(`${name}: a conversation takes ${MAX_COUNT} pictures.`);
            continue;
        }
        if (type === null) {
            problems.push(`${name} is no ${NAMES}.`);
            continue;
        }
        const isLarge = file.size > MAX_BYTES, has = `${name} has ${sizeOfBytes(file.size)}`;
        const blob = isLarge ? await shrink(file).catch(() => null) : new Blob([file], { type });
        const url = blob && await readUrl(blob).catch(() => null);
        if (url) pictures.push({ name, url });
        if (isLarge)
            problems.push(url ? `${has}: it was made smaller.`
                              : `${has}; a picture may have ${sizeOfBytes(MAX_BYTES)}, and the browser cannot make this one smaller.`);
        else if (!url) problems.push(`${name} cannot be read.`);
    }
    return { pictures, problems };
}

// True for a data URI that readPictures makes. An imported file may have any text.
export function isPictureUrl(url) {
    const found = /^data:([a-z/]+);base64,/.exec(url.slice(0, 40));
    return found !== null && TYPES.some(([type]) => type === found[1]) && !/[^A-Za-z0-9+/=]/.test(url.slice(found[0].length));
}

export function bytesOfPictures({ nodes }) {
    return Object.values(nodes).reduce((sum, { pictures = [] }) => pictures.reduce((n, { url }) => n + url.length, sum), 0);
}

const parts = new WeakMap();

// The part of a message, the same object each time.
export function partOf(picture) {
    if (!parts.has(picture)) parts.set(picture, { type: "image_url", image_url: { url: picture.url } });
    return parts.get(picture);
}
