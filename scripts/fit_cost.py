#!/usr/bin/env python3
"""Fits src/cost/machines/<machine>.inc to the records bench/timings/<machine>-*.csv, or joins several runs of a record.

usage: fit_cost.py MACHINE BUILD [--dry]   BUILD holds tests/cost_regret_test, which predicts; --dry: print the regret, write nothing
       fit_cost.py --join RUN.csv ... > bench/timings/<machine>-<isa>.csv     the fastest time of each candidate of each problem

A prediction is linear in what is fitted (the four numbers of each family, and `row` and `value`), so one run of the predictor per parameter
gives the whole model. What is minimised, by gradient descent over the logarithms of the parameters: the expected regret when candidates are
chosen with probabilities that fall off with their prediction, the squared logarithm of (measured / predicted) of candidates within twice
the best, and the distance from the table that the fit starts with (so what no record shows stays). Needs numpy."""
import glob
import re
import subprocess
import sys

import numpy as np

FIELDS = ("product", "cycle", "wait", "call")
SPREAD = 0.06    # of the logarithm of predictions: candidates this close are chosen nearly alike
CLOSE = 0.05     # weight of the squared error of predictions
STAY = 0.001    # weight of the squared distance from the start, per parameter
FAR = 2.5        # times the best
STEPS, RATE = 1500, 0.02


def read_rows(path):
    problem, rows = None, []
    with open(path, encoding="utf-8") as f:
        head = [next(f), next(f)]
        for line in f:
            name, decision, predicted, us = line.rstrip("\n").split(",")
            problem = name or problem
            rows.append((problem, decision, predicted, float(us)))
    return head, rows


def join(paths):
    """Later files may hold other problems. Candidates that were both predicted and measured at several times the best are left out."""
    rows, best, heads = [], {}, []
    for path in paths:
        head, more = read_rows(path)
        heads.append(head)
        for problem, decision, predicted, us in more:
            if (problem, decision) not in best: rows.append((problem, decision, predicted))
            best[problem, decision] = min(us, best.get((problem, decision), us))
    if any(h != heads[0] for h in heads): sys.exit("the records are not of one machine, ISA and epilogue")
    of = {}
    for problem, decision, predicted in rows: of.setdefault(problem, []).append((decision, float(predicted), best[problem, decision]))
    sys.stdout.write("".join(heads[0]))
    for problem, found in of.items():
        least, fastest = min(f[1] for f in found), min(f[2] for f in found)
        for i, (decision, predicted, us) in enumerate(f for f in found if f[1] < FAR * least or f[2] < FAR * fastest):
            print("%s,%s,%.4g,%.4g" % ("" if i else problem, decision, predicted, us))


def parameters():
    """(name, what) of the machine's numbers and of the families, as src/cost/parameters.inc lists them."""
    with open("src/cost/parameters.inc", encoding="utf-8") as f:
        text = f.read()
    return (re.findall(r'^HK_PARAMETER\((\w+), "(.*)"\)', text, re.M), re.findall(r'^HK_FAMILY\((\w+), "(.*)"\)', text, re.M))


def read_table(machine):
    with open("src/cost/machines/%s.inc" % machine, encoding="utf-8") as f:
        text = f.read()
    table = {}
    for name, value in re.findall(r"\.(\w+) = ([-+.\deE]+)", text): table[name] = float(value)
    for name, values in re.findall(r"\.(\w+) = \{([^}]*)\}", text):
        for field, value in zip(FIELDS, values.split(",")): table[name + "." + field] = float(value)
    return text, table


def write_table(machine, text, table):
    """Replaces the numbers where they stand: the rest of the file, its comments too, stays."""
    for name in ("row", "value"): text = re.sub(r"(\.%s = )[-+.\deE]+" % name, lambda m: m[1] + "%.3g" % table[name], text)
    for name in {n.split(".")[0] for n in table if "." in n}:
        values = ", ".join("%.3g" % table[name + "." + field] for field in FIELDS)
        text = re.sub(r"(\.%s = )\{[^}]*\}" % name, lambda m: m[1] + "{" + values + "}", text)
    with open("src/cost/machines/%s.inc" % machine, "w", encoding="utf-8") as f:
        f.write(text)


