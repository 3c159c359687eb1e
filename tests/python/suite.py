"""Counts of a conformance suite: passed, unsupported, failed. Unsupported fails unless its reason is listed."""
import os
from pathlib import Path

import numpy as np


class Suite:
    """listed: {reason: why it is outside what hankel computes}. finish() writes the line and fails on any failure."""

    def __init__(self, name, listed=None, least=1):
        self.name, self.listed, self.least = name, listed or {}, least
        self.passed, self.unsupported, self.failures = 0, {}, []

    def check(self, label, compute):
        """compute() returns None when right, else what is wrong; any exception is a failure."""
        try:
            wrong = compute()
        except Exception as error:  # a suite counts every way to go wrong
            wrong = f"{type(error).__name__}: {error}"
        if wrong:
            self.failures.append(f"{label}: {wrong}")
        else:
            self.passed += 1

    def refuse(self, label, reason):
        """Something the suite asks for and hankel does not compute."""
        if reason in self.listed:
            self.unsupported[reason] = self.unsupported.get(reason, 0) + 1
        else:
            self.failures.append(f"{label}: unsupported and not listed: {reason}")

    def finish(self):
        count = sum(self.unsupported.values())
        line = f"{self.name}: {self.passed} / {count} / {len(self.failures)}"
        folder = Path(os.environ.get("HANKEL_BUILD_DIR", Path(__file__).resolve().parents[2] / "build")) / "suites"
        folder.mkdir(parents=True, exist_ok=True)
        reasons = [f"  unsupported {n}: {r}: {self.listed[r]}" for r, n in sorted(self.unsupported.items())]
        (folder / f"{self.name}.txt").write_text("\n".join([line] + reasons) + "\n")
        print(line)
        assert not self.failures, f"{line}\n" + "\n".join(self.failures[:40])
        assert self.passed >= self.least, f"{line}: at least {self.least} were expected to run"


#: unit roundoff of the type results are stored in
EPS = {"float64": 2.0 ** -53, "float32": 2.0 ** -24, "float16": 2.0 ** -11, "bfloat16": 2.0 ** -8,
       "float8_e4m3fn": 2.0 ** -4}
#: smallest normal number, below which the error is absolute
TINY = {"float64": 2.3e-308, "float32": 1.2e-38, "float16": 6.2e-5, "bfloat16": 1.2e-38, "float8_e4m3fn": 0.016}


def distance(got, want, magnitude=None, terms=1, inputs="float32", slack=4.0):
    """None when got is as near to want as rounding explains, else a sentence.

    magnitude: sum |x||f| per element (or None: |want|); terms: how many products were added, in which type (inputs).
    """
    got, want = np.asarray(got), np.asarray(want)
    if got.shape != want.shape:
        return f"shape {got.shape}, expected {want.shape}"
    if got.dtype.kind in "iu":
        wrong = np.count_nonzero(got != want)
        return f"{wrong} of {want.size} integers differ" if wrong else None
    name = got.dtype.name
    got64, want64 = got.astype(np.float64), want.astype(np.float64)
    scale = np.abs(want64) if magnitude is None else np.asarray(magnitude, np.float64)
    sums = EPS["float64" if inputs == "float64" else "float32"]
    bound = slack * (max(terms, 1) * sums * scale + EPS[name] * np.abs(want64) + EPS[name] * TINY[name])
    if magnitude is None:
        bound = bound + slack * sums
    good = (np.abs(got64 - want64) <= bound) | (got64 == want64) | (np.isnan(got64) & np.isnan(want64))
    if good.all():
        return None
    at = np.unravel_index(int(np.argmin(good)), good.shape) if good.ndim else ()
    count, where = np.count_nonzero(~good), tuple(map(int, at))
    return f"{count} of {good.size} differ, first at {where}: {got64[at]} for {want64[at]}"
