"""ONNX's own tests of Conv, ConvTranspose, ConvInteger, QLinearConv and CausalConvWithState.

Two sources: the files of Debian's libonnx-testdata (node tests, models converted from PyTorch), and the node cases that
an installed onnx generates itself.
"""
import os
import warnings
from pathlib import Path

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="onnx suite: onnx is not installed")
from onnx import numpy_helper  # noqa: E402

import libhankel as hk  # noqa: E402
from suite import Suite, distance  # noqa: E402

DATA = Path(os.environ.get("ONNX_TESTDATA", "/usr/share/libonnx-testdata/data"))
OPERATORS = ("Conv", "ConvTranspose", "ConvInteger", "QLinearConv", "CausalConvWithState")
TRANSPOSE = {3: hk.conv_transpose1d, 4: hk.conv_transpose2d, 5: hk.conv_transpose3d}


def attributes(node):
    return {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}


def forward_words(at, x, w):
    """conv()'s keywords from the attributes that Conv, ConvInteger and QLinearConv share."""
    rank = x.ndim - 2
    auto, pads = at.get("auto_pad", b"NOTSET").decode(), at.get("pads", [0] * 2 * rank)
    padding = {"NOTSET": list(zip(pads[:rank], pads[rank:])), "VALID": "VALID", "SAME_UPPER": "SAME",
               "SAME_LOWER": "SAME_LOWER"}[auto]
    return dict(window_strides=at.get("strides", [1] * rank), padding=padding,
                rhs_dilation=at.get("dilations", [1] * rank), feature_group_count=at.get("group", 1))


def run_conv(at, x, w, b=None):
    return [hk.conv(x, w, bias=b, **forward_words(at, x, w))]


def run_conv_integer(at, x, w, x_zero=None, w_zero=None):
    zero = 0 if w_zero is None else (w_zero if w_zero.size > 1 else int(w_zero.reshape(-1)[0]))
    return [hk.conv(x, w, x_zero=0 if x_zero is None else int(x_zero), f_zero=zero, **forward_words(at, x, w))]


def run_qlinear(at, x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, b=None):
    factor = np.float32(x_scale) * w_scale.astype(np.float32).reshape(-1) / np.float32(y_scale)
    scale = np.broadcast_to(factor, (w.shape[0],))
    zero = w_zero.reshape(-1).astype(np.int32) if w_zero.size > 1 else int(w_zero.reshape(-1)[0])
    return [hk.conv(x, w, scale=scale, bias=b, x_zero=int(x_zero), f_zero=zero, y_zero=int(y_zero),
                    preferred_element_type=y_zero.dtype, **forward_words(at, x, w))]


def run_transpose(at, x, w, b=None):
    rank = x.ndim - 2
    strides, dilations = at.get("strides", [1] * rank), at.get("dilations", [1] * rank)
    extra, pads = at.get("output_padding", [0] * rank), at.get("pads", [0] * 2 * rank)
    pairs = list(zip(pads[:rank], pads[rank:]))
    auto = at.get("auto_pad", b"NOTSET").decode()
    full = [s * (n - 1) + o + (k - 1) * d + 1
            for s, n, o, k, d in zip(strides, x.shape[2:], extra, w.shape[2:], dilations)]
    wanted = at.get("output_shape", None) or ([n * s for n, s in zip(x.shape[2:], strides)]
                                               if auto.startswith("SAME") else None)
    if wanted is not None:
        # more than there is becomes output padding, less is cut, the odd one after or before as auto_pad says
        extra = [o + max(size - f, 0) for o, size, f in zip(extra, wanted, full)]
        cuts = [max(f - size, 0) for size, f in zip(wanted, full)]
        pairs = [(c // 2, c - c // 2) if auto == "SAME_UPPER" else (c - c // 2, c // 2) for c in cuts]
    return [TRANSPOSE[x.ndim](x, w, b, strides, pairs, extra, at.get("group", 1), dilations)]


def run_causal(at, x, w, b=None, past=None):
    """A stateful plan: what lies before x comes from past; the plan leaves the state for the next block."""
    act = at.get("activation", b"none").decode()
    present = np.empty((x.shape[0], x.shape[1], w.shape[2] - 1), x.dtype)
    plan = hk.plan(x, w, padding="CAUSAL", feature_group_count=x.shape[1], bias=b, stateful=True,
                   act="silu" if act in ("silu", "swish") else None)
    return [plan(x, state_in=past, state_out=present), present]


RUN = {"Conv": run_conv, "ConvTranspose": run_transpose, "ConvInteger": run_conv_integer, "QLinearConv": run_qlinear,
       "CausalConvWithState": run_causal}


def compare(model, inputs, outputs):
    """None or what differs, for a model of one node of OPERATORS."""
    node = model.graph.node[0]
    values = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    free = [i.name for i in model.graph.input if i.name not in values]
    values.update(zip(free, inputs))
    given = [values[name] if name else None for name in node.input]
    got = RUN[node.op_type](attributes(node), *given)
    for mine, theirs in zip(got, outputs):
        # the files hold f32 results of an f32 computation in another order: sums of about |1| terms
        terms = int(np.prod(given[1].shape[1:]))
        kind = mine.dtype.name
        wrong = distance(mine, theirs, np.abs(theirs).astype(np.float64) + terms ** 0.5, terms, kind)
        if wrong:
            return wrong
    return None


def stored_cases():
    for folder in sorted(DATA.glob("*/*")):
        model_file = folder / "model.onnx"
        if "conv" in folder.name.lower() and model_file.exists():
            model = onnx.load(str(model_file))
            if len(model.graph.node) == 1 and model.graph.node[0].op_type in OPERATORS:
                for data in sorted(folder.glob("test_data_set_*")):
                    yield f"{folder.parent.name}/{folder.name}", model, data


def load_tensors(folder, prefix):
    count = len(list(folder.glob(f"{prefix}_*.pb")))
    loaded = []
    for i in range(count):
        tensor = onnx.TensorProto()
        tensor.ParseFromString((folder / f"{prefix}_{i}.pb").read_bytes())
        loaded.append(numpy_helper.to_array(tensor))
    return loaded


@pytest.mark.skipif(not DATA.exists(), reason="onnx suite: libonnx-testdata is not installed")
def test_stored_cases():
    suite = Suite("onnx-testdata", least=40)
    for name, model, data in stored_cases():
        suite.check(name, lambda: compare(model, load_tensors(data, "input"), load_tensors(data, "output")))
    suite.finish()


def generated_cases(node):
    """The node cases of OPERATORS; onnx makes all its cases at once."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.random.seed(0)
        cases = node.collect_testcases(None)
    for case in cases:
        if len(case.model.graph.node) == 1 and case.model.graph.node[0].op_type in OPERATORS:
            for inputs, outputs in case.data_sets:
                yield case.name, case.model, inputs, outputs


@pytest.mark.skipif(tuple(int(n) for n in onnx.__version__.split(".")[:2]) < (1, 16),
                    reason="onnx-generated suite: Debian's onnx cannot make its cases with Debian's numpy")
def test_generated_cases():
    node = pytest.importorskip("onnx.backend.test.case.node", reason="onnx suite: no generated node cases")
    suite = Suite("onnx-generated", least=18)
    for name, model, inputs, outputs in generated_cases(node):
        suite.check(name, lambda: compare(model, inputs, outputs))
    suite.finish()
