#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures the cost and the gain of speculation in frit serve, by processor time.

    bench/speculation.py build/release/frit model.gguf [draft.gguf] --seconds 50

Servers with one thread answer the same greedy requests in each round: without speculation, with guesses from the text,
with a draft model, and with the answer itself as prediction; for one client, and for four at once. Prints the median
(quartiles) of the ratios of processor time to that without speculation in the same round, and the guesses of the last
round. The answers must be equal.
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import threading
import time
import urllib.request

PROMPTS = [
    "Once upon a time there was a king who",
    "The fox said to the wolf",
    "In the forest lived an old woman",
    "A poor miller had a daughter and",
]
KINDS = ("completion_tokens", "accepted_prediction_tokens", "rejected_prediction_tokens")


class Server:
    def __init__(self, arguments):
        self.process = subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            found = re.search(r"(http://[\d.:]+)", line)
            if found:
                self.url = found.group(1)
                return
        sys.exit("ended: " + " ".join(arguments))

    def cpu_seconds(self):
        folder = f"/proc/{self.process.pid}/task"
        return 1e-9 * sum(int(open(f"{folder}/{t}/schedstat").read().split()[0]) for t in os.listdir(folder))

    def ask(self, prompt, n_tokens, prediction):
        body = {"prompt": prompt, "max_tokens": n_tokens, "temperature": 0}
        if prediction is not None:
            body["prediction"] = {"type": "content", "content": prediction}
        request = urllib.request.Request(self.url + "/v1/completions", json.dumps(body).encode())
        return json.load(urllib.request.urlopen(request))

    def run(self, n_clients, n_tokens, predictions):
        answers = [None] * n_clients

        def client(i):
            answers[i] = self.ask(PROMPTS[i], n_tokens, predictions[i] if predictions else None)

        threads = [threading.Thread(target=client, args=(i,)) for i in range(n_clients)]
        before = self.cpu_seconds()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return self.cpu_seconds() - before, answers


def guesses(answers):
    usages = [{**a["usage"], **a["usage"]["completion_tokens_details"]} for a in answers]
    return tuple(sum(u[kind] for u in usages) for kind in KINDS)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("frit")
    parser.add_argument("model")
    parser.add_argument("draft", nargs="?")
    parser.add_argument("--seconds", type=float, default=50)
    parser.add_argument("--tokens", type=int, default=400)
    options = parser.parse_args()
    start = [options.frit, "serve", options.model, "--port", "0", "--parallel", "4", "-t", "1", "--speculate"]
    servers = {"none": Server(start + ["none"]), "text": Server(start + ["ngram"])}
    if options.draft:
        servers["draft"] = Server(start + ["draft", "--model-draft", options.draft])
    rows = {}
    end = time.time() + options.seconds
    is_first = True   # the first round touches memory
    while time.time() < end or is_first:
        for n_clients in (1, 4):
            plain, expected = servers["none"].run(n_clients, options.tokens, None)
            texts = [a["choices"][0]["text"] for a in expected]
            for name in [*servers, "prediction"]:
                server = servers.get(name, servers["text"])
                seconds, answers = server.run(n_clients, options.tokens, texts if name == "prediction" else None)
                if [a["choices"][0]["text"] for a in answers] != texts:
                    sys.exit(f"{name}: the answers are others")
                if not is_first:
                    rows.setdefault((name, n_clients), []).append((seconds / plain, guesses(answers)))
        is_first = False
    for (name, n_clients), samples in rows.items():
        ratios = sorted(ratio for ratio, _ in samples)
        low, high = ratios[len(ratios) // 4], ratios[3 * len(ratios) // 4]
        n, accepted, rejected = samples[-1][1]
        print(f"{name:10} {n_clients} clients: {statistics.median(ratios):.2f} ({low:.2f} - {high:.2f}) of {len(ratios)} "
              f"rounds; {n} tokens, {accepted} guesses accepted, {rejected} not")
    for server in servers.values():
        server.process.terminate()
        server.process.wait()


main()
