#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures the processor time of encoders and of llama-quantize's encoders.

    bench/quantize.py build/release/frit model.gguf --peer PATH/llama-quantize --importance model.imatrix.gguf

Both programs quantize the model's matrices to each type with one thread, one after the other, `--rounds` times. Prints
the least processor time of each in nanoseconds per weight, minus the time for q8_0, and the ratio of both.
"""
import argparse
import os
import subprocess
import tempfile

TYPES = ("q4_k q5_k q6_k q3_k q2_k q4_0 q5_1 iq4_nl iq4_xs iq3_s iq3_xxs iq2_s iq2_xs iq2_xxs iq1_m iq1_s").split()
PEER_NAMES = {"q4_k": "Q4_K_S", "q5_k": "Q5_K_S", "q3_k": "Q3_K_S", "iq2_s": "IQ2_M"}
NEED_IMPORTANCE = ("iq3_xxs", "iq2_s", "iq2_xs", "iq2_xxs", "iq1_m", "iq1_s")


def processor_time(command):
    """Returns the seconds of user and system time of a command."""
    before = os.times()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: {done.stderr[-400:]}")
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def frit_command(args, kind, target, importance):
    command = [args.frit, "quantize", args.model, target, "-t", "1", "--pure", "--mix"]
    return command + [peer_name(kind).lower()] + (["--importance", importance] if importance else [])


def peer_name(kind):
    return PEER_NAMES.get(kind, kind.upper())


def peer_command(args, kind, target, importance):
    command = [args.peer, "--pure"] + (["--imatrix", importance] if importance else [])
    return command + [args.model, target, peer_name(kind), "1"]


def count_weights(args):
    plan = subprocess.run([args.frit, "quantize", args.model, "--plan", "--pure", "--mix", "q8_0"], capture_output=True,
                          text=True, check=True).stdout
    n = 0
    for line in plan.splitlines()[1:]:
        words = line.split()
        if "q8_0" not in words:
            continue
        size = 1
        for word in words[1 : words.index("q8_0") - 1]:
            size *= int(word) if word != "x" else 1
        n += size
    return n


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("frit")
    parser.add_argument("model", help="in f32, f16 or bf16")
    parser.add_argument("--peer", help="llama-quantize; without it only frit is measured")
    parser.add_argument("--importance", help="measured too, with this file")
    parser.add_argument("--types", default=",".join(TYPES))
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    n_weights = count_weights(args)
    makers = [frit_command] + ([peer_command] if args.peer else [])
    with tempfile.TemporaryDirectory() as folder:
        target = os.path.join(folder, "out.gguf")
        base = [min(processor_time(make(args, "q8_0", target, None)) for _ in range(3)) for make in makers]
        print("ns a weight" + (", frit / peer = ratio" if args.peer else ""))
        for kind in args.types.split(","):
            for importance in dict.fromkeys((None, args.importance)):
                if importance is None and kind in NEED_IMPORTANCE:
                    continue
                times = [[] for _ in makers]
                for _ in range(args.rounds):
                    for i, make in enumerate(makers):
                        times[i].append(processor_time(make(args, kind, target, importance)))
                ns = [1e9 * (min(t) - b) / n_weights for t, b in zip(times, base)]
                ratio = f" / {ns[1]:6.1f} = {ns[0] / ns[1]:.2f}" if args.peer else ""
                print(f"{kind:8} {'importance' if importance else 'plain':10} {ns[0]:6.1f}{ratio}", flush=True)


if __name__ == "__main__":
    main()
