#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Loads `frit serve` with many clients that use several protocols and leave at random, and compares their answers with
those that a single client got. Some answers have a grammar, some prompts are long and in no cache, some requests are
wrong, and the queue is so short that some clients are refused and ask again.

    bench/server_load.py build/release/frit [MODEL] [--seconds 600] [--clients 256] [--parallel 32] [--aborts 0.3]
    bench/server_load.py build/release/frit [MODEL] --overhead    tokens/s of one client beside `frit bench`

Ends with 1 if an answer was lost or different, or refused without a sentence; if memory grew by more than 2 % after the
first fifth of the time, by its median at the end or by the line through all samples; or if descriptors stayed open or
sessions busy. Needs Linux (/proc) and no packages.
"""
import argparse
import asyncio
import collections
import json
import os
import random
import re
import signal
import socket
import statistics
import subprocess
import sys
import time

PROMPTS = ["Tell me the tale of Rapunzel.", "Once upon a time", "The king had three sons.", "What is a wolf?",
           "A girl went into the forest", "Tell me of a fish that grants wishes, and of the fisherman's wife."]


LONG = [" ".join(f"{animal} {i} went into the forest and met the {other}." for i in range(40))
        for animal, other in (("The fox", "wolf"), ("A girl", "king"), ("One fish", "fisherman"))]

SCHEMA = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 12}, "age": {"type": "integer"},
                                           "kind": {"enum": ["king", "wolf", "fish"]},
                                           "friends": {"type": "array", "items": {"type": "string"}, "maxItems": 3}},
          "required": ["name", "age", "kind", "friends"]}
REGEX = "(The (king|wolf|fish) (said|went|saw) [a-z]{2,9}[.,] ){2,6}"
GBNF = 'root ::= "- " line+\nline ::= [a-z]+ (" " [a-z]+)* "." "\\n- "\n'

# Fields that give an answer a grammar, by protocol.
GRAMMARS = {
    "chat": [{"response_format": {"type": "json_schema", "json_schema": {"name": "tale", "schema": SCHEMA}}},
             {"response_format": {"type": "json_object"}}],
    "completion": [{"structured_outputs": {"regex": REGEX}}],
    "native": [{"json_schema": SCHEMA}, {"grammar": GBNF}],
    "ollama": [{"format": SCHEMA}],
}


def chat(text):
    return [{"role": "user", "content": text}]


def sse(body):
    """Yields the JSON object of each event. Comments and [DONE] are left out."""
    for line in body.splitlines():
        if line.startswith("data: ") and line != "data: [DONE]":
            yield json.loads(line[6:])


def ndjson(body):
    return (json.loads(line) for line in body.splitlines())


# path, body for a prompt, text of an event ("" for an event without text), text of a whole answer
PROTOCOLS = {
    "chat": ("/v1/chat/completions", lambda p, n: {"messages": chat(p), "max_tokens": n},
             lambda e: (e["choices"] or [{"delta": {}}])[0]["delta"].get("content") or "",
             lambda a: a["choices"][0]["message"]["content"]),
    "completion": ("/v1/completions", lambda p, n: {"prompt": p, "max_tokens": n},
                   lambda e: (e["choices"] or [{"text": ""}])[0]["text"], lambda a: a["choices"][0]["text"]),
    "responses": ("/v1/responses", lambda p, n: {"input": p, "max_output_tokens": n},
                  lambda e: e["delta"] if e["type"] == "response.output_text.delta" else "",
                  lambda a: "".join(c["text"] for o in a["output"] for c in o["content"])),
    "messages": ("/v1/messages", lambda p, n: {"messages": chat(p), "max_tokens": n},
                 lambda e: e["delta"].get("text", "") if e["type"] == "content_block_delta" else "",
                 lambda a: "".join(c["text"] for c in a["content"])),
    "native": ("/completion", lambda p, n: {"prompt": p, "n_predict": n}, lambda e: e["content"],
               lambda a: a["content"]),
    "ollama": ("/api/chat", lambda p, n: {"messages": chat(p), "options": {"num_predict": n, "temperature": 0}},
               lambda e: e["message"]["content"], lambda a: a["message"]["content"]),
}


class Request:
    """`salted`: each time with another salt, so that the prompt is in no cache. `refused`: the status that it gets."""

    def __init__(self, protocol, prompt, n_tokens, stream, fields=None, salted=False, refused=0):
        self.path, make, self.delta, self.whole = PROTOCOLS[protocol]
        self.protocol, self.stream, self.salted, self.refused = protocol, stream, salted, refused
        self.fields = dict(make(prompt, n_tokens), temperature=0, stream=stream, **(fields or {}))
        if protocol == "ollama":
            del self.fields["temperature"]
        self.kind = "refused" if refused else "long" if salted else "grammar" if fields else "plain"
        self.expected = None
        self.write()

    def write(self):
        self.body = json.dumps(self.fields).encode()
        self.head = (f"POST {self.path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                     f"Content-Length: {len(self.body)}\r\n\r\n").encode()

    def salt(self, number):
        if self.salted:
            self.fields["cache_salt"] = str(number)
            self.write()

    def text(self, body):
        if not self.stream:
            return self.whole(json.loads(body))
        events = list(ndjson(body) if self.protocol == "ollama" else sse(body))
        if any(e.get("error") for e in events):
            raise ValueError("error event")
        return "".join(map(self.delta, events))


class Answer:
    """Reads a response until the connection ends; `times` are the times at which parts of it arrived."""

    def __init__(self):
        self.raw, self.times = bytearray(), []

    async def read(self, reader, most=None):
        while most is None or len(self.raw) < most:
            piece = await reader.read(65536)
            if not piece:
                return
            if b"data: " in piece or b"{" in piece:
                self.times.append(time.monotonic())
            self.raw += piece

    def parse(self):
        head, _, rest = bytes(self.raw).partition(b"\r\n\r\n")
        while head.startswith(b"HTTP/1.1 100"):
            head, _, rest = rest.partition(b"\r\n\r\n")
        status = int(head.split()[1]) if head else 0
        if b"transfer-encoding: chunked" not in head.lower():
            length = re.search(rb"(?i)content-length: (\d+)", head)
            if not length or len(rest) != int(length.group(1)):
                return 0, ""
            return status, rest.decode()
        body = bytearray()
        while rest:
            size, _, rest = rest.partition(b"\r\n")
            n = int(size, 16)
            if n == 0:
                return status, body.decode()
            body += rest[:n]
            rest = rest[n + 2:]
        return 0, ""   # the response is not complete


class Load:
    def __init__(self, args, port):
        self.args, self.port = args, port
        self.random = random.Random(args.seed)
        self.counts, self.gaps = collections.Counter(), []
        self.wrong = []

    async def ask(self, request):
        answer = Answer()
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(request.head + request.body)
            await answer.read(reader)
        finally:
            writer.close()
        return answer

    async def leave(self, request):
        """Leaves at a random moment: within the head, within the body, before the answer or within it, with or without
        a reset."""
        how = self.random.choice(["head", "body", "wait", "answer", "half"])
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        whole = request.head + request.body
        cut = {"head": self.random.randrange(len(request.head)),
               "body": len(request.head) + self.random.randrange(len(request.body))}.get(how, len(whole))
        writer.write(whole[:cut])
        try:
            if how == "half":
                writer.write_eof()
            if how == "answer":
                await Answer().read(reader, self.random.randrange(1, 4000))
            else:
                await asyncio.sleep(self.random.random() * 0.5)
        except OSError:
            pass
        if self.random.random() < 0.5:
            writer.transport.abort()
        writer.close()
        self.counts["left: " + how] += 1

    async def client(self, requests, end):
        while time.monotonic() < end:
            request = self.random.choice(requests)
            request.salt(self.random.random())
            try:
                if self.random.random() < self.args.aborts:
                    await self.leave(request)
                    continue
                answer = await self.ask(request)
                status, body = answer.parse()
                self.judge(request, status, body)
                if status == 429:
                    await asyncio.sleep(1 + 2 * self.random.random())
                if request.stream:
                    self.gaps += [b - a for a, b in zip(answer.times, answer.times[1:])]
            except (OSError, ValueError, KeyError) as error:
                self.counts[f"failed: {type(error).__name__} {error}"[:100]] += 1

    def judge(self, request, status, body):
        if status == 429 or status == request.refused:
            error = json.loads(body)["error"]
            sentence = error["message"] if isinstance(error, dict) else error
            self.counts[f"refused with a sentence: {status}" if sentence.strip() else f"refused without: {status}"] += 1
            return
        if status != 200 or request.refused:
            self.counts[f"status {status}"] += 1
            return
        text = request.text(body)
        right = text == request.expected
        self.counts[("right: " if right else "wrong: ") + request.kind] += 1
        if not right and len(self.wrong) < 3:
            self.wrong.append((request.protocol, request.expected[:200], text[:200]))


class Server:
    def __init__(self, args, parallel):
        command = [args.frit, "serve", args.model, "--port", "0", "--parallel", str(parallel), "--max-queue",
                   str(args.max_queue or 3 * args.clients // 4), "-c", "1024", "--temp", "0"] + args.options.split()
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            if "http://" in line:
                self.port = int(line.rsplit(":", 1)[1].split()[0])
                return
        raise SystemExit("frit serve did not start")

    def rss(self):
        """Returns the resident KiB without the largest mapping: the cache, which the system backs as it is used."""
        found = self.mappings().values()
        return sum(found) - max(found)

    def mappings(self):
        """Returns the resident KiB of each mapping, by address and name."""
        with open(f"/proc/{self.process.pid}/smaps") as smaps:
            found = re.findall(r"^([0-9a-f]+)-[0-9a-f]+ \S+ \S+ \S+ \S+ *(.*)\n(?:.*\n)*?Rss: +(\d+)", smaps.read(), re.M)
        return {(start, name or "memory"): int(rss) for start, name, rss in found}

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def get(self, path):
        import urllib.request
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=60) as reply:
            return reply.read().decode()

    def idle(self):
        health = json.loads(self.get("/health"))
        return health["running"] + health["waiting"] == 0

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=120)


def slope(values):
    """Returns by how much values change from the first to the last one, on the line with the least squares."""
    n = len(values)
    mean, middle = statistics.mean(values), (n - 1) / 2
    square = sum((i - middle) ** 2 for i in range(n))
    return sum((i - middle) * (v - mean) for i, v in enumerate(values)) / square * (n - 1) if n > 1 else 0


def quantile(values, q):
    return sorted(values)[min(len(values) - 1, int(q * len(values)))] if values else float("nan")


def metric_quantile(metrics, name, q):
    """Returns the upper bound of the bucket with the quantile."""
    buckets = [(float(le.replace("+Inf", "inf")), float(n))
               for le, n in re.findall(name + r'_bucket\{[^}]*le="([^"]+)"[^}]*\} (\S+)', metrics)]
    return next((le for le, n in buckets if n >= q * buckets[-1][1]), float("nan")) if buckets else float("nan")


async def sample(server, begin, end, rss, mappings):
    while time.monotonic() < end:
        rss.append(server.rss())
        if not mappings and time.monotonic() > begin + 0.3 * (end - begin):
            mappings.update(server.mappings())
        await asyncio.sleep(1)


async def run(args, server):
    load = Load(args, server.port)
    n = [load.random.randrange(8, 48) for _ in PROMPTS]
    requests = [Request(protocol, prompt, n[i], stream) for protocol in PROTOCOLS
                for i, prompt in enumerate(PROMPTS) for stream in (True, True, False)]
    requests += [Request(protocol, prompt, n[i], stream, fields=fields) for protocol in GRAMMARS
                 for fields in GRAMMARS[protocol] for i, prompt in enumerate(PROMPTS) for stream in (True, False)]
    requests += [Request(protocol, prompt, 16, stream, salted=True) for protocol in ("chat", "completion")
                 for prompt in LONG for stream in (True, False)]
    wrong = {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "wolf"}}}}
    requests += [Request("completion", " ".join(LONG) * 4, 8, False, refused=400),
                 Request("chat", PROMPTS[0], 8, True, fields=wrong, refused=400)]
    for request in requests:
        status, body = (await load.ask(request)).parse()
        if status != (request.refused or 200):
            raise SystemExit(f"{request.path}: {status} {body}")
        if status == 200:
            request.expected = request.text(body)
    first_descriptors, rss, mappings = server.descriptors(), [], {}
    begin = time.monotonic()
    end = begin + args.seconds
    await asyncio.gather(sample(server, begin, end, rss, mappings), *[load.client(requests, end) for _ in range(args.clients)])
    for _ in range(600):
        if server.idle() and server.descriptors() <= first_descriptors:
            break
        await asyncio.sleep(0.1)
    return load, rss, mappings, first_descriptors


def report(args, server, load, rss, mappings, first_descriptors):
    metrics, is_idle = server.get("/metrics"), server.idle()
    descriptors = server.descriptors()
    for _ in range(100):   # a connection of this script is counted until the server has closed it
        if descriptors <= first_descriptors:
            break
        time.sleep(0.05)
        descriptors = server.descriptors()
    fifth = max(1, len(rss) // 5)
    before, after = statistics.median(rss[fifth:2 * fifth] or rss), statistics.median(rss[-fifth:])
    cache = float(re.search(r"vllm:kv_cache_usage_perc\{[^}]*\} (\S+)", metrics).group(1))
    for name, count in sorted(load.counts.items()):
        print(f"{name:40} {count}")
    print(f"resident memory: {before} KiB after a fifth, {after} KiB at the end ({100 * (after / before - 1):+.2f} %)")
    climbs = slope(rss[fifth:]) if rss[fifth:] else 0
    print(f"            by the line through {len(rss[fifth:])} samples after a fifth: {100 * climbs / before:+.2f} %")
    print("            in tenths of the time:", *[rss[i * len(rss) // 10] for i in range(10)], rss[-1])
    growth = sorted(((kib - mappings.get(key, 0), key[1], kib) for key, kib in server.mappings().items()), reverse=True)
    print("            since three tenths of it:", ", ".join(f"{name} {kib - more} + {more}" for more, name, kib in growth[:4]))
    print(f"descriptors: {first_descriptors} before, {descriptors} after")
    print(f"cache used by requests after the end: {cache}; idle: {is_idle}")
    print(f"time between events, as clients see it: median {1e3 * quantile(load.gaps, 0.5):.1f} ms, "
          f"p99 {1e3 * quantile(load.gaps, 0.99):.1f} ms, of {len(load.gaps)}")
    print("time between tokens, as the server counts: median <= {} s, p99 <= {} s".format(
        *(metric_quantile(metrics, "vllm:inter_token_latency_seconds", q) for q in (0.5, 0.99))))
    for protocol, expected, got in load.wrong:
        print(f"{protocol}: expected {expected!r}\n{' ' * len(protocol)}  got      {got!r}")
    bad = sum(count for name, count in load.counts.items()
              if not name.startswith(("right", "left", "refused with a sentence")))
    faults = {f"{bad} answers failed": bad,
              "memory grew by more than 2 %": args.memory and (after > 1.02 * before or climbs > 0.02 * before),
              "descriptors stayed open": descriptors > first_descriptors, "the cache is in use": cache > 0,
              "sessions are busy": not is_idle, "an answer of some kind was never compared":
              any(not load.counts["right: " + kind] for kind in ("plain", "grammar", "long"))}
    print("verdict:", "; ".join(name for name, holds in faults.items() if holds) or "no fault")
    return any(faults.values())


def one_stream(server, n_tokens):
    """Returns the tokens/s between the first and the last event of a stream of n_tokens tokens."""
    request = Request("native", "Once upon a time", n_tokens, True)
    request.body = json.dumps({"prompt": "Once upon a time", "n_predict": n_tokens, "stream": True, "temperature": 0,
                               "ignore_eos": True, "cache_prompt": True}).encode()
    request.head = re.sub(rb"Content-Length: \d+", b"Content-Length: %d" % len(request.body), request.head)
    answer = Answer()
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(request.head + request.body)
        while piece := connection.recv(65536):
            answer.raw += piece
    status, body = answer.parse()
    events = list(sse(body))
    if status != 200 or not events or events[-1]["timings"]["predicted_n"] != n_tokens:
        raise SystemExit(f"{status} {body[-500:]}")
    return events[-1]["timings"]["predicted_per_second"]


def overhead(args):
    """Measures server and `frit bench` alternately, because the machine's speed drifts."""
    n_tokens, rates = args.tokens, []
    for _ in range(args.rounds):
        text = subprocess.run([args.frit, "bench", args.model, "-p", "0", "-n", str(n_tokens), "-r", "3", "-o", "json",
                               "--no-probe"] + args.options.split(), stdout=subprocess.PIPE, check=True).stdout
        bench = json.loads(text)
        rows = bench if isinstance(bench, list) else bench["results"]
        server = Server(args, 1)
        try:
            served = [one_stream(server, n_tokens) for _ in range(4)][1:]
        finally:
            server.stop()
        rates.append((rows[0]["avg_ts"], statistics.mean(served)))
        print(f"frit bench {rates[-1][0]:.1f} tokens/s, served {rates[-1][1]:.1f} tokens/s")
    print(f"overhead: {100 * (1 - statistics.median(s / b for b, s in rates)):.1f} % (median of pairs)")
    return 0


def main():
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("frit")
    parser.add_argument("model", nargs="?", default=os.path.join(here, "models", "fable.gguf"))
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--clients", type=int, default=256)
    parser.add_argument("--parallel", type=int, default=32)
    parser.add_argument("--max-queue", type=int, default=0, help="clients that wait; 0: three quarters")
    parser.add_argument("--aborts", type=float, default=0.3, help="share of clients that leave")
    parser.add_argument("--options", default="", help="more options of frit serve")
    parser.add_argument("--no-memory", dest="memory", action="store_false", help="growth is no fault (sanitizers)")
    parser.add_argument("--overhead", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=256, help="of a stream with --overhead")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    if args.overhead:
        return overhead(args)
    server = Server(args, args.parallel)
    try:
        faults = report(args, server, *asyncio.run(run(args, server)))
    finally:
        code = server.stop()
    if code != 0:
        print(f"frit serve ended with {code}: {server.process.stderr.read()[-4000:]}")
    return 1 if faults or code else 0


if __name__ == "__main__":
    sys.exit(main())
