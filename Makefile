# The front door. CMake and Ninja do the work; `make run` and `make test` are all a newcomer needs.
#   make run          set up, build, show what hankel does
#   make test         set up, build, run every test      (SAN=address,undefined or SAN=thread: under sanitizers)
#   make coverage     lines of src/plan and src/cpu that `hankel check --random` alone reaches (COVERAGE_ARGS=N problems)
#   make cuda         compile the CUDA kernels alone
#   make test-frameworks   the PyTorch and JAX bindings with the newest of both, in a venv of its own (downloads gigabytes)
#   make docs         the documents as a site in build/site, with search and the API of hankel.h (needs mkdocs)
#   make wheel | deb  packages in dist/: a wheel for pip, .deb files for apt (WHEEL_ARCH=aarch64: cross-built)
#   make build | bench | test-gpu | bench-gpu | install | uninstall | format | lint | clean | setup
# PREFIX and DESTDIR as usual; JOBS; CMAKE_ARGS reach cmake; TEST_ARGS reach ctest, e.g. TEST_ARGS="-L quick",
# BENCH_ARGS `hankel bench`, e.g. BENCH_ARGS="--layout first --only r50".
SHELL := /bin/bash
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)
SAN ?=
comma := ,
BUILD ?= $(if $(SAN),build-san-$(subst $(comma),-,$(SAN)),build)
TYPE ?= $(if $(SAN),RelWithDebInfo,Release)

# The kernels of the device take nvcc minutes: the demo does without them where there is no GPU to run them.
WITH_CUDA := ON
run: WITH_CUDA := $(if $(wildcard /dev/nvidiactl $(BUILD)/cuda/*.fatbin),ON,OFF)

.PHONY: run test test-frameworks configure build cuda coverage bench test-gpu bench-gpu install uninstall \
  docs wheel deb format lint clean setup
.DEFAULT_GOAL := build

run: configure
	cmake --build $(BUILD) -j $(JOBS) --target hk_cli
	$(BUILD)/bin/hankel demo

configure: setup
	@cmake -S . -B $(BUILD) -G Ninja -DCMAKE_BUILD_TYPE=$(TYPE) -DHK_CUDA=$(if $(SAN),OFF,$(WITH_CUDA)) \
	  $(if $(SAN),-DHK_SANITIZE=$(SAN) -DHK_BENCH=OFF) $(CMAKE_ARGS) \
	  > $(BUILD).log 2>&1 || { cat $(BUILD).log; exit 1; }
	@grep '^-- hankel:' $(BUILD).log || true; mv -f $(BUILD).log $(BUILD)/configure.log

build: configure
	cmake --build $(BUILD) -j $(JOBS)

cuda: configure
	cmake --build $(BUILD) -j $(JOBS) --target hk_cuda

test: build
	@scripts/test.sh $(BUILD) $(JOBS) $(TEST_ARGS)

test-frameworks: configure
	cmake --build $(BUILD) -j $(JOBS) --target hankel hankel_jax
	scripts/frameworks.sh $(BUILD) $(TEST_ARGS)

coverage: setup
	scripts/coverage.sh $(JOBS) $(COVERAGE_ARGS)

bench: build
	scripts/bench.sh $(BUILD) cpu $(BENCH_ARGS)

test-gpu: build
	$(BUILD)/bin/hankel info --device cuda
	@scripts/test.sh $(BUILD) 1 -L gpu --no-tests=error

bench-gpu: build
	bench/gpu/run.sh $(BUILD) $(BENCH_ARGS)

install: build
	cmake -S . -B $(BUILD) -DCMAKE_INSTALL_PREFIX=$(PREFIX) > /dev/null
	DESTDIR=$(DESTDIR) cmake --install $(BUILD)

uninstall:
	DESTDIR=$(DESTDIR) scripts/uninstall.sh $(BUILD) $(PREFIX)

docs:
	python3 docs/site/build.py $(BUILD)/site

wheel:
	JOBS=$(JOBS) scripts/wheel.sh dist $(WHEEL_ARCH)

deb:
	JOBS=$(JOBS) scripts/deb.sh dist

format:
	scripts/lint.sh format

lint: build
	scripts/lint.sh check $(BUILD)

clean:
	rm -rf build build-*

setup:
	@scripts/setup.sh
