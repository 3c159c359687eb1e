#!/usr/bin/env python3
"""Counts what docs/design.md asks of the tree. usage: scripts/house.py [--list ROW] [TREE...]   (a column per tree; ROW: words, functions,
parameters, duplicates, literals, columns). Trees of any release work: nothing is compiled. `--check [TREE]` prints what exceeds LIMITS and
fails then: a change may lower a count, and then lowers the limit.

Scope: tracked .c .h .cu .cuh .inc files of include, src, cli, apps, tests (but tests/abi, which keeps old headers), bench, examples; words also
  in .md, .1 and .py files.
function: braces at file scope after a parameter list, from the line of its name to its closing brace; templates are *.tmpl.h and *.cuh.
parameter: not the compile-time constants (`const int`, `const bool` by value) of a kernel's INLINE, HK_INLINE or HK_DEV function:
  they are to these templates what template parameters are to C++; and not those of functions that stay as a release had them (HK_API functions declared in a .c file).
literal: a number other than 0, 1, 2 in cost code, which is every file cost*.* or below src/cost except machines/, and every function of
  src/plan, src/cuda and src/tune whose name holds predict, cost, cycles, clocks, seconds or throughput; elsewhere there the statements
  that assign predicted_s or seconds.
product row: an HK_ALGO row that joins a rewrite (relay, widen, gate, state, phase, finish) and an algorithm, or is wgmma_relaid.
duplicate: at least 8 lines of code in a row (blank lines, comments, lone punctuation and the `.run = run,` of tables of functions left
  out) that stand elsewhere too; text in quotes counts, so that rows of a table differ; the numbers of machines are data and left out.
word: a match of scripts/dialect.tsv; in documents outside of `code`; bench/results, records of their time, is left out."""
import os
import re
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDERS = ("include/", "src/", "cli/", "apps/", "tests/", "bench/", "examples/")
CODE = (".c", ".h", ".cu", ".cuh", ".inc")
PRODUCT = re.compile(r"(relay|widen|gate|state|phase|finish|transpose|convert)_\w+|wgmma_relaid")
COST_NAME = re.compile(r"predict|cost|cycles|clocks|seconds|throughput")
COST_STATEMENT = re.compile(r"(?:predicted_s|(?:->|\.)seconds) [-+*/]?= [^;]*;")
NUMBER = re.compile(r"(?<![\w.])(\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+)[fFuUlL]*(?![\w.])")
LIMITS = {"functions": 1, "parameters": 41, "duplicates": 2}
ATTRIBUTES = ("__attribute__", "__launch_bounds__", "_Alignas", "__align__", "__declspec", "if", "while", "for", "switch")


def tracked(tree):
    out = subprocess.run(["git", "-C", tree, "ls-files"], capture_output=True, text=True, check=True).stdout
    return [f for f in out.splitlines() if os.path.isfile(os.path.join(tree, f))]


def read(tree, name):
    with open(os.path.join(tree, name), encoding="utf-8", errors="replace") as f:
        return f.read()


def blank(match):
    return re.sub(r"[^\n]", " ", match.group())


def bare(text, strings=False):
    """The text with comments, strings (unless kept), macros and all but the first branch of a condition blanked; lines keep their numbers."""
    text = re.sub(r'/\*.*?\*/|//[^\n]*|"(\\.|[^"\\\n])*"|\'(\\.|[^\'\\\n])*\'',
                  lambda m: m.group() if strings and m.group()[0] in "\"'" else blank(m), text, flags=re.S)
    out, skip, macro = [], [], False
    for line in text.split("\n"):
        word = re.match(r"\s*#\s*(\w+)", line)
        if word and not macro:
            if word[1] in ("if", "ifdef", "ifndef"): skip.append(False)
            elif word[1] in ("else", "elif") and skip: skip[-1] = True
            elif word[1] == "endif" and skip: skip.pop()
        hidden = macro or word or any(skip)
        macro = (macro or bool(word)) and line.endswith("\\")
        out.append("" if hidden else line)
    return "\n".join(out)


def groups(head):
    """(name, arguments) of the parenthesised groups of a declaration."""
    found, i = [], 0
    while (i := head.find("(", i)) >= 0:
        depth, j = 0, i
        while j < len(head):
            depth += (head[j] == "(") - (head[j] == ")")
            if depth == 0: break
            j += 1
        name = re.search(r"(\w+)\s*$", head[:i])
        if name and name[1] not in ATTRIBUTES: found.append((name[1], head[i + 1:j], i))
        i = j + 1
    return found


