#!/usr/bin/env python3
"""Prints the problems whose candidates are recorded: 630 for the CPU, of at most 50 MFLOP each, and 550 larger ones for the GPU.
usage: problems.py cpu|cuda   The list is drawn with a fixed seed, so every machine records the same one."""
import math
import random
import sys

MOST = {"cpu": 50e6, "cuda": 20e9}
MOST_ELEMENTS = 8 << 20
LEAST = {"cpu": 2e4, "cuda": 2e6}


def pick(r, low, high, step=1):
    """A size between low and high, even on a logarithmic scale; those above step are multiples of it."""
    value = int(low * (high / low) ** r.random())
    return value // step * step if value >= step else value


def channels(r, low, high):
    return pick(r, low, high, r.choice((1, 4, 8, 16, 16, 32, 64)))


def dense(r, rank):
    window = [r.choice((1, 3, 3, 3, 3, 5, 7)) if rank < 3 else r.choice((1, 3, 3)) for _ in range(rank)]
    if rank == 2 and r.random() < 0.8: window[1] = window[0]
    return dict(c=channels(r, 8, 512), k=channels(r, 8, 512), w=window)


def pointwise(r, rank):
    return dict(c=channels(r, 4, 1024), k=channels(r, 4, 1024), w=[1] * rank)


def depthwise(r, rank):
    c = channels(r, 1, 1024)
    w = r.choice((3, 3, 5, 7, 9)) if rank < 3 else 3
    if rank == 1: w = r.choice((2, 3, 4, 7, 15, 31, 64, 128, 500))
    return dict(c=c, k=c, g=c, w=[w] * rank)


def grouped(r, rank):
    g, cg, kg = r.choice((2, 4, 8, 16, 32)), pick(r, 2, 32), pick(r, 1, 32)
    if r.random() < 0.5: kg = cg
    return dict(c=g * cg, k=g * kg, g=g, w=[r.choice((1, 3, 3, 5)) for _ in range(rank)])


def stem(r, rank):
    return dict(c=r.choice((1, 1, 2, 3, 3, 3, 4)), k=channels(r, 4, 128), w=[r.choice((3, 3, 5, 7))] * rank)


def narrow(r, rank):
    """Few channels out: the last layer of a decoder, a mixer."""
    return dict(c=channels(r, 1, 256), k=pick(r, 1, 6), w=[r.choice((1, 3, 3, 5))] * rank)


def dilated(r, rank):
    return dict(dense(r, rank), d=[r.choice((2, 2, 4, 8, 16))] * rank)


def strided(r, rank):
    return dict(dense(r, rank), s=[r.choice((2, 2, 2, 3, 4))] * rank)


def transposed(r, rank):
    step = r.choice((2, 2, 4))
    shape = dense(r, rank)
    shape.update(l=[step] * rank, w=[r.choice((step, 2 * step, 3))] * rank)
    return shape


FAMILIES = [(dense, 120), (pointwise, 60), (depthwise, 90), (grouped, 70), (stem, 40), (narrow, 40), (dilated, 40), (strided, 50),
            (transposed, 40)]
IN = {1: (8, 8000), 2: (4, 112), 3: (3, 24)}


def flops(p):
    """Counted as if every position were a result, which is near enough to bound the time."""
    work = 2.0 * p["n"] * p["k"] * p["c"] / p.get("g", 1)
    for i, size in enumerate(p["i"]):
        out = max(1, (size - 1) * p.get("l", [1] * 3)[i] // p.get("s", [1] * 3)[i] + 1)
        work *= out * p["w"][i]
    return work


def draw(r, family, device):
    while True:
        rank = r.choice((1, 1, 2, 2, 2, 3))
        p = family(r, rank)
        size = pick(r, *IN[rank])
        p["i"] = [max(1, int(size * r.choice((1, 1, 1, 0.5)))) for _ in range(rank)]
        p["n"] = r.choice((1, 1, 1, 1, 2, 4)) if device == "cpu" else r.choice((1, 4, 16, 64))
        d = p.get("d", [1] * rank)
        p["p"] = [r.choice((0, 1, 1)) * d[i] * (w // 2) for i, w in enumerate(p["w"])]
        if "l" in p: p["p"] = [w - 1 - min(w - 1, w // 4) for w in p["w"]]
        if any((size - 1) * p.get("l", [1] * rank)[i] + 1 + 2 * p["p"][i] < d[i] * (p["w"][i] - 1) + 1 for i, size in enumerate(p["i"])):
            continue
        if max(p["c"], p["k"]) * p["n"] * math.prod(p["i"][i] * p.get("l", [1] * rank)[i] for i in range(rank)) > MOST_ELEMENTS: continue
        work, target = flops(p), LEAST[device] * (MOST[device] / LEAST[device]) ** r.random()
        if LEAST[device] < work < MOST[device] and 0.3 * target < work < 3 * target: return p


def text(p, types, layout):
    out = "%dd_n%d_c%d_i%s_k%d" % (len(p["i"]), p["n"], p["c"], "x".join(map(str, p["i"])), p["k"])
    for letter in "wspdl":
        if letter in p: out += "_" + letter + "x".join(map(str, p[letter]))
    return out + "_g%d_%s_%s" % (p.get("g", 1), types, layout)


def problems(device):
    r = random.Random(17)
    for family, count in FAMILIES:
        for i in range(count):
            types = "f32"
            if device == "cuda": types = r.choice(("bf16", "bf16", "f16", "f32"))
            yield text(draw(r, family, device), types, ("last", "first")[i % 2])
    if device == "cpu":
        for types in ("bf16", "f16", "s8:s8:s32", "u8:s8:s32"):
            for family in (dense, pointwise, depthwise, grouped, strided):
                for i in range(4): yield text(draw(r, family, device), types, ("last", "first")[i % 2])


if __name__ == "__main__":
    print("\n".join(problems(sys.argv[1] if len(sys.argv) > 1 else "cpu")))
