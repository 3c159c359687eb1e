#!/usr/bin/env python3
"""What a warm call from Python costs beyond its arithmetic: small problems on numpy arrays, and PyTorch's functions where
torch is installed. usage: python_call.py [--rounds N]   Prints a table of this thread's own time, the fastest of many
rounds."""
import argparse
import time

import numpy as np

import libhankel as hk


def best(call, rounds, count=200):
    least = 1.0
    for _ in range(rounds):
        start = time.thread_time()
        for _ in range(count): call()
        least = min(least, (time.thread_time() - start) / count)
    return 1e6 * least


def hankel_rows():
    x, f, bias = np.ones((1, 4, 16), "f4"), np.ones((4, 4, 3), "f4"), np.ones(4, "f4")
    image, window = np.ones((1, 4, 6, 6), "f4"), np.ones((4, 4, 3, 3), "f4")
    plan, out = hk.plan(x, f), np.empty((1, 4, 14), "f4")
    yield "plan(x)", lambda: plan(x)
    yield "plan(x, out=y)", lambda: plan(x, out=out)
    yield "conv1d(x, f)", lambda: hk.conv1d(x, f)
    yield "conv1d(x, f, bias, act='relu')", lambda: hk.conv1d(x, f, bias, act="relu")
    yield "conv2d(x, f, bias, padding=1)", lambda: hk.conv2d(image, window, bias, padding=1)
    yield "conv1d, bias as a list", lambda: hk.conv1d(x, f, [1, 1, 1, 1])  # looked at each time


def torch_rows():
    try:
        import torch
    except ImportError:
        return
    torch.set_num_threads(1)
    x, f, bias = torch.ones(1, 4, 16), torch.ones(4, 4, 3), torch.ones(4)
    image, window = torch.ones(1, 4, 6, 6), torch.ones(4, 4, 3, 3)
    name, functions = f"PyTorch {torch.__version__}: ", torch.nn.functional

    def quiet(call):
        def run():
            with torch.inference_mode(): call()
        return run
    yield name + "conv1d", quiet(lambda: functions.conv1d(x, f))
    yield name + "conv1d and relu", quiet(lambda: functions.relu(functions.conv1d(x, f, bias)))
    yield name + "conv2d", quiet(lambda: functions.conv2d(image, window, bias, padding=1))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=60)
    rounds = parser.parse_args().rounds
    print("| call | us |\n|---|---|")
    for name, call in [*hankel_rows(), *torch_rows()]:
        call()
        print(f"| {name} | {best(call, rounds):.2f} |")


if __name__ == "__main__":
    main()
