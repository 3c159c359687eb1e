#!/usr/bin/env python3
"""Every distinct convolution of many networks at several batch sizes: hankel and cuDNN side by side, bf16, channels-last.

The layers of torchvision's networks are collected by running them on the meta device; those of a diffusion UNet and VAE, of a
detection head and of audio networks are written out below. Data stay in L2 as they do inside a network (--memory rotates
inputs over three times the L2). Each side is one CUDA graph; replays alternate; the median of five. cuDNN runs through
PyTorch with cudnn.benchmark (--every: with every plan).

usage: layers.py [--library build/lib/libhankel.so] [--batch 1,4,16,64] [--net NAME,..] [--seconds N] [--out FILE] [--memory] [--every]
"""
import argparse
import collections
import ctypes as C
import math
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import bench  # noqa: E402
import torch  # noqa: E402

NETS = ("resnet50", "resnext50_32x4d", "vgg16", "convnext_tiny", "mobilenet_v2", "efficientnet_b0", "efficientnet_v2_s",
        "regnet_y_400mf", "regnet_x_800mf", "shufflenet_v2_x1_0", "googlenet", "densenet121", "inception_v3")
# name: (c, h, w, k, r, s, stride, pad_h, pad_w, dilation, groups)
WRITTEN = {
    "retinanet_head": [(256, s, s, k, 3, 3, 1, 1, 1, 1, 1) for s in (100, 50, 25, 13, 7) for k in (256, 36, 720)],
    "sd_unet": [(4, 64, 64, 320, 3, 3, 1, 1, 1, 1, 1), (320, 64, 64, 320, 3, 3, 2, 1, 1, 1, 1),
                (320, 64, 64, 4, 3, 3, 1, 1, 1, 1, 1)] +
               [(c, s, s, k, 3, 3, 1, 1, 1, 1, 1) for c, k, s in
                ((320, 320, 64), (960, 320, 64), (640, 320, 64), (320, 640, 32), (640, 640, 32), (1920, 640, 32),
                 (1280, 640, 32), (960, 640, 32), (640, 1280, 16), (1280, 1280, 16), (2560, 1280, 16), (1280, 1280, 8),
                 (2560, 1280, 8))] +
               [(c, s, s, k, 1, 1, 1, 0, 0, 1, 1) for c, k, s in ((320, 320, 64), (960, 320, 64), (640, 640, 32), (1280, 1280, 16))],
    "sd_vae": [(4, 64, 64, 512, 3, 3, 1, 1, 1, 1, 1), (512, 64, 64, 512, 3, 3, 1, 1, 1, 1, 1), (512, 128, 128, 512, 3, 3, 1, 1, 1, 1, 1),
               (512, 256, 256, 256, 3, 3, 1, 1, 1, 1, 1), (256, 256, 256, 256, 3, 3, 1, 1, 1, 1, 1),
               (256, 512, 512, 128, 3, 3, 1, 1, 1, 1, 1), (128, 512, 512, 128, 3, 3, 1, 1, 1, 1, 1), (128, 512, 512, 3, 3, 3, 1, 1, 1, 1, 1)],
    "whisper": [(80, 1, 3000, 384, 1, 3, 1, 0, 1, 1, 1), (384, 1, 3000, 384, 1, 3, 2, 0, 1, 1, 1),
                (128, 1, 3000, 1280, 1, 3, 1, 0, 1, 1, 1), (1280, 1, 3000, 1280, 1, 3, 2, 0, 1, 1, 1)],
    "hifigan": [(80, 1, 256, 512, 1, 7, 1, 0, 3, 1, 1), (32, 1, 65536, 1, 1, 7, 1, 0, 3, 1, 1)] +
               [(c, 1, w, c, 1, k, 1, 0, (k - 1) // 2 * d, d, 1) for c, w in ((256, 2048), (128, 16384), (64, 32768), (32, 65536))
                for k in (3, 7, 11) for d in (1, 5)],
}


def layers_of(name):
    """The distinct convolutions of a network as tuples like those of WRITTEN, with their counts."""
    if name in WRITTEN:
        return collections.Counter(WRITTEN[name])
    import torchvision
    found = collections.Counter()
    extra = {"aux_logits": True, "init_weights": False} if name in ("googlenet", "inception_v3") else {}
    net = getattr(torchvision.models, name)(weights=None, **extra).eval().to("meta")

    def note(m, args):
        _, c, h, w = args[0].shape
        found[(c, h, w, m.out_channels, *m.kernel_size, m.stride[0], *m.padding, m.dilation[0], m.groups)] += 1
    for m in net.modules():
        if isinstance(m, torch.nn.Conv2d):
            m.register_forward_pre_hook(note)
    side = 299 if name == "inception_v3" else 224
    net(torch.empty(1, 3, side, side, device="meta"))
    return found


def text_of(n, v):
    c, h, w, k, r, s, stride, ph, pw, dil, groups = v
    return f"2d_n{n}_c{c}_i{h}x{w}_k{k}_w{r}x{s}_s{stride if h > 1 else 1}x{stride}_p{ph}x{pw}_d{dil}_g{groups}_bf16_last"


class Layer:
    def __init__(self, n, v, memory):
        c, h, w, k, r, s, stride, ph, pw, dil, groups = v
        self.stride, self.pad, self.dil, self.groups = ((stride if h > 1 else 1), stride), (ph, pw), (dil if h > 1 else 1, dil), groups
        p = (h + 2 * ph - self.dil[0] * (r - 1) - 1) // self.stride[0] + 1
        q = (w + 2 * pw - dil * (s - 1) - 1) // stride + 1
        self.bytes = 2 * (n * c * h * w + n * k * p * q + k * c // groups * r * s)
        self.flops = 2.0 * n * k * p * q * c // groups * r * s
        sets = max(2, min(24, int(2.0e8 // self.bytes) + 1)) if memory else 1
        self.x = [torch.randn(n, c, h, w, device="cuda").bfloat16().contiguous(memory_format=torch.channels_last) for _ in range(sets)]
        self.f = (torch.randn(k, c // groups, r, s, device="cuda") / (c // groups * r * s) ** 0.5).bfloat16()
        self.y = [torch.empty(n, k, p, q, device="cuda", dtype=torch.bfloat16, memory_format=torch.channels_last) for _ in range(sets)]
        self.sets, self.n, self.v = sets, n, v

    def hankel(self, lib):
        plan = bench.Hankel(lib, text_of(self.n, self.v), "none", self.f.permute(0, 2, 3, 1).contiguous(), None, 0)
        return plan, bench.graph(lambda i: plan(self.x[i], self.y[i]), self.sets, 0)

    def cudnn(self):
        f, out = self.f.contiguous(memory_format=torch.channels_last), [None]

        def run(i):
            out[0] = torch.nn.functional.conv2d(self.x[i], f, None, self.stride, self.pad, self.dil, self.groups)
        return bench.graph(run, self.sets, 0), out


def wrong(layer, lib):
    """Relative error of hankel against cuDNN on the first input, in the norm."""
    plan, side = layer.hankel(lib)
    plan(layer.x[0], layer.y[0])
    f = layer.f.float()
    want = torch.nn.functional.conv2d(layer.x[0].float(), f, None, layer.stride, layer.pad, layer.dil, layer.groups)
    error = ((layer.y[0].float() - want).norm() / want.norm()).item()
    return plan, side, error


def summary(rows):
    ratios = [r[0] for r in rows]
    if not ratios:
        return "no layers"
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    return (f"{len(ratios)} layers, geometric mean {mean:.3f}, least {min(ratios):.3f}, "
            f"under 0.9: {sum(r < 0.9 for r in ratios)}, under 0.7: {sum(r < 0.7 for r in ratios)}, under 0.5: {sum(r < 0.5 for r in ratios)}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", dest="shared_object", default=os.path.join(bench.ROOT, "build/lib/libhankel.so"))
    parser.add_argument("--batch", default="1,4,16,64")
    parser.add_argument("--net", default=",".join(NETS + tuple(WRITTEN)))
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after so many")
    parser.add_argument("--out")
    parser.add_argument("--memory", action="store_true", help="inputs from memory, not from L2")
    parser.add_argument("--every", action="store_true", help="cuDNN with every plan, not the ten that its heuristics rank first")
    a = parser.parse_args()
    lib = C.CDLL(a.shared_object)
    lib.hk_plan_destroy.argtypes = [C.c_void_p]
    torch.backends.cudnn.benchmark, torch.backends.cudnn.benchmark_limit = True, 0 if a.every else 10
    commit = subprocess.run(["git", "-C", bench.ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    lines = [f"# command: bench/gpu/layers.py {' '.join(sys.argv[1:])}",
             f"# gpu: {torch.cuda.get_device_name()}; cuDNN {torch.backends.cudnn.version()}, PyTorch {torch.__version__}",
             f"# commit: {commit or os.environ.get('HANKEL_COMMIT', 'unknown')}; {time.strftime('%Y-%m-%dT%H:%MZ', time.gmtime())}",
             "batch\tratio\tus\tcudnn_us\terror\tnetworks\tproblem\tdecision"]
    found = collections.defaultdict(list)
    for name in a.net.split(","):
        for v in layers_of(name):
            found[v].append(name)
    until = time.time() + a.seconds
    for n in map(int, a.batch.split(",")):
        rows = []
        for v, nets in found.items():
            if time.time() > until:
                break
            if n * v[0] * v[1] * v[2] > 1 << 29:
                continue
            try:
                layer = Layer(n, v, a.memory)
                plan, side, error = wrong(layer, lib)
                peer, keep = layer.cudnn()
                t = bench.contest({"hankel": side, "cudnn": peer}, 5)
                rows.append((t["cudnn"] / t["hankel"], t["hankel"], t["cudnn"], error, ",".join(nets), text_of(n, v), plan.decision))
                plan.close()
            except RuntimeError as e:
                lines.append(f"# {n} {text_of(n, v)}: {str(e)[:200]}")
                print(lines[-1], flush=True)
        for r in sorted(rows):
            lines.append(f"{n}\t{r[0]:.3f}\t{r[1]:.2f}\t{r[2]:.2f}\t{r[3]:.1e}\t" + "\t".join(r[4:]))
        lines.append(f"# batch {n}: {summary(rows)}")
        print("\n".join(lines[-1 - min(len(rows), 60):]), flush=True)
    if a.out:
        open(a.out, "w").write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
