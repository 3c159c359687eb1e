"""Wave's get_igemm_conv2d: the same signature; tiles reach the plan or are refused, and the symbols are what runs."""
from __future__ import annotations

import re
from typing import Any, Dict, Optional, Sequence, Tuple, Union

import numpy as np  # noqa: F401  (the example of the docstring)

from .._arguments import integer, per_axis
from .._array import NAMES, Tensor, intake, type_of
from .._conv import plan as make_plan
from .._dlpack import dense
from .._native import HankelError, invalid
from .._options import DEVICES
from .._plan import Plan, candidates
from .._words import Array

SHARED_ADDRESS_SPACE, GLOBAL_ADDRESS_SPACE = "$SHARED_ADDRESS_SPACE", "$GLOBAL_ADDRESS_SPACE"
_SPACES = {"shared", "global"}
_LAYOUTS = {"nchw_fchw": ("NCHW", "OIHW", "NCHW"), "nhwc_hwcf": ("NHWC", "HWIO", "NHWC")}
#: algorithm -> Wave's knob -> hankel's; columns of the kernel that one step of the knob stands for are NR where True.
#: block_m counts pixels, block_n output channels, block_k input channels.
_KNOBS = (("igemm", {"block_m": ("bm", False), "block_n": ("bn", True), "block_k": ("bk", False)}),
          ("planes", {"block_n": ("bm", False)}),
          ("wgmma", {"block_m": ("bm", False), "block_n": ("bn", False)}))


def _path(decision):
    """A decision without kernel and knobs: its rewrites and its algorithm, as in convert / igemm."""
    return " / ".join(part.split()[0] for part in decision.split(" / "))


def _knobs(decision):
    """Wave's knobs of a decision's algorithm, which rewrites before it do not change."""
    name = _path(decision).split(" / ")[-1]
    if name.startswith("wgmma"):
        return dict(_KNOBS)["wgmma"] if "planes" not in name and "halo" not in name else {}
    return next((knobs for family, knobs in _KNOBS if name.endswith(family)), {})


def _columns(decision):
    """NR of the decision's kernel, hk_<family>_<types>_<MR>x<NR>_<isa>; 1 where it has none."""
    found = re.search(r"_\d+x(\d+)_\w+", decision)
    return int(found.group(1)) if found else 1


def _with_tiles(decision, tiles):
    """The decision with its knobs set to the asked-for tiles; None where one of them has no place in it."""
    knobs, columns = _knobs(decision), _columns(decision)
    for name, value in tiles.items():
        if name not in knobs:
            return None
        knob, by_columns = knobs[name]
        if by_columns and value % columns:
            return None
        decision = re.sub(rf" {knob}=\d+", f" {knob}={value // columns if by_columns else value}", decision)
    return decision


def _blocks(decision):
    """BLOCK_M, BLOCK_N, BLOCK_K of a decision, as far as it has them."""
    found = {}
    for name, (knob, by_columns) in _knobs(decision).items():
        value = re.search(rf" {knob}=(\d+)", decision)
        if value:
            found[name.upper()] = int(value.group(1)) * (_columns(decision) if by_columns else 1)
    return found


def _tiled(problem, device, tiles, make):
    """The best plan with all the asked-for tiles, or a refusal that says what there is."""
    usable = [c["decision"] for c in candidates(problem, rigor="patient", device=device) if c["refusal"] is None]
    tried, why = set(), None
    for decision in usable:
        asked = _with_tiles(decision, tiles)
        if asked is None or asked in tried:
            continue
        tried.add(asked)
        try:
            plan = make(decision=asked)
        except HankelError as error:
            why = why or error.message
            continue
        if all(_blocks(plan.decision).get(name.upper()) == value for name, value in tiles.items()):
            return plan
    wanted = ", ".join(f"{name} = {value}" for name, value in tiles.items())
    there = "; ".join(sorted({f"{_path(d)} has " + ", ".join(
        name + (f" in steps of {_columns(d)}" if by else "") for name, (_, by) in _knobs(d).items())
        for d in usable if _knobs(d)})) or "no algorithm has any"
    raise invalid(f"{wanted} reaches no plan of {problem}: {why or there}")


