// SPDX-License-Identifier: MIT
// Calls of the C interface: memory of the module, structs by the module's own table, errors.

import { STATUSES, type Status } from "./options.js";

/** An instance of the module: functions of frit.h with an underscore in front, and methods of emscripten. */
export interface Module {
    wasmMemory: WebAssembly.Memory;
    addFunction(fn: (...args: never[]) => unknown, signature: string): number;
    removeFunction(index: number): void;
    _malloc(n: number): number;
    _free(address: number): void;
    // Functions of frit.h: addresses and numbers, and bigint for 64 bits.
    [name: `_frit_${string}`]: (...args: (number | bigint)[]) => number;
}

/** An error of the engine, with a sentence that names the object, what was found and what is expected. */
export class FritError extends Error {
    override readonly name = "FritError";
    /**
     * @param status the kind of failure, as "E_MEMORY"
     * @param code a constant for programs, as "invalid_value"; null if the failure has none
     * @param param the field of the request that the failure is about; null if it is about no field
     */
    constructor(message: string, readonly status: Status, readonly code: string | null = null, readonly param: string | null = null) {
        super(message);
    }
}

interface Field {
    offset: number;
    size: number;
    kind: string;
}

interface Struct {
    size: number;
    fields: Map<string, Field>;
}

export type Value = number | bigint | boolean | string | null;

const decoder = new TextDecoder();
const encoder = new TextEncoder();
const POINTER = 4;

export const LIMIT = -7;   // FRIT_E_LIMIT

/** Memory that is freed when a call is over. */
export class Scope {
    private readonly blocks: number[] = [];
    constructor(private readonly library: Library) {}

    /** Allocates zeros. */
    alloc(n: number): number {
        const at = this.library.module._malloc(Math.max(n, 1)) >>> 0;
        if (at === 0) throw new FritError(`${n} bytes do not fit in memory`, "E_MEMORY");
        this.library.u8.fill(0, at, at + n);
        this.blocks.push(at);
        return at;
    }

    bytes(bytes: Uint8Array): number {
        const at = this.alloc(bytes.length + 1);
        this.library.u8.set(bytes, at);
        return at;
    }

    /** A text in UTF-8 with a final zero; n is its length. */
    text(text: string): { at: number; n: number } {
        const bytes = encoder.encode(text);
        return { at: this.bytes(bytes), n: bytes.length };
    }

    ints(values: ArrayLike<number>): number {
        const at = this.alloc(4 * values.length);
        this.library.i32.set(values, at >>> 2);
        return at;
    }

    struct(name: string, values: Record<string, Value> = {}): number {
        const at = this.alloc(this.library.struct(name).size);
        for (const [field, value] of Object.entries(values)) this.library.set(name, at, field, value);
        return at;
    }

    free(): void {
        for (const at of this.blocks) this.library.module._free(at);
        this.blocks.length = 0;
    }
}

interface Views {
    buffer: ArrayBufferLike;
    u8: Uint8Array;
    i32: Int32Array;
    f32: Float32Array;
    data: DataView;
}

/** The functions of one instance of the module. */
export class Library {
    private readonly structs = new Map<string, Struct>();
    private known: Views | null = null;

    constructor(readonly module: Module) {
        const row = module._malloc(5 * POINTER);
        for (let i = 0; module._frit_web_get_field!(i, row); i++) {
            const [type, field, kind, offset, size] = this.u32s(row, 5) as [number, number, number, number, number];
            const name = this.text(field), struct = this.text(type);
            if (name === "") this.structs.set(struct, { size, fields: new Map() });
            else this.structs.get(struct)!.fields.set(name, { offset, size, kind: this.text(kind) });
        }
        module._free(row);
    }

    // The buffer is replaced when memory grows, on any thread.
    private get views(): Views {
        const { buffer } = this.module.wasmMemory;
        if (this.known?.buffer !== buffer || this.known.u8.byteLength !== buffer.byteLength)
            this.known = { buffer, u8: new Uint8Array(buffer), i32: new Int32Array(buffer), f32: new Float32Array(buffer),
                           data: new DataView(buffer) };
        return this.known;
    }

    get u8(): Uint8Array { return this.views.u8; }
    get i32(): Int32Array { return this.views.i32; }
    get f32(): Float32Array { return this.views.f32; }

