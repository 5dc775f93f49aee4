// SPDX-License-Identifier: MIT
// Calls of a worker: results, errors, events before the result, and the end of a call that is not wanted any more.

import { FritError } from "./library.js";
import type { Status } from "./options.js";
import { startWorker, type Peer } from "./platform.js";
import type { FromWorker, ToWorker } from "./worker.js";

interface Pending {
    resolve(value: unknown): void;
    reject(error: unknown): void;
    event(event: unknown): void;
}

export interface CallOptions {
    signal?: AbortSignal | undefined;
    onEvent?: (event: never) => void;
}

export class Remote {
    private readonly pending = new Map<number, Pending>();
    private nCalls = 0;
    private failure: FritError | null = null;

    private constructor(private readonly peer: Peer) {
        peer.onMessage((message) => this.receive(message as FromWorker));
        peer.onError((message) => this.fail(new FritError(message, "E_INTERNAL")));
    }

    static async start(url: URL): Promise<Remote> {
        return new Remote(await startWorker(url));
    }

    private receive(message: FromWorker): void {
        const call = this.pending.get(message.id);
        if (!call) return;
        if ("event" in message) {
            call.event(message.event);
            return;
        }
        this.pending.delete(message.id);
        if ("result" in message) {
            call.resolve(message.result);
        } else {
            const { message: sentence, status, code, param } = message.error;
            call.reject(new FritError(sentence, status as Status, code, param));
        }
    }

    private fail(failure: FritError): void {
        this.failure = failure;
        for (const { reject } of this.pending.values()) reject(failure);
        this.pending.clear();
    }

    /** Calls a method of the worker. If the signal aborts, the promise rejects at once and the worker stops soon. */
    call<T>(method: Extract<ToWorker, { id: number }>["method"], args: unknown[], { signal, onEvent }: CallOptions = {}): Promise<T> {
        return new Promise<T>((resolve, reject) => {
            if (this.failure) return reject(this.failure);
            if (signal?.aborted) return reject(signal.reason);
            const id = ++this.nCalls;
            const abort = () => {
                this.pending.delete(id);
                this.peer.post({ cancel: id });
                reject(signal!.reason);
            };
            signal?.addEventListener("abort", abort, { once: true });
            const settled = <V>(settle: (value: V) => void) => (value: V) => {
                signal?.removeEventListener("abort", abort);
                settle(value);
            };
            this.pending.set(id, { resolve: settled(resolve as (value: unknown) => void), reject: settled(reject),
                                   event: (event) => onEvent?.(event as never) });
            this.peer.post({ id, method, args });
        });
    }

    /** Ends the worker at once. Calls that run reject. */
    end(reason = "the engine was closed"): void {
        this.peer.end();
        this.fail(new FritError(reason, "E_CANCELLED"));
    }
}
