"""help() teaches: every public name has a docstring, every example in one runs, every function says its keywords and
their types, and the package tells type checkers so (py.typed)."""
import doctest
import importlib
import importlib.util
import inspect
import pkgutil
import re
import subprocess
import sys

import pytest

import libhankel as hk
from conftest import SOURCE

PACKAGE = SOURCE / "python" / "libhankel"
MODULES = sorted(info.name for info in pkgutil.walk_packages([str(PACKAGE)], "libhankel."))
PUBLIC = [getattr(hk, name) for name in hk.__all__ if callable(getattr(hk, name))] + [
    hk.compat.depthwise_conv1d_implicit_gemm, hk.compat.depthwise_conv1d_plan, hk.compat.get_igemm_conv2d]
CONVOLUTIONS = [hk.conv, hk.plan, hk.conv1d, hk.conv2d, hk.conv3d, hk.depthwise_conv1d, hk.conv_transpose1d,
                hk.conv_transpose2d, hk.conv_transpose3d]


FRAMEWORKS = ("jax", "torch")  #: what some modules need


def loaded(name):
    """A module of the package; None where the framework it needs is not installed."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name not in FRAMEWORKS:
            raise
        return None


def module(name):
    """A module of the package, or a test that is skipped."""
    return loaded(name) or pytest.skip("a framework is not installed")


@pytest.mark.parametrize("name", ["libhankel"] + MODULES)
def test_examples_run(name):
    failed, _ = doctest.testmod(module(name))
    assert failed == 0


def test_there_are_examples():
    runner, taught = doctest.DocTestFinder(), set()
    for found in filter(None, map(loaded, MODULES)):
        taught |= {test.name.split(".")[-1] for test in runner.find(found) if test.examples}
    assert {f.__name__ for f in CONVOLUTIONS} | {"Plan", "Problem", "Epilogue", "Function", "candidates",
                                                 "get_igemm_conv2d", "conv_grad_filter"} <= taught


@pytest.mark.parametrize("thing", PUBLIC, ids=lambda thing: thing.__name__)
def test_docstring_and_explicit_keywords(thing):
    assert inspect.getdoc(thing)
    if isinstance(thing, type) and issubclass(thing, Exception):
        return
    parameters = inspect.signature(thing).parameters.values()
    assert not [p.name for p in parameters if p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]


@pytest.mark.parametrize("function", CONVOLUTIONS, ids=lambda f: f.__name__)
def test_keywords_have_types_and_typos_are_named(function):
    signature = inspect.signature(function)
    for name in ("act", "residual", "beta", "threads", "decision", "x_zero", "out", "stateful", "math"):
        assert signature.parameters[name].annotation is not inspect.Parameter.empty, name
    for wrong, right in (("thread", "threads"), ("residuals", "residual"), ("decison", "decision")):
        with pytest.raises(TypeError, match=f"unexpected keyword argument '{wrong}'; did you mean '{right}'"):
            function(None, None, **{wrong: 1})
    assert "act: 'Act' = None" in str(signature) and function.__name__ in str(help_text(function))


def help_text(thing):
    import pydoc
    return pydoc.render_doc(thing, renderer=pydoc.plaintext)


def test_functions_of_the_package_are_annotated():
    """Every public function and method: its parameters and its result."""
    bare = []
    for module in ["libhankel"] + [m for m in MODULES if "._" not in m]:
        for thing in vars(loaded(module)).values() if loaded(module) else ():
            home = str(getattr(thing, "__module__", ""))
            if not callable(thing) or home != module and (module != "libhankel" or not home.startswith("libhankel")):
                continue
            members = [m for n, m in vars(thing).items() if not n.startswith("_") and inspect.isfunction(m)] \
                if isinstance(thing, type) else [thing]
            bare += [f"{module}.{m.__qualname__}" for m in members if "return" not in
                     inspect.unwrap(m).__annotations__ and m.__doc__ and not m.__qualname__.startswith("_")]
    internal = {"extents", "reach", "empty_output", "key"}
    assert not {name for name in bare if name.split(".")[-1] not in internal}


def test_py_typed_is_there():
    assert (PACKAGE / "py.typed").exists()


def test_type_checker():
    if subprocess.run([sys.executable, "-m", "mypy", "--version"], capture_output=True).returncode:
        pytest.skip("mypy is not installed")
    program = "import libhankel as hk\nhk.conv2d(1, 2, stride=2, act='relu', threads=2)\nhk.conv2d(1, 2, thread=2)\n"
    run = subprocess.run([sys.executable, "-m", "mypy", "--no-incremental", "--follow-imports=silent", "-c", program],
                         capture_output=True, text=True, cwd=str(SOURCE / "python"))
    assert "thread" in run.stdout and "Found 1 error" in run.stdout, run.stdout


def test_readme_program_runs():
    """The program of python/README.md runs as it stands."""
    for program in re.findall(r"```python\n(.*?)```", (SOURCE / "python" / "README.md").read_text(), re.S):
        if all(importlib.util.find_spec(name) for name in FRAMEWORKS if f"import {name}" in program):
            exec(compile(program, "README.md", "exec"), {})
