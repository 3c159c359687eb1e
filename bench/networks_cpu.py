#!/usr/bin/env python3
"""Whole networks on the CPU: libhankel.torch.optimize(), alone and compiled by torch.compile, beside PyTorch eager with
folded batch norms and torch.compile with freezing. Weights are random; torchvision is needed. usage: networks_cpu.py [--nets A,B] [--batch N] [--threads N]
[--dtype f32|bf16] [--train] [--no-compile]   Prints a table: milliseconds per call, the median of rounds in which the sides
take turns, and the error of ours against eager in f64."""
import argparse
import copy
import statistics
import time

import torch
import torchvision

import libhankel.torch as ht

NETS = ("resnet50", "resnext50_32x4d", "mobilenet_v2", "efficientnet_b0", "convnext_tiny", "vgg16", "shufflenet_v2_x1_0",
        "regnet_y_400mf", "googlenet")


def network(name):
    """A network in eval mode whose batch norms have something to fold."""
    torch.manual_seed(0)
    words = {"aux_logits": False, "init_weights": True} if name == "googlenet" else {}
    net = getattr(torchvision.models, name)(**words)
    for module in net.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.5, 1.5)
    return net.eval()


def sides(net, x, compiled):
    """{name: function of x}. Each starts from the same weights, channels last."""
    from torch.fx.experimental.optimization import fuse
    last = copy.deepcopy(net).to(memory_format=torch.channels_last)
    try:
        folded = fuse(last).to(memory_format=torch.channels_last)
    except Exception:  # a network that cannot be traced runs as it is
        folded = last
    found = {"eager": folded, "hankel": ht.optimize(last, x, measure=True, verbose=False)}
    if compiled:
        import torch._inductor.config as config
        config.freezing = True
        found["compile"] = torch.compile(copy.deepcopy(last))
        found["both"] = torch.compile(ht.optimize(last, verbose=False))
    return found


def times(found, x, rounds):
    """Milliseconds of each side: the median of rounds."""
    taken = {name: [] for name in found}
    for _ in range(rounds):
        for name, run in found.items():
            start = time.perf_counter()
            run(x)
            taken[name].append(1e3 * (time.perf_counter() - start))
    return {name: statistics.median(all_) for name, all_ in taken.items()}


def trained(name, x, rounds):
    """Milliseconds of a training step (forward, backward): eager beside libhankel.torch's modules."""
    plain = network(name).to(memory_format=torch.channels_last).train()
    ours = copy.deepcopy(plain)
    for path, module in list(ours.named_modules()):
        if type(module) is torch.nn.Conv2d:
            swapped = ht.Conv2d(module.in_channels, module.out_channels, module.kernel_size, module.stride,
                                module.padding, module.dilation, module.groups, module.bias is not None)
            swapped.load_state_dict(module.state_dict())
            parent, _, leaf = path.rpartition(".")
            setattr(ours.get_submodule(parent), leaf, swapped.to(memory_format=torch.channels_last))

    def step(net):
        def run(x):
            net.zero_grad()
            net(x).square().mean().backward()
        return run
    runs = {"eager": step(plain), "hankel": step(ours)}
    for run in runs.values():
        run(x)
    return times(runs, x, rounds)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nets", default=",".join(NETS))
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--dtype", default="f32", choices=("f32", "bf16"))
    parser.add_argument("--train", action="store_true")
    parser.add_argument("--no-compile", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    dtype = torch.float32 if args.dtype == "f32" else torch.bfloat16
    print(f"PyTorch {torch.__version__}, {torch.backends.cpu.get_cpu_capability()}, {args.threads} thread(s), batch "
          f"{args.batch}, {args.dtype}" + (", training step" if args.train else ""))
    print("| network | eager ms | compile ms | hankel ms | compiled hankel ms | ratio of the best | error |\n"
          "|---|---|---|---|---|---|---|")
    ratios = []
    for name in args.nets.split(","):
        torch.manual_seed(1)
        x = torch.randn(args.batch, 3, 224, 224).contiguous(memory_format=torch.channels_last)
        error = ""
        if args.train:
            took = trained(name, x, args.rounds)
        else:
            net = network(name)
            with torch.no_grad():
                found = sides(net.to(dtype), x.to(dtype), not args.no_compile)
                want = copy.deepcopy(net).double()(x.to(dtype).double())
                error = f"{((found['hankel'](x.to(dtype)).double() - want).norm() / want.norm()).item():.1e}"
                for run in found.values():
                    run(x.to(dtype))
                took = times(found, x.to(dtype), args.rounds)
        ours = [value for side, value in took.items() if side in ("hankel", "both")]
        ratio = min(value for value in took.values() if value not in ours) / min(ours)
        ratios.append(ratio)
        cells = [f"{took[side]:.1f}" if side in took else "" for side in ("eager", "compile", "hankel", "both")]
        print(f"| {name} | {' | '.join(cells)} | {ratio:.2f} | {error} |", flush=True)
    print(f"\n{len(ratios)} networks: geometric mean {statistics.geometric_mean(ratios):.2f}, least {min(ratios):.2f}")


if __name__ == "__main__":
    main()