def count_arguments(text, template):
    """How many parameters; of a template's function, those that are no compile-time constants."""
    if text.strip() in ("", "void"): return 0
    depth, each = 0, [""]
    for c in text:
        depth += (c in "([<{") - (c in ")]>}")
        if c == "," and depth == 0: each.append("")
        else: each[-1] += c
    return sum(not (template and re.fullmatch(r"\s*const (int|bool) \w+\s*", a)) for a in each)


def functions(text, is_source=True):
    """Yields (name, first line, lines, parameters, body)."""
    depth = start = outer = 0
    kept = set(re.findall(r"\bHK_API\b[^;{]*?(\w+)\([^;{]*\);", text)) if is_source else set()
    opened = None
    for i, c in enumerate(text):
        if c == "{":
            if depth == outer:
                head = text[start:i]
                if re.search(r"\bextern\s*$|\bnamespace\b[\w\s]*$", head):
                    outer += 1
                elif ("(" in head and head.rstrip().endswith((")", "const", "noexcept")) and not re.search(r"(?<![=!<>])=(?!=)", head)
                      and not re.match(r"\s*(typedef\b|enum\b)", head)):
                    found = groups(head)
                    if found:
                        name, arguments, at = found[-1]
                        count = 0 if name in kept else count_arguments(arguments, re.search(r"\b(HK_INLINE|INLINE|HK_DEV)\b", head[:at]))
                        opened = (name, text.count("\n", 0, start + at) + 1, count, i)
            depth += 1
        elif c == "}":
            depth -= 1
            if depth < outer: outer = depth = max(depth, 0)
            if depth == outer:
                if opened:
                    yield opened[0], opened[1], text.count("\n", 0, i) + 2 - opened[1], opened[2], text[opened[3]:i]
                opened, start = None, i + 1
        elif c == ";" and depth == outer:
            start = i + 1


def literals(body):
    return [n for n in NUMBER.findall(body) if float(n) not in (0, 1, 2)]


def duplicates(sources):
    """Places that repeat at least eight lines of an earlier place."""
    seen, found = {}, []
    for name, text in sources:
        if name.startswith("src/cost/machines/"): continue
        lines = [(i + 1, " ".join(s.split())) for i, s in enumerate(text.split("\n"))]
        lines = [(i, s) for i, s in lines if re.search(r"\w", s) and not re.fullmatch(r"\.(\w+) = \1[,};]*", s)]
        keys = ["\n".join(s for _, s in lines[i:i + 8]) for i in range(len(lines) - 7)]
        i, last = 0, len(keys)
        mine = {}
        while i < last:
            j = i
            while j < last and (keys[j] in seen or mine.get(keys[j], j) <= i - 8): j += 1
            if j > i:
                found.append(f"{name}:{lines[i][0]} {j - i + 7} lines, as at {seen.get(keys[i]) or name}")
                i = j + 7
            else:
                mine.setdefault(keys[i], i)
                i += 1
        for k, s in enumerate(keys): seen.setdefault(s, f"{name}:{lines[k][0]}")
    return found


def dialect():
    with open(os.path.join(HERE, "dialect.tsv"), encoding="utf-8") as f:
        words = [line.split("\t")[0] for line in f if line.strip() and not line.startswith("#")]
    return re.compile("(?<![A-Za-z])(" + "|".join(words) + ")(?![A-Za-z])", re.I)


def prose_of(name, text):
    """What a document says in its own words: not names of the code in `backquotes`, not fenced blocks."""
    return re.sub(r"```.*?```|`[^`\n]*`", blank, text, flags=re.S) if name.endswith(".md") else text


def places(name, text, pattern):
    return [f"{name}:{text.count(chr(10), 0, m.start()) + 1} {' '.join(m.group().split())}" for m in pattern.finditer(text)]


