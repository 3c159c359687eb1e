"""Line coverage of src/plan and src/cpu from a build with --coverage: a table per file, the total, what is not reached.

A line of a template counts once, and as reached when any instantiation reached it. Files that this machine cannot run
(the host side of CUDA plans, kernels of other architectures) are named and left out.
usage: coverage.py BUILD OUT
"""
import json
import os
import re
import subprocess
import sys

ROOM = re.compile(r"src/(plan|cpu)/")
DEVICE = re.compile(r"src/plan/gpu/|src/plan/rewrite/cuda_")


def gcov(build, notes):
    done = subprocess.run(["gcov", "--json-format", "--stdout", notes], cwd=build, capture_output=True, text=True)
    for line in done.stdout.splitlines():
        if line.startswith("{"):
            yield json.loads(line)


def collect(build, root):
    """Counts per file and line, and the sources of this build."""
    lines, built = {}, set()
    for folder, _, names in os.walk(os.path.join(build, "CMakeFiles", "hk_objects.dir")):
        for name in names:
            if not name.endswith(".gcno"):
                continue
            built.add(name[: -len(".gcno")].removesuffix(".c"))
            for report in gcov(folder, name):
                for entry in report["files"]:
                    path = os.path.relpath(os.path.join(report["current_working_directory"], entry["file"]), root)
                    if not ROOM.match(path):
                        continue
                    table = lines.setdefault(path, {})
                    for line in entry["lines"]:
                        number = line["line_number"]
                        table[number] = table.get(number, 0) + line["count"]
    return lines, built


def ranges(numbers):
    out, start, last = [], None, None
    for n in sorted(numbers):
        if last is not None and n == last + 1:
            last = n
            continue
        if start is not None:
            out.append((start, last))
        start = last = n
    if start is not None:
        out.append((start, last))
    return out


def main():
    build, out = (os.path.abspath(p) for p in sys.argv[1:3])
    root = os.getcwd()
    lines, built = collect(build, root)
    left_out = sorted(p for p in lines if DEVICE.match(p))
    sources = subprocess.run(["git", "ls-files", "src/cpu", "src/plan"], capture_output=True, text=True).stdout.split()
    foreign = sorted(p for p in sources if p.endswith(".c") and os.path.basename(p)[:-2] not in built)
    total = reached = 0
    with open(os.path.join(out, "lines.txt"), "w") as table, open(os.path.join(out, "unreached.txt"), "w") as rest:
        for path in sorted(p for p in lines if p not in left_out):
            counts = lines[path]
            hit = sum(1 for c in counts.values() if c)
            total += len(counts)
            reached += hit
            table.write(f"{100 * hit / max(1, len(counts)):6.2f} % {hit:5d} of {len(counts):5d}  {path}\n")
            with open(path) as source:
                text = source.read().splitlines()
            for first, last in ranges(n for n, c in counts.items() if not c):
                for n in range(first, last + 1):
                    rest.write(f"{path}:{n}: {text[n - 1]}\n")
        table.write(f"{100 * reached / max(1, total):6.2f} % {reached:5d} of {total:5d}  total\n")
    with open(os.path.join(out, "lines.txt")) as table:
        print(table.read(), end="")
    print("left out, for CUDA:", " ".join(left_out) or "none")
    print("left out, not of this build:", " ".join(foreign) or "none")
    print(f"lines not reached: {os.path.relpath(out, root)}/unreached.txt")


if __name__ == "__main__":
    main()