class Kernel:
    """What get_igemm_conv2d() returns: kernel(x, we, out) computes into out and returns it.

    plan: the Plan that runs, or ran last; symbols: its symbol table. Tensors on another device than the plan's, or laid
    out otherwise, get a plan of their own with the same tiles. hold(x, we) gives a plan that keeps the filter.
    """

    def __init__(self, specs, strides, types, tiles, threads, shapes, sizes):
        self._specs, self._strides, self._types = specs, strides, types
        self._tiles, self._threads, self._shapes, self._sizes = tiles, threads, shapes, sizes
        self._plans: Dict[Any, Plan] = {}
        self.symbols: Dict[str, Any] = {}
        self.plan: Optional[Plan] = None

    def _make(self, x, f, out, hold=False):
        words = dict(window_strides=self._strides, dimension_numbers=self._specs, out=out, threads=self._threads,
                     preferred_element_type=NAMES[self._types[1]])

        def make(**options):
            return make_plan(x, f, hold_weights=hold, **words, **options)

        if not self._tiles:
            return make()
        bare = make_plan(x, f, hold_weights=False, **words)
        return _tiled(bare.problem, bare.device, self._tiles, make)

    def on(self, x: Tensor, f: Tensor, out: Tensor) -> Plan:
        """Makes the plan for tensors that lie so the current one; plans are kept."""
        key = tuple((t.device, t.index, t.strides) for t in (x, f, out))
        if key not in self._plans:
            self._plans[key] = self._make(x, f, out)
        if self.plan is not self._plans[key]:
            self.plan = self._plans[key]
            self.symbols.clear()
            self.symbols.update(self._sizes, **_blocks(self.plan.decision))
        return self.plan

    def _given(self, name, array, key, writable=False):
        tensor = intake(array, name, writable=writable)
        hk_type = self._types[1 if key == "out" else 0]
        if tensor.shape != self._shapes[key]:
            raise invalid(f"{name} has shape {tensor.shape}; {self._shapes[key]} is required")
        if tensor.type != hk_type:
            raise invalid(f"{name} is {NAMES[tensor.type]}; {NAMES[hk_type]} is required")
        return tensor

    def _out(self, x):
        shape = self._shapes["out"]
        return Tensor(64, shape, dense(shape), self._types[1], x.device, None, x.index)

    def __call__(self, x: Array, we: Array, out: Optional[Array] = None) -> Any:
        """Convolves x by we into out (a new tensor of x's framework where it is None), and returns out."""
        x, f = self._given("x", x, "x"), self._given("we", we, "f")
        y = self._out(x) if out is None else self._given("out", out, "out", writable=True)
        return self.on(x, f, y)(x, f, out=None if out is None else y)

    def hold(self, x: Array, we: Array) -> Plan:
        """The Plan for tensors that lie as x does, which keeps the filter: plan(x), plan(x, out=y)."""
        x, f = self._given("x", x, "x"), self._given("we", we, "f")
        return self._make(x, f, None, hold=True)


def _space(mem_space):
    """Checks Wave's address space. Where tiles are kept is the chosen kernel's own affair, so it has no symbol."""
    name = str(mem_space).lower().strip("$").replace("_address_space", "")
    if mem_space is not None and name not in _SPACES:
        raise invalid(f"mem_space is {mem_space!r}; SHARED_ADDRESS_SPACE or GLOBAL_ADDRESS_SPACE is required")