def survey(tree):
    names = tracked(tree)
    code = [(n, read(tree, n)) for n in names if n.startswith(FOLDERS) and not n.startswith("tests/abi/") and n.endswith(CODE)]
    stripped = [(n, bare(t)) for n, t in code]
    rows = [r for n, t in code if n.endswith(".inc") for r in re.findall(r"^HK_ALGO\((\w+)", t, re.M)]
    folders = {}
    for n in names: folders[os.path.dirname(n) or "."] = folders.get(os.path.dirname(n) or ".", 0) + 1
    lengths = sorted(t.count("\n") for n, t in code if n.endswith((".c", ".cu", ".h", ".cuh")))
    long_ones, wide_ones, numbers, cost_files, templates = [], [], [], set(), 0
    for n, t in stripped:
        cost_file = re.search(r"src/(cost/(?!machines/)|.*\bcost\w*\.)", n)
        if cost_file:
            numbers += [f"{n} {x}" for x in literals(t)]
        for name, line, size, parameters, body in functions(t, n.endswith(".c")):
            if size > 60:
                if n.endswith((".tmpl.h", ".cuh")): templates += 1
                else: long_ones.append(f"{n}:{line} {name} {size} lines")
            if parameters > 7: wide_ones.append(f"{n}:{line} {name} {parameters} parameters")
            if not cost_file and n.startswith(("src/plan", "src/cuda", "src/tune")) and n.endswith(".c"):
                cost = body if COST_NAME.search(name) else "\n".join(COST_STATEMENT.findall(body))
                numbers += [f"{n}:{line} {name} {x}" for x in literals(cost)]
    cost_files = {re.split(r"[: ]", x)[0] for x in numbers}
    words = dialect()
    prose = [(n, prose_of(n, read(tree, n))) for n in names
             if n.endswith((".md", ".1", ".py")) and not n.startswith(("scripts/", "bench/results/"))]
    in_code = [p for n, t in code for p in places(n, t, words)]
    in_prose = [p for n, t in prose for p in places(n, t, words)]
    columns = [f"{n}:{i + 1}" for n, t in code for i, s in enumerate(t.split("\n")) if len(s) > 120]
    repeats = duplicates([(n, bare(t, strings=True)) for n, t in code])
    big = sorted(folders.items(), key=lambda f: -f[1])
    lists = {"words": in_code + in_prose, "functions": long_ones, "parameters": wide_ones, "duplicates": repeats, "literals": numbers,
             "columns": columns}
    table = [
        ("algorithm rows", len(rows)),
        ("product rows", sum(bool(PRODUCT.fullmatch(r)) for r in rows)),
        ("C and CUDA files", len(lengths)),
        ("lines per file: median / p90 / max", f"{statistics.median(lengths):.0f} / {lengths[len(lengths) * 9 // 10]} / {lengths[-1]}"),
        ("folders above 40 files", sum(n > 40 for _, n in big)),
        ("largest folders", ", ".join(f"{f} {n}" for f, n in big[:4])),
        ("functions over 60 lines (+ in templates)", f"{len(long_ones)} (+ {templates})"),
        ("functions over 7 parameters", len(wide_ones)),
        ("literals in cost code (files)", f"{len(numbers)} ({len(cost_files)})"),
        ("words of the old dialect: code / documents", f"{len(in_code)} / {len(in_prose)}"),
        ("repeated blocks of 8 lines and more", len(repeats)),
        ("lines over 120 columns", len(columns)),
    ]
    return table, lists


def label(tree):
    out = subprocess.run(["git", "-C", tree, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return out.stdout.strip() or tree


def main():
    arguments = sys.argv[1:]
    if "-h" in arguments or "--help" in arguments:
        print(__doc__)
        return
    if arguments[:1] == ["--list"]:
        _, lists = survey((arguments[2:] or [os.path.dirname(HERE)])[0])
        if arguments[1:2] == [] or arguments[1] not in lists: raise SystemExit(f"--list takes one of {', '.join(lists)}")
        print("\n".join(lists[arguments[1]]))
        return
    if arguments[:1] == ["--check"]:
        _, lists = survey((arguments[1:] or [os.path.dirname(HERE)])[0])
        over = {row: most for row, most in LIMITS.items() if len(lists[row]) > most}
        for row, most in over.items(): print(f"{row}: {len(lists[row])}, the limit is {most}:\n  " + "\n  ".join(lists[row]))
        raise SystemExit(bool(over))
    trees = arguments or [os.path.dirname(HERE)]
    tables = [survey(t)[0] for t in trees]
    print("| | " + " | ".join(label(t) for t in trees) + " |")
    print("|---" * (len(trees) + 1) + "|")
    for rows in zip(*tables): print(f"| {rows[0][0]} | " + " | ".join(str(r[1]) for r in rows) + " |")


if __name__ == "__main__":
    main()
