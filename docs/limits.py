#!/usr/bin/env python3
"""Writes docs/limits.md from what the planner says: for each operation the algorithm that would run on AVX2 without AVX-VNNI, and
why the others would not. `limits.py --check` compares instead of writing (exit 1 when the page is out of date)."""
import json
import os
import subprocess
import sys

HANKEL = os.environ.get("HANKEL_BIN", "build/bin/hankel")
PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "limits.md")
OPERATIONS = [  # what it is called, problem, epilogue
    ("dense 2D, channels-last", "2d_n1_c64_i28x28_k64_w3x3_p1_{t}_last", "bias+relu"),
    ("dense 2D, channels-first", "2d_n1_c64_i28x28_k64_w3x3_p1_{t}_first", "bias+relu"),
    ("pointwise 1x1", "2d_n1_c64_i28x28_k128_w1x1_{t}_last", "bias"),
    ("first layer, 3 channels", "2d_n1_c3_i64x64_k32_w3x3_s2_p1_{t}_last", "bias+relu"),
    ("dilated, wide padding", "2d_n1_c32_i33x33_k32_w3x3_p12_d12_{t}_last", "none"),
    ("dense 1D", "1d_n1_c32_i512_k32_w5_p2_{t}_first", "bias+silu"),
    ("dense 3D", "3d_n1_c16_i8x14x14_k16_w3x3x3_p1_{t}_last", "none"),
    ("grouped 3x3, 4 channels per group", "2d_n1_c64_i28x28_k64_w3x3_p1_g16_{t}_last", "relu"),
    ("depthwise 3x3, channels-last", "2d_n1_c96_i28x28_k96_w3x3_p1_g96_{t}_last", "bias+relu"),
    ("depthwise 3x3, channels-first", "2d_n1_c96_i28x28_k96_w3x3_p1_g96_{t}_first", "bias+relu"),
    ("depthwise 1D, long filter", "1d_n1_c64_i2048_k64_w301_g64_{t}_first", "none"),
    ("small causal dilated 1D", "1d_n1_c8_i64_k8_w3_p16:0_d8_{t}_first", "bias+tanh"),
    ("gated", "1d_n1_c8_i64_k16_w3_p2:0_{t}_first", "gated:tanh:sigmoid"),
    ("residual before the activation", "2d_n1_c32_i28x28_k32_w3x3_p1_{t}_last", "bias+presum:1+relu"),
    ("transposed, stride 2", "2d_n1_c32_i14x14_k32_w4x4_p2_l2_flip_{t}_last", "none"),
    ("gradient of the filter, channels-last", "2d_n4_c32_i28x28_k32_w3x3_p1_{t}_last --grad filter", "none"),
    ("gradient of the filter, channels-first", "2d_n4_c32_i28x28_k32_w3x3_p1_{t}_first --grad filter", "none"),
    ("gradient of a depthwise filter", "2d_n4_c96_i28x28_k96_w3x3_p1_g96_{t}_last --grad filter", "none"),
    ("gradient of the input, stride 2", "2d_n4_c32_i28x28_k32_w3x3_s2_p1_{t}_last --grad input", "none"),
    ("batch groups", "2d_n8_c16_i14x14_k32_w3x3_p1_b4_{t}_last", "none"),
    ("odd strides", "1d_n2_c8_i20_k8_w3_{t}_xs=0.0.800.40.2_fs=0.0.24.3.1_ys=0.0.1.36.2", "none"),
]
TYPES = ["f32", "f64", "bf16", "f16", "u8:s8:s8"]
OTHER_PURPOSE = ["ISA cap", "CPU lacks", "neither x nor f is", "has no gate", "must be int8", "must be f64", "stateful is 0",
                 "options.math must allow"]  # say nothing of these problems
