#!/usr/bin/env python3
"""hankel and PyTorch (oneDNN) side by side on the CPU, one thread, f32, on the shapes of bench/shapes/cpu.tsv.

Random normal data, no bias, weights known beforehand. hankel: a plan made once, y given. PyTorch: conv2d, and oneDNN's
convolution with weights reordered beforehand where this PyTorch has it; the faster counts. All contenders of a shape
alternate in rounds, each warmed by a call of its own; medians. Results must agree. The FMA peak is measured in each
process. A call of PyTorch from Python costs about 3 us of its own, one of hankel 0.5 us: shapes under 30 us are marked *.

--jobs runs shapes in that many processes, each pinned to a physical core of its own. Further libraries (--library again)
are timed beside the first, which is the one that is compared with PyTorch; FILE@measure plans by measuring.

usage: torch_cpu.py [--library FILE].. [--layout last,first] [--only PREFIX,..] [--seconds S] [--rounds N] [--jobs N]
                    [--math fast_algorithms] [--isa NAME] [--own-time] [--csv FILE]
"""
import argparse
import collections
import csv
import ctypes as C
import math
import multiprocessing
import os
import statistics
import sys
import time
from pathlib import Path

os.environ.setdefault("ONEDNN_DEFAULT_FPMATH_MODE", "STRICT")  # no bf16, no AMX
for name in ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_"):  # PyTorch's results reuse memory that is mapped already
    os.environ.setdefault(name, str(1 << 30))
ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python"))
FAMILIES = "stem,r50x1,r50x3,mbpw,unet,vgg,aspp,odd1,odd3"
Shape = collections.namedtuple("Shape", "name n c h w k r s stride pad dil groups")

def read_shapes(only):
    rows = []
    for line in (ROOT / "bench/shapes/cpu.tsv").read_text().splitlines():
        name, *sizes = line.split("\t")
        if not name.startswith("#") and any(name.startswith(p) for p in only):
            rows.append(Shape(name, *map(int, sizes)))
    return rows

def out_size(s, size, window):
    return (size + 2 * s.pad - s.dil * (window - 1) - 1) // s.stride + 1