class Record:
    """Measured times, problems as ranges of rows, and the linear model of their predictions."""

    def __init__(self, path, tool, names, table):
        self.path = path
        rows = read_rows(path)[1]
        self.us = np.array([r[3] for r in rows])
        start = [i for i, r in enumerate(rows) if i == 0 or r[0] != rows[i - 1][0]]
        self.ranges = list(zip(start, start[1:] + [len(rows)]))
        self.of = np.repeat(np.arange(len(start)), [b - a for a, b in self.ranges])
        base = self.predict(tool, {})
        self.usable = np.isfinite(base)
        self.slopes = np.zeros((len(names), len(rows)))
        for i, name in enumerate(names):
            more = self.predict(tool, {name: 2 * table[name]})
            self.slopes[i, self.usable] = (more - base)[self.usable] # per table[name]
        self.rest = np.where(self.usable, base, 0) - self.slopes.sum(axis=0)
        self.best = np.minimum.reduceat(np.where(self.usable, self.us, np.inf), start)[self.of]

    def predict(self, tool, settings):
        words = ["%s=%.9g" % item for item in settings.items()]
        out = subprocess.run([tool, self.path] + words, capture_output=True, text=True, check=True).stdout
        return np.array([float(x) for x in out.split()])

    def predicted(self, factors):
        return np.where(self.usable, self.rest + factors @ self.slopes, np.inf)

    def regrets(self, factors):
        p = self.predicted(factors)
        return np.array([self.us[a + np.argmin(p[a:b])] / self.best[a] for a, b in self.ranges])

    def loss(self, factors):
        """The mean of the loss over problems, and its gradient by the logarithms of the parameters."""
        p = np.where(self.usable, self.rest + factors @ self.slopes, 1)
        logs = np.log(np.maximum(p, 1e-6))
        start = np.array([a for a, _ in self.ranges])
        least = np.minimum.reduceat(np.where(self.usable, logs, np.inf), start)[self.of]
        weight = np.where(self.usable, np.exp((least - logs) / SPREAD), 0)
        share = weight / np.add.reduceat(weight, start)[self.of]
        cost = np.where(self.usable, np.minimum(np.log(self.us / self.best), 2), 0)
        mean = np.add.reduceat(share * cost, start)[self.of]
        slope = -share * (cost - mean) / SPREAD
        error = logs - np.log(self.us)
        near = self.usable & (self.us < 2 * self.best)
        count = np.add.reduceat(near.astype(float), start)[self.of]
        pull = np.where(near, CLOSE / count, 0)
        total = (share * cost).sum() + (pull * error ** 2).sum()
        slope = (slope + 2 * pull * error) / np.maximum(p, 1e-6)
        return total / len(start), (self.slopes @ slope) * factors / len(start)


def fit(records, count):
    """Adam over the logarithms of the parameters."""
    x, m, v = np.zeros(count), np.zeros(count), np.zeros(count)
    best = (np.inf, x)
    for step in range(1, STEPS + 1):
        parts = [r.loss(np.exp(x)) for r in records]
        total = np.mean([p[0] for p in parts]) + STAY * (x ** 2).sum()
        slope = np.mean([p[1] for p in parts], axis=0) + 2 * STAY * x
        if total < best[0]: best = (total, x.copy())
        m, v = 0.9 * m + 0.1 * slope, 0.999 * v + 0.001 * slope ** 2
        rate = RATE * (1 - step / STEPS)
        x = x - rate * (m / (1 - 0.9 ** step)) / (np.sqrt(v / (1 - 0.999 ** step)) + 1e-9)
    return np.exp(best[1])


def report(records, factors, word):
    for r in records:
        ratio = r.regrets(factors)
        print("%s %s: regret %.4f, worst %.2f, %d of %d above 1.15" % (
            word, r.path, np.exp(np.log(ratio).mean()), ratio.max(), (ratio > 1.15).sum(), len(ratio)))


def main():
    if sys.argv[1:2] == ["--join"]: return join(sys.argv[2:])
    if len(sys.argv) < 3: sys.exit(__doc__)
    machine, tool = sys.argv[1], sys.argv[2] + "/tests/cost_regret_test"
    text, table = read_table(machine)
    names = [n for n in table if n in ("row", "value") or ("." in n and table[n] > 0)]
    records = [Record(path, tool, names, table) for path in sorted(glob.glob("bench/timings/%s-*.csv" % machine))]
    seen = sum(np.abs(r.slopes).sum(axis=1) for r in records) > 0
    for r in records: r.slopes = r.slopes[seen]
    names = [n for n, s in zip(names, seen) if s]
    report(records, np.ones(len(names)), "before")
    factors = fit(records, len(names))
    report(records, factors, "after")
    for name, factor in zip(names, factors): table[name] *= factor
    if "--dry" not in sys.argv: write_table(machine, text, table)
    return None


if __name__ == "__main__":
    sys.exit(main())
