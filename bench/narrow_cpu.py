#!/usr/bin/env python3
"""bf16 and int8 layers on the CPU against f32 of the same layer, and against a peer, as a Markdown table.

Every row is measured by `hankel bench` in processes of their own, the types of a layer in turn, medians over the rounds: microseconds, in
brackets the speed against f32. int8 is u8 x and y with s8 weights, scales and bias. With --peer the peer's time and its ratio to hankel's
follow (above 1: hankel is faster); a peer needs its module beside the command.

usage: narrow_cpu.py HANKEL [--threads 1,16] [--layout last,first] [--types bf16,int8] [--only TEXT] [--peer NAME] [--rounds N]
                     [--seconds S] [--isa NAME] [--own-time]
"""
import argparse
import csv
import io
import math
import os
import statistics
import subprocess

LAYERS = [  # of ResNet-50, VGG, SSD, MobileNetV2 and ResNeXt
    "2d_n1_c64_i56x56_k64_w3x3_p1", "2d_n1_c256_i14x14_k256_w3x3_p1", "2d_n1_c512_i7x7_k512_w3x3_p1", "2d_n1_c64_i56x56_k256_w1x1",
    "2d_n1_c1024_i14x14_k256_w1x1", "2d_n1_c960_i7x7_k320_w1x1", "2d_n8_c128_i28x28_k128_w3x3_p1", "2d_n1_c96_i75x75_k160_w3x3_s2_p1",
    "2d_n1_c256_i56x56_k256_w3x3_p1", "2d_n1_c3_i224x224_k64_w7x7_s2_p3", "2d_n1_c256_i28x28_k256_w3x3_p1_g32",
    "2d_n1_c144_i56x56_k144_w3x3_p1_g144",
]
TYPES = {"f32": ("f32", "bias+relu"), "bf16": ("bf16", "bias+relu"), "int8": ("u8:s8:u8", "scale+bias+relu")}


def measure(a, layer, layout, kind, threads):
    """One run: microseconds, the peer's or None, and the decision's path."""
    text, epilogue = TYPES[kind]
    command = [a.hankel, "bench", f"{layer}_{text}_{layout}", "--epilogue", epilogue, "--threads", str(threads), "--csv", "--seconds",
               str(a.seconds)]
    command += ["--peer", a.peer] if a.peer else []
    command += ["--isa", a.isa] if a.isa else []
    command += ["--own-time"] if a.own_time and threads == 1 else []
    done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ, HANKEL_WISDOM="none"))
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: {done.stderr.strip()}")
    row = list(csv.DictReader(io.StringIO(done.stdout)))[-1]
    us, ratio = float(row["us"]), row.get("ratio") or ""
    path = " / ".join(p.split()[0] for p in row["decision"].split(" / "))
    kernel = row["decision"].split("kernel=")[-1].split()[0] if "kernel=" in row["decision"] else ""
    return us, us * float(ratio) if ratio else None, f"{path} {kernel.split('_')[-1]}".strip()


def mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float("nan")


def table(a, layout, threads):
    kinds = ["f32"] + a.types
    print(f"\n## {threads} thread{'s' if threads > 1 else ''}, channels-{layout}\n")
    print("| layer | " + " | ".join(kinds) + " | " + "".join(f"{k}, {a.peer} | " for k in kinds if a.peer) + "path |")
    print("|---" * (2 + len(kinds) * (2 if a.peer else 1)) + "|")
    speed, ratio = {k: [] for k in kinds}, {k: [] for k in kinds}
    for layer in (x for x in LAYERS if a.only in x):
        runs = {k: [] for k in kinds}
        for _ in range(a.rounds):
            for k in kinds:
                runs[k].append(measure(a, layer, layout, k, threads))
        us = {k: statistics.median(r[0] for r in runs[k]) for k in kinds}
        cells = [f"{us[k]:.0f}" + ("" if k == "f32" else f" ({us['f32'] / us[k]:.2f})") for k in kinds]
        for k in kinds:
            peers = [r[1] for r in runs[k] if r[1]]
            speed[k].append(us["f32"] / us[k])
            if peers:
                ratio[k].append(statistics.median(peers) / us[k])
            if a.peer:
                cells.append(f"{statistics.median(peers):.0f} ({ratio[k][-1]:.2f})" if peers else "")
        print(f"| `{layer}` | " + " | ".join(cells) + f" | {', '.join(runs[k][0][2] for k in kinds)} |", flush=True)
    means = [f"{mean(speed[k]):.2f}" for k in kinds] + [f"{mean(ratio[k]):.2f}" for k in kinds if a.peer]
    print("| geometric mean | " + " | ".join(means) + " | |", flush=True)


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1])
    parser.add_argument("hankel")
    for name, default in (("threads", "1"), ("layout", "last"), ("types", "bf16,int8"), ("only", ""), ("peer", ""), ("isa", "")):
        parser.add_argument("--" + name, default=default)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.06)
    parser.add_argument("--own-time", action="store_true")
    a = parser.parse_args()
    a.types = a.types.split(",")
    for layout in a.layout.split(","):
        for threads in a.threads.split(","):
            table(a, layout, int(threads))


if __name__ == "__main__":
    main()