HEAD = """# Limits: what is native, what is slower, what is refused

Written by docs/limits.py from `hankel plan --why --json --isa avx2` without AVX-VNNI; `docs/limits.py --check` says whether it is current. "reference" is the
scalar reference: correct and slow; `hk_options.forbid_fallback` makes it an error. Problems that break a rule of
[manual.md](manual.md) are refused with a sentence that says which rule was broken. GPU limits are in [cuda.md](cuda.md).

## Budgets

| what | at most |
|---|---|
| `hk_plan_create` with `HK_ESTIMATE`, `hk_plan_candidates` | 1 s of CPU time for any legal problem, whatever its sizes, plus reading and packing the weights once |
| memory of a plan while it is made | 64 MiB beyond the packed weights; bf16, f16 and f8 weights are converted to f32 while they are packed, except where the kernel multiplies (dots) or widens them, or a call does (depthwise, channels-first) |
| weights | read once before the decision (to find Inf and NaN where taps may lie outside x), packed after it |
| `hk_plan_execute` | time proportional to inputs, outputs and products; no allocation |

An algorithm whose tables would exceed 16 MiB, or 262144 taps, refuses, and one with smaller tables takes the problem. A
tensor has at most 2^48 elements. More than 2^56 products, 2^50 output positions over all groups, 2^40 positions along a dimension, or 2^24 weights that strides repeat 16 times run on the reference only.
tests/c/plan/budget_test.c checks these numbers on extreme problems.

## Causal Conv1D (`hk_causal`)

| what | at most, or how |
|---|---|
| types | f32, f16, bf16, each of x, f, y and state by itself; gates and residual have x's, bias has f's |
| window, dilation | 256 taps, dilation up to 2^48; dilation·(window−1) at most 4096 with `in_place` |
| activations | every one but `prelu` and `user`; gradient: none, relu, silu |
| fast on the CPU | adjacent channels or adjacent tokens in every tensor, dilation·(window−1) + window up to 1,023; the gradient any strides, windows up to 128 taps, not by ids |
| scalar reference | everything else; ring states, states that do not fit the stack (entries and tokens of a call above about 1,000) move by it |
| stack of a call | 75 KiB per thread, 140 KiB in the gradient |
| refused | states with ids; gates, residual, ring, slots and rollback in the gradient; y over x without `in_place`, slots and offsets out of range (CPU) |

## Long convolution (`hk_longconv`)

| what | at most, or how |
|---|---|
| types | f32, f16, bf16, each of x, f and y by itself; gates have x's, skip has f's; f32 inside |
| tokens, taps | 2^21 each; taps beyond the tokens are not read |
| math | `HK_MATH_FAST_ALGORITHMS`: errors are relative to the largest values of a row |
| workspace on the CPU | per thread about 8 bytes per point of a transform for the filter and as much for the row, four times with the gradient; 16 rows at a time where channels are adjacent |
| workspace on CUDA | 64 MiB, or what one channel needs: 8 bytes per point for its filter and above 2^14 points for each sequence; twice with the gradient |
| threads | over channels (groups of 16 where channels are adjacent), and over sequences where those are fewer than the threads; the gradient over channels alone |
| refused | states, packed sequences, activations, dilation, f64 and integers; filters at creation on CUDA |

"""

DOTS = """On AVX2 without AVX-VNNI. With AVX512-BF16 or AMX bf16, and with AVX-512 VNNI, AVX-VNNI or AMX int8, take `dots` (channels-first:
`transpose_x / dots`) where a group has enough channels: dense, pointwise, first layers, dilated, transposed. Its bf16 products count
denormals of x, f and the sums as zero, as the instructions do in every floating-point mode; `hankel plan` says so, and
`hk_options.denormals = HK_DENORMALS_EXACT` avoids it ([decision](decisions/0012-dot-products.md)). int8 is exact on every path; `integers` needs at most 258 products
per sum, y of 8 bits, and scale, bias and clamp at most.
"""


def plan(problem, epilogue):
    """What the planner says of a problem and its options; None for int8, which has no gradients."""
    done = subprocess.run([HANKEL, "plan", *problem.split(), "--epilogue", epilogue, "--why", "--json", "--isa", "avx2", "--threads", "1"],
                          capture_output=True, text=True, env=dict(os.environ, HANKEL_WISDOM="none", HANKEL_WITHOUT="avxvnni"))
    if "gradients need float types" in done.stderr:
        return None
    if done.returncode:
        raise SystemExit(f"{problem}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def algorithm(decision):
    """The path of a decision without kernel and knobs."""
    name = " / ".join(part.split()[0] for part in decision.split(" / "))
    return "reference" if name == "ref" else name


def page():
    lines = [HEAD + "## What runs\n", DOTS, "| operation | " + " | ".join(t.split(":")[0] if ":" not in t else "int8" for t in TYPES) + " |",
             "|---" * (len(TYPES) + 1) + "|"]
    reasons = []
    for name, problem, epilogue in OPERATIONS:
        cells = []
        for t in TYPES:
            p = plan(problem.format(t=t), epilogue)
            cells.append(algorithm(p["decision"]) if p else "refused")
            if t == "f32":
                why = {}
                offered = {algorithm(c["decision"]) for c in p["candidates"] if not c["refusal"]}
                for c in p["candidates"]:
                    if c["refusal"] and algorithm(c["decision"]) not in offered and not any(w in c["refusal"] for w in OTHER_PURPOSE):
                        names = why.setdefault(c["refusal"], [])
                        if algorithm(c["decision"]) not in names: names.append(algorithm(c["decision"]))
                reasons.append((name, algorithm(p["decision"]), why))
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    lines += ["", "## Why the others do not (f32)\n", "Left out: algorithms of other types, of stateful plans, and those that need `--math fast`.\n"]
    for name, chosen, why in reasons:
        lines += [f"**{name}** runs as `{chosen}`\n", "| refusal | algorithms |", "|---|---|"]
        lines += [f"| {r} | {', '.join(f'`{a}`' for a in why[r])} |" for r in sorted(why)] + [""]
    return "\n".join(lines).rstrip("\n") + "\n"


def main():
    text = page()
    if sys.argv[1:] not in ([], ["--check"]):
        raise SystemExit("usage: limits.py [--check]; HANKEL_BIN names the command")
    if sys.argv[1:] == ["--check"]:
        with open(PAGE, encoding="utf-8") as f:
            if f.read() != text:
                raise SystemExit("docs/limits.md is out of date: run docs/limits.py")
        return
    with open(PAGE, "w", encoding="utf-8") as f:
        f.write(text)


if __name__ == "__main__":
    main()