def flops_of(s):
    return 2.0 * s.n * s.k * out_size(s, s.h, s.r) * out_size(s, s.w, s.s) * (s.c // s.groups) * s.r * s.s

def problem_text(s, layout):
    parts = [f"2d_n{s.n}_c{s.c}_i{s.h}x{s.w}_k{s.k}_w{s.r}x{s.s}"]
    parts += [f"{letter}{value}" for letter, value, usual in
              (("s", s.stride, 1), ("p", s.pad, 0), ("d", s.dil, 1), ("g", s.groups, 1)) if value != usual]
    return "_".join(parts + ["f32", layout])

class Hankel:
    """A plan of one library, ready to run on fixed memory."""

    def __init__(self, path, options, text, x, f, y):
        from libhankel import _abi as abi
        path, _, rigor = path.partition("@")
        self.lib = C.CDLL(path)
        for name, (result, arguments) in abi.PROTOTYPES.items():
            function = getattr(self.lib, name)
            function.restype, function.argtypes = C.c_int if result is None else result, arguments
        self.lib.hk_measure_peak.restype, self.lib.hk_measure_peak.argtypes = C.c_double, [C.c_int, C.c_int]
        raw, opts = abi.RawProblem(), abi.Options()
        self.check(self.lib.hk_problem_parse(raw, text.encode()))
        opts.threads, opts.isa = 1, abi.ISA[options.isa]
        opts.math, opts.rigor, opts.time_limit_s = abi.MATH[options.math], abi.RIGOR[rigor or "estimate"], 0.4
        self.handle = C.c_void_p()
        self.check(self.lib.hk_plan_create(C.byref(self.handle), raw, None, opts, abi.Weights(f=f.data_ptr())))
        size = self.lib.hk_plan_workspace(self.handle)
        self.room = C.create_string_buffer(size + 64)
        at = -C.addressof(self.room) % 64 + C.addressof(self.room)
        self.args = abi.Args(x=x.data_ptr(), y=y.data_ptr(), workspace=at if size else None, workspace_bytes=size)
        self.keep = (x, f, y)
        text = C.create_string_buffer(256)
        self.check(self.lib.hk_plan_decision(self.handle, text, 256, C.byref(C.c_size_t())))
        self.decision = text.value.decode()
        self.execute, self.reference = self.lib.hk_plan_execute, C.byref(self.args)

    def check(self, status):
        if status:
            raise RuntimeError(self.lib.hk_last_error().decode())

    def __call__(self):
        self.execute(self.handle, self.reference)

def peers(torch, s, x, f):
    """name -> function without arguments that returns y"""
    pad, stride, dil = [s.pad] * 2, [s.stride] * 2, [s.dil] * 2
    found = {"conv2d": lambda: torch.conv2d(x, f, None, stride, pad, dil, s.groups)}
    try:
        packed = torch._C._nn.mkldnn_reorder_conv2d_weight(f.to_mkldnn(), pad, stride, dil, s.groups, list(x.shape))
        run = torch.ops.mkldnn._convolution_pointwise
        found["onednn"] = lambda: run(x, packed, None, pad, stride, dil, s.groups, "none", [], "")
        found["onednn"]()
    except (AttributeError, RuntimeError, TypeError) as error:
        found.pop("onednn", None)
        print(f"# no reordered weights: {str(error).splitlines()[0]}", file=sys.stderr)
    return found

def timed(run, calls, clock):
    run()
    start = clock()
    for _ in range(calls):
        run()
    return (clock() - start) / calls

def rounds_of(contenders, options):
    """name -> median seconds"""
    clock = time.thread_time if options.own_time else time.perf_counter
    share = options.seconds / options.rounds / len(contenders)
    calls = {name: max(1, int(share / max(timed(run, 1, clock), 1e-7))) for name, run in contenders.items()}
    taken = collections.defaultdict(list)
    names = list(contenders)
    for turn in range(options.rounds):
        for i in range(len(names)):
            name = names[(i + turn) % len(names)]
            taken[name].append(timed(contenders[name], calls[name], clock))
    return {name: statistics.median(times) for name, times in taken.items()}

def bench(options, s, layout):
    import torch
    generator = torch.Generator().manual_seed(hash(s) & 0xffff)
    form = torch.channels_last if layout == "last" else torch.contiguous_format
    place = lambda *size: torch.randn(size, generator=generator).contiguous(memory_format=form)  # noqa: E731
    x, f = place(s.n, s.c, s.h, s.w), place(s.k, s.c // s.groups, s.r, s.s)

    contenders, plans = peers(torch, s, x, f), []
    for i, path in enumerate(options.libraries):
        y = torch.full((s.n, s.k, out_size(s, s.h, s.r), out_size(s, s.w, s.s)), math.nan).contiguous(memory_format=form)
        plans.append(Hankel(path, options, problem_text(s, layout), x, f, y))
        contenders[f"hankel{i or ''}"] = plans[-1]
        plans[-1]()
        for name, run in contenders.items():
            if not name.startswith("hankel"):
                apart = float((run() - y).norm() / y.norm())
                if not apart < (1e-3 if options.math != "strict" else 2e-6 * math.sqrt(s.c * s.r * s.s / s.groups)):
                    raise RuntimeError(f"{s.name} {layout}: hankel and {name} differ by {apart:.1e}")
    times = rounds_of(contenders, options)
    peak = plans[0].lib.hk_measure_peak(0, 0)
    torch_name = min((n for n in times if not n.startswith("hankel")), key=times.get)
    row = {"name": s.name, "layout": layout, "peak": peak, "torch": torch_name, "torch_us": times[torch_name] * 1e6}
    for i in range(len(plans)):
        row[f"us{i}"] = times[f"hankel{i or ''}"] * 1e6
        row[f"decision{i}"] = plans[i].decision
    row["pct"] = 100 * flops_of(s) / times["hankel"] / peak
    row["torch_pct"] = 100 * flops_of(s) / times[torch_name] / peak
    row["ratio"] = times[torch_name] / times["hankel"]
    return row

def physical_cores():
    cores = {}
    for cpu in sorted(os.sched_getaffinity(0)):
        path = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        cores.setdefault(path.read_text() if path.exists() else cpu, cpu)
    return list(cores.values())

def work(options, core, tasks, results):
    os.sched_setaffinity(0, {core})
    import torch
    torch.set_num_threads(1)
    with torch.no_grad():
        while True:
            task = tasks.get()
            if task is None:
                return
            try:
                results.put(bench(options, *task))
            except Exception as error:  # the parent prints it and fails
                results.put({"failed": f"{task[0].name} {task[1]}: {error!r}"})

def run_all(options, shapes):
    spawn = multiprocessing.get_context("spawn")
    tasks, results = spawn.Queue(), spawn.Queue()
    todo = [(s, layout) for layout in options.layout.split(",") for s in shapes]
    for task in sorted(todo, key=lambda t: -flops_of(t[0])):
        tasks.put(task)
    for _ in range(options.jobs):
        tasks.put(None)
    cores = physical_cores()
    crew = [spawn.Process(target=work, args=(options, cores[i % len(cores)], tasks, results), daemon=True)
            for i in range(options.jobs)]
    for process in crew:
        process.start()
    rows = {}
    for _ in todo:
        row = results.get(timeout=300)
        if "failed" in row:
            sys.exit(row["failed"])
        rows[row["name"], row["layout"]] = row
    for process in crew:
        process.join()
    return [rows[s.name, layout] for s, layout in todo]

def geomean(values):
    return math.exp(sum(map(math.log, values)) / len(values))

def print_tables(rows, options):
    others = range(1, len(options.libraries))
    print("| shape | layout | hankel us | % of peak | PyTorch us | % | by | ratio |" + "".join(f" lib {i} |" for i in others) + " decision |")
    print("|---" * (9 + len(others)) + "|")
    for r in rows:
        mark = "*" if r["us0"] < 30 else ""
        more = "".join(f" {r['us0'] / r[f'us{i}']:.2f} |" for i in others)
        print(f"| {r['name']}{mark} | {r['layout']} | {r['us0']:.1f} | {r['pct']:.0f} | {r['torch_us']:.1f} | {r['torch_pct']:.0f} "
              f"| {r['torch']} | {r['ratio']:.2f} |{more} {r['decision0']} |")
    groups = collections.defaultdict(list)
    for r in rows:
        groups[r["layout"], r["name"].split("_")[0]].append(r)
    print("\n| layout | family | shapes | hankel % of peak | PyTorch % | ratio | worst |" + "".join(f" lib {i} |" for i in others))
    print("|---" * (7 + len(others)) + "|")
    for (layout, family), members in groups.items():
        worst = min(members, key=lambda r: r["ratio"])
        mean = lambda key: geomean([r[key] for r in members])  # noqa: E731
        more = "".join(f" {geomean([r['us0'] / r[f'us{i}'] for r in members]):.2f} |" for i in others)
        print(f"| {layout} | {family} | {len(members)} | {mean('pct'):.0f} | {mean('torch_pct'):.0f} | {mean('ratio'):.2f} "
              f"| {worst['ratio']:.2f} {worst['name']} |{more}")

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", dest="libraries", action="append")
    parser.add_argument("--layout", default="last,first")
    parser.add_argument("--only", default=FAMILIES)
    parser.add_argument("--seconds", type=float, default=0.05)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--math", default="strict")
    parser.add_argument("--isa")
    parser.add_argument("--own-time", action="store_true")
    parser.add_argument("--csv")
    options = parser.parse_args()
    options.libraries = [str(Path(p).absolute()) for p in options.libraries or [ROOT / "build/lib/libhankel.so"]]
    os.environ.setdefault("LIBHANKEL", options.libraries[0].partition("@")[0])  # the package of the workers loads one too
    import torch
    rows = run_all(options, read_shapes([p + "_" if p in FAMILIES.split(",") else p for p in options.only.split(",")]))
    cpu = next((line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")), "?")
    peaks = [r["peak"] / 1e9 for r in rows]
    print(f"{cpu}; PyTorch {torch.__version__}, {torch.backends.cpu.get_cpu_capability() if hasattr(torch.backends, 'cpu') else ''}; "
          f"FMA peak {statistics.median(peaks):.1f} GFLOP/s ({min(peaks):.1f} to {max(peaks):.1f}); {options.jobs} processes\n")
    print_tables(rows, options)
    if options.csv:
        with open(options.csv, "w", newline="") as file:
            writer = csv.DictWriter(file, rows[0].keys())
            writer.writeheader()
            writer.writerows(rows)

if __name__ == "__main__":
    main()
