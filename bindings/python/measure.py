# SPDX-License-Identifier: MIT
"""Measures the cost of Python: the time of the import, and the time of each token beyond that of the C function.

    python bindings/python/measure.py MODEL [ROUNDS]

A small model shows the cost best. The C function is frit_session_next, called in a loop. The time of a call by ctypes
is measured separately and counted as Python's. All texts begin with one prompt, which is in the prefix cache.
"""

from __future__ import annotations

import ctypes
import statistics
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

N_TOKENS = 200
PROMPT = "Once upon a time"


def import_ms() -> float:
    """Returns the time of `import frit` in a new interpreter, without the interpreter's own start: the least of 7
    runs."""
    program = "import time; t = time.perf_counter(); import frit; print(1e3 * (time.perf_counter() - t))"
    folder = str(Path(__file__).resolve().parent)
    times = [float(subprocess.run([sys.executable, "-c", f"import sys; sys.path.insert(0, {folder!r}); {program}"],
                                  check=True, capture_output=True, text=True).stdout) for _ in range(7)]
    return min(times)


def main() -> None:
    import frit
    from frit._library import check, lib

    print(f"import: {import_ms():.1f} ms")
    engine = frit.load(sys.argv[1], n_ctx=512, n_threads=1)
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 15

    def by_c() -> float:
        session, sampler = engine.session(), frit.Sampler(engine.model, temperature=0)
        function, token = lib.frit_session_next, ctypes.byref(ctypes.c_int32())
        handle, by = session._require(), sampler._handle
        start = time.perf_counter()
        session.push(PROMPT)
        for _ in range(N_TOKENS):
            check(function(handle, by, token))
        return 1e6 * (time.perf_counter() - start) / N_TOKENS

    def by_next() -> float:
        session, sampler = engine.session(), frit.Sampler(engine.model, temperature=0)
        start = time.perf_counter()
        session.push(PROMPT)
        for _ in range(N_TOKENS):
            session.next(sampler)
        return 1e6 * (time.perf_counter() - start) / N_TOKENS

    def by_stream() -> float:
        start = time.perf_counter()
        stream = engine.generate(PROMPT, max_tokens=N_TOKENS, temperature=0, ignore_end=True)
        for _ in stream:
            pass
        return 1e6 * (time.perf_counter() - start) / N_TOKENS

    def by_call() -> float:
        function, handle = lib.frit_token_is_end, engine.model._handle
        start = time.perf_counter()
        for _ in range(2000):
            function(handle, 5)
        return 1e6 * (time.perf_counter() - start) / 2000

    ways = {"C function": by_c, "Session.next": by_next, "Engine.generate": by_stream, "a call by ctypes": by_call}
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):   # a round runs each way once, so that a disturbance affects all of them
        for name, way in ways.items():
            times[name].append(way())
    best = {name: min(values) for name, values in times.items()}
    for name, values in times.items():
        print(f"{name}: {best[name]:.2f} us (median {statistics.median(values):.2f})")
    for name in ("Session.next", "Engine.generate"):
        print(f"{name} over C: {best[name] - best['C function'] + best['a call by ctypes']:.2f} us a token")
    engine.close()


if __name__ == "__main__":
    main()