def get_igemm_conv2d(layout: str, n: int, h: int, w: int, c: int, hf: int, wf: int, nf: int,
                     stride: Union[int, Sequence[int]], input_dtype: object, output_dtype: object,
                     mem_space: object = SHARED_ADDRESS_SPACE, block_m: Optional[int] = None,
                     block_n: Optional[int] = None, block_k: Optional[int] = None, ratio_m: Optional[int] = None,
                     ratio_n: Optional[int] = None, *, threads: Optional[int] = None,
                     device: str = "cpu") -> Tuple[Kernel, Dict[str, Any]]:
    """(kernel, symbols) of a 2D convolution without padding, in layout "nchw_fchw" or "nhwc_hwcf".

    kernel(x, we, out) computes into out and returns it; kernel.plan is the Plan behind it. symbols holds the sizes and
    the GEMM sizes M, NF and K, and those of BLOCK_M (pixels), BLOCK_N (output channels) and BLOCK_K (input channels)
    that the running decision has. Left at None the planner picks the tiles; a block_* that is given reaches the plan or
    is refused. ratio_* (waves per block) is refused: hankel's kernels fix it. mem_space is checked and changes nothing.
    stride is one integer or (height, width); any dtype of the package is taken. device is where the first plan is made;
    tensors of another device get a plan there at their first call, and symbols follow it.

    >>> kernel, symbols = get_igemm_conv2d("nhwc_hwcf", 1, 4, 5, 2, 3, 3, 1, 1, "f16", "f32")
    >>> symbols["M"], symbols["K"], symbols["H_OUT"], symbols["W_OUT"]
    (6, 18, 2, 3)
    >>> kernel(np.ones((1, 4, 5, 2), "f2"), np.ones((3, 3, 2, 1), "f2"), np.empty((1, 2, 3, 1), "f4")).ravel().tolist()
    [18.0, 18.0, 18.0, 18.0, 18.0, 18.0]
    """
    if layout not in _LAYOUTS:
        raise invalid(f"layout is {layout!r}; one of {', '.join(_LAYOUTS)} is required")
    for name, value in (("ratio_m", ratio_m), ("ratio_n", ratio_n)):
        if value is not None:
            raise invalid(f"{name} is {value!r}; how waves share a tile is fixed by hankel's kernels: leave it out")
    if device not in DEVICES:
        raise invalid(f"device is {device!r}; one of {', '.join(DEVICES)} is required")
    _space(mem_space)
    tiles = {name: integer(value, name, least=1) for name, value in
             (("block_m", block_m), ("block_n", block_n), ("block_k", block_k)) if value is not None}
    sizes = {name: integer(value, name.lower(), least=0) for name, value in
             dict(N=n, C=c, H=h, W=w, NF=nf, HF=hf, WF=wf).items()}
    types, specs = (type_of(input_dtype), type_of(output_dtype)), _LAYOUTS[layout]
    strides = per_axis(stride, 2, "stride")
    if min(strides) < 1:
        raise invalid(f"stride is {stride}; at least 1 is required")
    h_out, w_out = ((size - window) // step + 1 for size, window, step in ((h, hf, strides[0]), (w, wf, strides[1])))
    if h_out < 1 or w_out < 1:
        raise invalid(f"the filter is {hf}x{wf} and the image {h}x{w}; no output position is left")
    letters = ({"N": n, "C": c, "H": h, "W": w}, {"O": nf, "I": c, "H": hf, "W": wf},
               {"N": n, "C": nf, "H": h_out, "W": w_out})
    shapes = {key: tuple(of[letter] for letter in spec) for key, spec, of in zip(("x", "f", "out"), specs, letters)}
    sizes.update(H_OUT=h_out, W_OUT=w_out, STRIDE=stride, PADDING=0, SZ_OUT=h_out * w_out, M=n * h_out * w_out,
                 K=hf * wf * c)
    kernel = Kernel(specs, strides, types, tiles, threads, shapes, sizes)
    kernel.on(*(Tensor(64, shapes[key], dense(shapes[key]), types[key == "out"], DEVICES[device], None)
                for key in ("x", "f", "out")))
    return kernel, kernel.symbols
