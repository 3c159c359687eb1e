#!/usr/bin/env python3
"""Strict f32 (no tensor cores) on the device: hankel's choice, cuda_direct and cuDNN with allow_tf32 off, side by side.

Measured as bench.py does. With --tiles every decision of cuda_simt is timed instead.

usage: strict.py [--library build/lib/libhankel.so] [--only NAME,..] [--tiles] [--out FILE]
"""
import argparse
import ctypes as C
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import bench  # noqa: E402
import torch  # noqa: E402
from bench import abi  # noqa: E402

# n c h w k r s stride pad dil groups
LAYERS = {
    "r50_64_56_n16": (16, 64, 56, 56, 64, 3, 3, 1, 1, 1, 1), "r50_256_14_n64": (64, 256, 14, 14, 256, 3, 3, 1, 1, 1, 1),
    "pw_1024_256_14_n64": (64, 1024, 14, 14, 256, 1, 1, 1, 0, 1, 1), "stem_n16": (16, 3, 224, 224, 64, 7, 7, 2, 3, 1, 1),
    "vgg_256_56_n4": (4, 256, 56, 56, 256, 3, 3, 1, 1, 1, 1), "r50_512_7_n1": (1, 512, 7, 7, 512, 3, 3, 1, 1, 1, 1),
    "s2_128_56_n16": (16, 128, 56, 56, 128, 3, 3, 2, 1, 1, 1), "rnxt_g32_n16": (16, 256, 28, 28, 256, 3, 3, 1, 1, 1, 32),
    "k8_64_56_n16": (16, 64, 56, 56, 8, 3, 3, 1, 1, 1, 1), "audio_1d": (8, 144, 1, 7249, 160, 1, 3, 1, 1, 1, 1),
}


def decisions(lib, text):
    """The decisions of cuda_simt for a problem, with their predictions in us."""
    found = []

    @abi.CandidateFn
    def collect(_, c):
        if not c.contents.refusal and c.contents.decision.startswith(b"cuda_simt"):
            found.append((c.contents.decision, c.contents.predicted_s * 1e6))
    p, e, o = abi.RawProblem(), abi.Epilogue(), abi.Options(device=abi.CUDA, rigor=2)
    lib.hk_problem_parse(C.byref(p), text.encode())
    lib.hk_plan_candidates(C.byref(p), C.byref(e), C.byref(o), collect, None)
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", dest="shared_object", default=os.path.join(bench.ROOT, "build/lib/libhankel.so"))
    parser.add_argument("--only", default=",".join(LAYERS))
    parser.add_argument("--tiles", action="store_true")
    parser.add_argument("--out")
    a = parser.parse_args()
    lib = C.CDLL(a.shared_object)
    lib.hk_plan_destroy.argtypes = [C.c_void_p]
    torch.backends.cudnn.benchmark, torch.backends.cudnn.benchmark_limit = True, 0
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    commit = subprocess.run(["git", "-C", bench.ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    lines = [f"# command: bench/gpu/strict.py {' '.join(sys.argv[1:])}",
             f"# gpu: {torch.cuda.get_device_name()}; cuDNN {torch.backends.cudnn.version()}, PyTorch {torch.__version__}, every plan",
             f"# commit: {commit or os.environ.get('HANKEL_COMMIT', 'unknown')}; {time.strftime('%Y-%m-%dT%H:%MZ', time.gmtime())}",
             "layer\tlayout\tus\tTFLOP/s\tdirect_us\tcudnn_us\tspeedup\tdecision"]
    print("\n".join(lines), flush=True)
    for name in a.only.split(","):
        for layout in ("last", "first"):
            case = bench.Case(LAYERS[name], torch.float32)
            text = bench.text_of(LAYERS[name], "f32", layout, "f32")
            if a.tiles:
                for decision, guess in decisions(lib, text):
                    plan, side, y = case.hankel(lib, "f32", layout, 0, decision=decision)
                    us = bench.contest({"one": side}, 3)["one"]
                    print(f"{name}\t{layout}\t{us:.1f}\tguess {guess:.1f}\t{decision.decode()}", flush=True)
                    plan.close()
                continue
            plan, side, y = case.hankel(lib, "f32", layout, 0)
            direct, beside, z = case.hankel(lib, "f32", layout, 0, decision=b"cuda_direct")
            t = bench.contest({"hankel": side, "direct": beside, "cudnn": case.torch_side(layout)}, 5)
            lines.append(f"{name}\t{layout}\t{t['hankel']:.1f}\t{case.flops / t['hankel'] / 1e6:.1f}\t{t['direct']:.1f}\t{t['cudnn']:.1f}\t"
                         f"{t['cudnn'] / t['hankel']:.2f}\t{plan.decision}")
            print(lines[-1], flush=True)
            plan.close()
            direct.close()
            del case, side, beside
    if a.out:
        open(a.out, "w").write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
