#!/usr/bin/env python3
"""Draws docs/images/speed.svg and writes the README's table of speed, both from the rows of bench/results alone.
usage: bench/plot.py [--check]   (--check writes nothing and fails when either is out of date)

A row of the table is all rows of a file, or all rows of some families of it: none is left out. A value is the peer's time over hankel's."""
import csv
import math
import os
import re
import statistics
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
RESULTS = os.path.join(ROOT, "bench", "results")
PICTURE = os.path.join(ROOT, "docs", "images", "speed.svg")
README = os.path.join(ROOT, "README.md")
DENSE = ("r50x1", "r50x3", "mbpw", "unet", "vgg", "aspp", "stem")
FAMILIES = [("dense layers of ResNet-50, MobileNet, VGG, U-Net, ASPP", DENSE), ("odd channel counts", ("odd1", "odd3")),
            ("ResNeXt 3x3 and small grouped 1x1", ("rnxt", "g1x1")), ("dilated Conv1D of 8 to 32 channels", ("aud",)),
            ("depthwise 2D and 1D", ("mbdw", "dw1d"))]
LAYOUTS = [("last", "channels-last"), ("first", "channels-first")]
MACHINES = [  # heading, colour
    ("Zen 4 core, f32, AVX-512, against oneDNN, XNNPACK, OpenBLAS", "#2a6f97"),
    ("Xeon core, f32, AVX-512, against PyTorch (oneDNN)", "#6a8d3a"),
    ("H200, against the fastest cuDNN plan in either layout", "#b5562b")]


def rows_of(name):
    with open(os.path.join(RESULTS, name), encoding="utf-8") as f:
        lines = [line for line in f.read().split("\n\n")[0].split("\n") if not line.startswith("#")]  # up to a blank line: one table
    return list(csv.DictReader(lines, delimiter="\t" if name.endswith(".tsv") else ","))


def zen4():
    for layout, words in LAYOUTS:
        name = f"2026-11-16-cpu-avx512-{layout}-zen4.csv"
        rows = [r for r in rows_of(name) if r["ratio"]]
        for label, families in FAMILIES:
            values = [float(r["ratio"]) for r in rows if r["name"].split("_")[0] in families]
            yield 0, f"{label}, {words}", values, name


def xeon():
    name = "2026-11-15-cpu-xeon.md"
    with open(os.path.join(RESULTS, name), encoding="utf-8") as f:
        newest = f.read().split("\n## ")[1]
    cells = [[c.strip() for c in line.strip("|\n ").split("|")] for line in newest.split("\n") if line.startswith("|")]
    for layout, words in LAYOUTS:
        values = [float(c[7]) for c in cells if len(c) == 9 and c[1] == layout]
        yield 1, f"dense layers and odd channel counts, {words}", values, name


def h200():
    name = "2026-11-16-dense-h200.tsv"
    yield 2, "ResNet-50, Stable Diffusion, VAE, ASPP layers, channels-last; bf16, f16, tf32, split f32", [float(r["speedup"]) for r in rows_of(name)], name
    name = "2026-11-16-networks-h200.tsv"
    yield 2, "other networks, which no kernel was tuned for, channels-last", [float(r["speedup"]) for r in rows_of(name)], name
    name = "2026-11-15-depthwise-h200.tsv"
    for layout, words in LAYOUTS:
        values = [float(r["speedup"]) for r in rows_of(name) if r["layout"] == layout and r["speedup"]]
        yield 2, f"depthwise, grouped, first layer, {words}", values, name


def summary(values):
    return min(values), statistics.median(values), math.exp(statistics.fmean(map(math.log, values))), max(values)


def figure(v):
    return f"{v:.2f}" if v < 10 else f"{v:.0f}"


def table(data):
    lines = ["| times as fast as the peer | shapes | worst | median | geometric mean | best |", "|---|---|---|---|---|---|"]
    last = None
    for machine, label, values, name in data:
        if machine != last: lines.append(f"| **{MACHINES[machine][0]}** | | | | | |")
        last = machine
        lines.append(f"| [{label}](bench/results/{name}) | {len(values)} | " + " | ".join(map(figure, summary(values))) + " |")
    return "\n".join(lines) + "\n"


def picture(data):
    left, right, top, step, low, high = 520, 380, 34, 22, math.log(0.4), math.log(64)
    height = top + step * (len(data) + len(MACHINES)) + 34
    def at(v): return left + (math.log(v) - low) / (high - low) * right
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + right + 30} {height}" font-family="sans-serif" font-size="12">',
           "<title>hankel against other libraries: worst, median and best shape of each group</title>",
           "<style>text{fill:#333}.g{stroke:#ccc}.one{stroke:#333;stroke-width:1.5}@media(prefers-color-scheme:dark){text{fill:#ddd}"
           ".g{stroke:#444}.one{stroke:#ddd}}</style>"]
    for v in (0.5, 1, 2, 4, 8, 16, 32, 64):
        out.append(f'<line class="{"one" if v == 1 else "g"}" x1="{at(v):.1f}" x2="{at(v):.1f}" y1="{top - 8}" y2="{height - 28}"/>')
        out.append(f'<text x="{at(v):.1f}" y="{height - 12}" text-anchor="middle">{v:g}x</text>')
    out.append(f'<text x="{at(1):.1f}" y="{top - 14}" text-anchor="middle">as fast</text>')
    y, last = top, None
    for machine, label, values, _ in data:
        if machine != last:
            out.append(f'<text x="8" y="{y + 8}" font-weight="bold">{MACHINES[machine][0]}</text>')
            y, last = y + step, machine
        worst, median, _, best = summary(values)
        colour = MACHINES[machine][1]
        out.append(f'<text x="20" y="{y + 8}">{label} ({len(values)})</text>')
        out.append(f'<line x1="{at(worst):.1f}" x2="{at(best):.1f}" y1="{y + 4}" y2="{y + 4}" stroke="{colour}" stroke-width="5" stroke-linecap="round"/>')
        out.append(f'<circle cx="{at(median):.1f}" cy="{y + 4}" r="5.5" fill="#fff" stroke="{colour}" stroke-width="2.5"/>')
        y += step
    return "\n".join(out) + "\n</svg>\n"


def main():
    data = list(zen4()) + list(xeon()) + list(h200())
    with open(README, encoding="utf-8") as f: readme = f.read()
    marks = re.compile(r"(<!-- speed: written by bench/plot.py -->\n).*?(<!-- end -->\n)", re.S)
    if not marks.search(readme): raise SystemExit("README.md has no place for the table")
    wanted = marks.sub(lambda m: m[1] + table(data) + m[2], readme)
    if sys.argv[1:] == ["--check"]:
        with open(PICTURE, encoding="utf-8") as f: drawn = f.read()
        if drawn != picture(data) or readme != wanted: raise SystemExit("README.md or docs/images/speed.svg is out of date: run bench/plot.py")
        return
    with open(README, "w", encoding="utf-8") as f: f.write(wanted)
    with open(PICTURE, "w", encoding="utf-8") as f: f.write(picture(data))


if __name__ == "__main__":
    main()
