// SPDX-License-Identifier: MIT
// A page without cross-origin isolation has no SharedArrayBuffer, but WebAssembly can still make shared memory, which
// stays on one thread. The module then runs on one thread.
if (typeof SharedArrayBuffer === 'undefined') {
    globalThis.SharedArrayBuffer = new WebAssembly.Memory({initial: 0, maximum: 0, shared: true}).buffer.constructor;
}
