// SPDX-License-Identifier: MIT
// SHA-256 in pieces: the browser's own function needs the whole file in memory.

const K = new Uint32Array(64);
const START = new Uint32Array(8);

// The first bits of the fractional parts of square and cube roots of primes.
for (let n = 2, i = 0; i < 64; n++) {
    let isPrime = true;
    for (let d = 2; d * d <= n && isPrime; d++) isPrime = n % d !== 0;
    if (!isPrime) continue;
    if (i < 8) START[i] = (Math.sqrt(n) % 1) * 2 ** 32;
    K[i++] = (Math.cbrt(n) % 1) * 2 ** 32;
}

export class Sha256 {
    private readonly state = START.slice();
    private readonly block = new Uint8Array(64);
    private readonly words = new Uint32Array(64);
    private n = 0;

    add(bytes: Uint8Array): void {
        let at = 0;
        while (at < bytes.length) {
            const inBlock = this.n % 64, take = Math.min(64 - inBlock, bytes.length - at);
            if (take === 64) {
                this.mix(bytes, at);
            } else {
                this.block.set(bytes.subarray(at, at + take), inBlock);
                if (inBlock + take === 64) this.mix(this.block, 0);
            }
            at += take;
            this.n += take;
        }
    }

    /** The sum in hexadecimal. */
    end(): string {
        const n = this.n, tail = new Uint8Array(((n + 72) & ~63) - n), data = new DataView(tail.buffer);
        tail[0] = 0x80;
        data.setUint32(tail.length - 8, Math.floor(n / 2 ** 29));
        data.setUint32(tail.length - 4, (n << 3) >>> 0);
        this.add(tail);
        return [...this.state].map((word) => word.toString(16).padStart(8, "0")).join("");
    }

    private mix(bytes: Uint8Array, at: number): void {
        const w = this.words, s = this.state;
        for (let i = 0; i < 16; i++, at += 4)
            w[i] = (bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!;
        for (let i = 16; i < 64; i++) {
            const x = w[i - 15]!, y = w[i - 2]!;
            const a = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
            const b = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
            w[i] = w[i - 16]! + a + w[i - 7]! + b;
        }
        let a = s[0]! | 0, b = s[1]! | 0, c = s[2]! | 0, d = s[3]! | 0, e = s[4]! | 0, f = s[5]! | 0, g = s[6]! | 0, h = s[7]! | 0;
        for (let i = 0; i < 64; i++) {
            const big1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
            const t1 = (h + big1 + ((e & f) ^ (~e & g)) + K[i]! + w[i]!) | 0;
            const big0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
            const t2 = (big0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
            h = g; g = f; f = e; e = (d + t1) | 0; d = c; c = b; b = a; a = (t1 + t2) | 0;
        }
        [a, b, c, d, e, f, g, h].forEach((word, i) => { s[i] = s[i]! + word; });
    }
}
