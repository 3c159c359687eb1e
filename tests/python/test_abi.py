"""The ctypes mirror against hankel.h: struct sizes, field offsets, constants, the struct-size rule."""
import ctypes
import os
import re
import subprocess

import pytest

from conftest import SOURCE
from libhankel import _abi, _abi_causal, _abi_longconv, _abi_rig, _abi_stream
from libhankel._native import lib

STRUCTS = {"hk_strides": _abi.Strides, "hk_problem": _abi.RawProblem, "hk_conv_desc": _abi.ConvDesc,
           "hk_extent": _abi.Extent, "hk_at": _abi.At, "hk_epilogue": _abi.Epilogue, "hk_options": _abi.Options,
           "hk_weights": _abi.Weights, "hk_args": _abi.Args, "hk_candidate": _abi.Candidate,
           "hk_machine": _abi.Machine, "hk_gpu": _abi.Gpu, "hk_step_act": _abi_stream.StepAct,
           "hk_step": _abi_stream.Step, "hk_chain_desc": _abi_stream.ChainDesc,
           "hk_chain_facts": _abi_stream.ChainFacts, "hk_causal_strides": _abi_causal.CausalStrides,
           "hk_causal_desc": _abi_causal.CausalDesc, "hk_causal_args": _abi_causal.CausalArgs,
           "hk_causal_grads": _abi_causal.CausalGrads, "hk_longconv_desc": _abi_longconv.LongconvDesc,
           "hk_longconv_args": _abi_longconv.LongconvArgs, "hk_longconv_grads": _abi_longconv.LongconvGrads}
NAM_STRUCTS = {"hk_nam_options": _abi_stream.NamOptions, "hk_nam_facts": _abi_stream.NamFacts,
               "hk_rig_options": _abi_rig.RigOptions, "hk_rig_part_facts": _abi_rig.RigPartFacts,
               "hk_rig_controls": _abi_rig.RigControls}
HEADERS = {"include/hankel.h": STRUCTS, "apps/nam/hankel_nam.h": NAM_STRUCTS}


def header_constants():
    """(C name, value the mirror holds)"""
    pairs = [(name, i) for i, name in enumerate(_abi.STATUS)]
    for name in ("F32", "F64", "F16", "BF16", "S8", "U8", "S32", "F8E4M3", "CPU", "CUDA", "CHANNELS_FIRST",
                 "CHANNELS_LAST", "MAX_RANK"):
        pairs.append(("HK_" + name, getattr(_abi, name)))
    pairs += [("HK_CAUSAL_" + name, getattr(_abi_causal, name)) for name in ("BATCH", "OFFSETS", "IDS")]
    for prefix, table in (("HK_PAD_", _abi.PADDING), ("HK_ACT_", _abi.ACT), ("HK_GATE_", _abi.GATE),
                          ("HK_ISA_", _abi.ISA), ("HK_RESIDUAL_", _abi.RESIDUAL), ("HK_", _abi.RIGOR),
                          ("HK_DENORMALS_", _abi.DENORMALS), ("HK_MATH_", _abi.MATH),
                          ("HK_STEP_", _abi_stream.STEP_KIND), ("HK_RIG_", _abi_rig.LEVEL)):
        for name, value in table.items():
            if name is not None and name != "same":
                pairs.append((prefix + name.upper(), value))
    return pairs


def test_header_agrees(tmp_path):
    lines = ["#include <hankel_nam.h>", "#include <stdio.h>", "int main(void) {"]
    expected = []
    for name, struct in {**STRUCTS, **NAM_STRUCTS}.items():
        lines.append(f'printf("%zu\\n", sizeof({name}));')
        expected.append((f"sizeof({name})", ctypes.sizeof(struct)))
        for field, *_ in struct._fields_:
            lines.append(f'printf("%zu\\n", offsetof({name}, {field.rstrip("_")}));')
            expected.append((f"{name}.{field}", getattr(struct, field).offset))
    for name, value in header_constants():
        lines.append(f'printf("%d\\n", (int){name});')
        expected.append((name, value))
    source = tmp_path / "sizes.c"
    source.write_text("\n".join(lines + ["return 0;", "}"]))
    program = str(tmp_path / "sizes")
    subprocess.run([os.environ.get("HK_CC", "cc"), "-I", str(SOURCE / "include"), "-I",
                    str(SOURCE / "apps" / "nam"), str(source), "-o", program], check=True)
    printed = subprocess.run([program], check=True, capture_output=True, text=True).stdout.split()
    assert [(n, int(p)) for (n, _), p in zip(expected, printed)] == expected


@pytest.mark.parametrize("header", list(HEADERS))
def test_every_field_is_mirrored(header):
    text = re.sub(r"/\*.*?\*/", "", (SOURCE / header).read_text(), flags=re.S)
    for name, struct in HEADERS[header].items():
        body = re.search(r"typedef struct %s \{(.*?)\} %s;" % (name, name), text, re.S).group(1)
        fields = []
        for part in body.split(";"):
            for piece in part.split(","):
                found = re.search(r"(\w+)\s*(\[\w+\])?\s*$", piece.strip())
                if found:
                    fields.append(found.group(1))
        assert fields == [f[0].rstrip("_") for f in struct._fields_], name


def test_packed_structs_are_the_structs():
    """Arguments that travel as bytes have the layout of their struct, all fields 8 bytes wide."""
    for packed, struct in ((_abi_causal.ARGS, _abi_causal.CausalArgs), (_abi_causal.GRADS, _abi_causal.CausalGrads)):
        assert packed.size == ctypes.sizeof(struct)
        raw = struct.from_buffer_copy(packed.pack(*range(packed.size // 8)))
        values = []
        for name, kind in struct._fields_:
            part = getattr(raw, name)
            values += [part.outer, part.channel, part.time] if kind is _abi_causal.CausalStrides else [part or 0]
        assert values == list(range(packed.size // 8))


def test_functions_are_exported():
    text = re.sub(r"/\*.*?\*/", "", (SOURCE / "include" / "hankel.h").read_text(), flags=re.S)
    for name in re.findall(r"HK_API[^;(]*?(hk_\w+)\(", text):
        assert hasattr(lib, name), name


@pytest.mark.parametrize("wrong", [0, -4, 8])
def test_wrong_struct_size_is_refused(wrong):
    problem = _abi.RawProblem()
    assert lib.hk_problem_parse(problem, b"mb1_ic2ih5_oc3oh5_kh3ph1") == _abi.OK
    assert lib.hk_problem_check(problem) == _abi.OK
    problem.size -= 8  # an older header: what it lacks, here the stride of a third dimension, is zero
    assert lib.hk_problem_check(problem) == _abi.OK
    problem.size += 8
    problem.size = 0 if wrong == 0 else problem.size + wrong
    assert lib.hk_problem_check(problem) == _abi.INVALID
    assert b"size" in lib.hk_last_error()


@pytest.mark.parametrize("make", [_abi.Epilogue, _abi.Options, _abi.Weights])
def test_wrong_size_of_what_a_plan_takes(make):
    problem = _abi.RawProblem()
    assert lib.hk_problem_parse(problem, b"mb1_ic2ih5_oc3oh5_kh3ph1") == _abi.OK
    struct = make()
    struct.size += 8
    given = [struct if make is kind else None for kind in (_abi.Epilogue, _abi.Options, _abi.Weights)]
    plan = ctypes.c_void_p()
    assert lib.hk_plan_create(ctypes.byref(plan), problem, *given) == _abi.INVALID
    assert b"size" in lib.hk_last_error() and not plan
