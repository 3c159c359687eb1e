"""Random chains over interleaved blocks between guard pages, in place and with states moved on the way, against the same
chain over planar blocks on plain C: exact on integers."""
import ctypes as C
import mmap

import numpy as np
import pytest

from libhankel import stream as st
from libhankel._native import call

PAGE, TRIALS = mmap.PAGESIZE, 120
LIBC = C.CDLL(None)


class Guarded:
    """count floats that begin, or end, at a page without access."""

    def __init__(self, count, at_start):
        room = max(-(-count * 4 // PAGE), 1) * PAGE
        self.memory = mmap.mmap(-1, room + 2 * PAGE)
        base = C.addressof(C.c_char.from_buffer(self.memory))
        for page in (base, base + PAGE + room):
            LIBC.mprotect(C.c_void_p(page), C.c_size_t(PAGE), 0)
        self.address = base + PAGE if at_start else base + PAGE + room - count * 4
        self.values = np.ctypeslib.as_array((C.c_float * count).from_address(self.address))


def draw_step(rng, number, channels):
    """A step over signal `number`, the newest of those whose channels are given; (step, its channels)."""
    known = [i + 1 for i, c in enumerate(channels) if c == channels[-1]]
    act = [None, "relu", st.Act("leaky", 0.5), st.Act("clip", -3.0, 5.0)][rng.integers(4)]
    words = {} if act is None else {"act": act}
    if rng.random() < 0.25:
        add = int(rng.choice(known)) if rng.random() < 0.6 else None
        return st.mapped(number, **words, **({} if add is None else {"add": add})), channels[-1]
    groups = int(rng.choice([g for g in range(1, channels[-1] + 1) if channels[-1] % g == 0]))
    k = groups * int(rng.integers(1, max(2, 24 // groups + 1)))
    f = rng.integers(-2, 3, (k, channels[-1] // groups, int(rng.choice([1, 1, 2, 3, 5, 9])))).astype("f4")
    bias = rng.integers(-2, 3, k).astype("f4") if rng.random() < 0.6 else None
    if k in channels and rng.random() < 0.15:
        words["add"] = channels.index(k) + 1
    return st.conv(number, f, groups=groups, dilation=int(rng.choice([1, 1, 2, 7, 40])), bias=bias, **words), k


def played(rng, chain, x, k, block):
    """y of x (frames, channels) in random blocks between guard pages."""
    stream, made, t, c = chain.stream(), [], 0, x.shape[1]
    in_place = c == k and rng.random() < 0.5
    while t < len(x):
        n = min(int(rng.integers(0, block + 1)), len(x) - t)
        if rng.random() < 0.1:
            state, stream = stream.save(), chain.stream()
            stream.restore(state)
        given = Guarded(n * c, rng.random() < 0.5)
        given.values[:] = x[t:t + n].ravel()
        y = given if in_place else Guarded(n * k, rng.random() < 0.5)
        call("hk_stream_process", stream._handle, given.address, n, y.address, None)
        made.append(y.values.reshape(n, k).copy())
        t += n
    return np.concatenate(made)


@pytest.mark.parametrize("isa", [None, "avx2", "scalar"])
def test_random_chains(isa):
    for trial in range(TRIALS):
        rng = np.random.default_rng([trial, len(isa or "")])
        channels, steps = [int(rng.integers(1, 25))], []
        for number in range(1, int(rng.integers(2, 6))):
            step, k = draw_step(rng, number, channels)
            steps.append(step)
            channels.append(k)
        block = int(rng.choice([1, 3, 16, 64, 65, 300]))
        x = rng.integers(-2, 3, (int(rng.integers(1, 400)), channels[0])).astype("f4")
        chain = st.Chain(channels[0], steps, max_block=block, isa=isa)
        plain = st.Chain(channels[0], steps, max_block=block, layout="first", isa="scalar")
        want = plain.stream().process(np.ascontiguousarray(x.T)).T
        assert np.array_equal(played(rng, chain, x, channels[-1], block), want), f"trial {trial}: {channels}"