    u32s(at: number, n: number): number[] {
        return Array.from(this.i32.subarray(at >>> 2, (at >>> 2) + n), (value) => value >>> 0);
    }

    pointer(at: number): number {
        return this.i32[at >>> 2]! >>> 0;
    }

    /** Reads a text; without n it ends before a zero. */
    text(at: number, n?: number): string {
        at >>>= 0;
        if (at === 0) return "";
        const end = n === undefined ? this.u8.indexOf(0, at) : at + n;
        return decoder.decode(this.u8.slice(at, end));   // decoders do not take shared memory
    }

    struct(name: string): Struct {
        const found = this.structs.get(name);
        if (!found) throw new FritError(`the module has no struct ${name}`, "E_INTERNAL");
        return found;
    }

    private field(name: string, field: string): Field {
        const found = this.struct(name).fields.get(field);
        if (!found) throw new FritError(`the struct ${name} has no field ${field}`, "E_INTERNAL");
        return found;
    }

    set(name: string, at: number, field: string, value: Value): void {
        const { offset, size, kind } = this.field(name, field);
        const { data } = this.views, where = at + offset;
        if (kind === "float") data.setFloat32(where, Number(value), true);
        else if (kind === "double") data.setFloat64(where, Number(value), true);
        else if (size === 8) data.setBigUint64(where, BigInt.asUintN(64, BigInt(value ?? 0)), true);
        else if (size === 1) data.setUint8(where, Number(value));
        else data.setInt32(where, Number(value), true);
    }

    get(name: string, at: number, field: string): Value {
        const { offset, size, kind } = this.field(name, field);
        const { data } = this.views, where = at + offset;
        if (kind === "const char*") return data.getUint32(where, true) === 0 ? null : this.text(data.getUint32(where, true));
        if (kind === "float") return data.getFloat32(where, true);
        if (kind === "double") return data.getFloat64(where, true);
        if (kind === "bool") return data.getUint8(where) !== 0;
        if (size === 8) return Number(kind.startsWith("int") ? data.getBigInt64(where, true) : data.getBigUint64(where, true));
        return kind === "size_t" || kind.endsWith("*") ? data.getUint32(where, true) : data.getInt32(where, true);
    }

    /** All fields of a struct that are numbers, texts or true and false. */
    read(name: string, at: number): Record<string, Value> {
        const values: Record<string, Value> = {};
        for (const [field, { kind, size }] of this.struct(name).fields)
            if (!kind.includes("[") && size <= 8 && kind !== "callback") values[field] = this.get(name, at, field);
        return values;
    }

    scoped<T>(body: (scope: Scope) => T): T {
        const scope = new Scope(this);
        try {
            return body(scope);
        } finally {
            scope.free();
        }
    }

    /** Throws if a call failed. */
    check(status: number): void {
        if (status !== 0) throw this.failure(status);
    }

    failure(status: number): FritError {
        const name = STATUSES[status] ?? "E_INTERNAL";
        const sentence = this.text(this.module._frit_error!()) || this.text(this.module._frit_status_text!(status));
        const code = this.text(this.module._frit_error_code!()), field = this.text(this.module._frit_error_field!());
        return new FritError(sentence, name, code || null, field || null);
    }

    /** Calls make(address of the result) and returns the result, a handle. */
    made(make: (out: number) => number): number {
        return this.scoped((scope) => {
            const out = scope.alloc(POINTER);
            this.check(make(out));
            return this.pointer(out);
        });
    }

    /** Calls write(buffer, capacity, address of the number of items) until the buffer is large enough. */
    sized(write: (buffer: number, capacity: number, n: number) => number, itemBytes = 1, guess = 256): Uint8Array {
        return this.scoped((scope) => {
            const n = scope.alloc(POINTER);
            for (let capacity = guess; ; capacity = this.pointer(n)) {
                const buffer = scope.alloc(capacity * itemBytes);
                const status = write(buffer, capacity, n);
                if (status === LIMIT && this.pointer(n) > capacity) continue;
                this.check(status);
                return this.u8.slice(buffer, buffer + this.pointer(n) * itemBytes);
            }
        });
    }
}
