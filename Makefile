# SPDX-License-Identifier: MIT
# The daily commands. CMake does the building; this file only remembers how it is called.

PREFIX ?= /usr/local
PROMPT ?= Tell me the tale of Rapunzel.
FUZZ_SECONDS ?= 60
LOAD_SECONDS ?= 600
KERNELS ?= sm_80 sm_86 sm_89 sm_90 sm_120
JOBS ?= $(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)

export PATH := $(CURDIR)/build/tools/bin:$(PATH)
CONFIGURE = cmake --log-level=WARNING --preset
BUILD = cmake --build --preset
CTEST = tools/run_tests
# Options of ctest for `make test`, as in TESTS="-R engine/", and those of tests/backend that `make test-arm64` runs.
# The shell splits TESTS into words and reads no other character of it, so that -R ^(a|b)$ needs no quotes.
TESTS ?=
test: export FRIT_CTEST_OPTIONS = $(value TESTS)
ARM64_TESTS ?= $(patsubst tests/backend/%_test.c,%,$(wildcard tests/backend/*_test.c))
SOURCES = find apps bench examples include src tests tools -name '*.[ch]' 2>/dev/null
NVRTC = $(if $(wildcard build/tools/nvrtc),--nvrtc build/tools/nvrtc)
# Some kernels place a program's memory where the thread sanitizer of older compilers does not expect it.
PLATFORMS = $(shell grep -v '^\#' packaging/platforms.tsv | cut -f 1)
FIXED_LAYOUT = $(shell setarch -R true 2>/dev/null && echo setarch -R)

.PHONY: all run test check-deploy test-ray test-gpu test-webgpu test-dawn bench-gpu bench-memory test-arm64 test-agreement test-sentences test-clients test-python test-frameworks asan-python wheels test-pull test-structured web-ui test-web-ui web test-web web-package test-web-package web-page test-web-page setup dist deb check-packages check-twice release format lint check bench load kernels fuzz asan nightly tsan install clean help
.DEFAULT_GOAL := all

## make            builds build/release/frit
all: build/release/build.ninja
	@$(BUILD) release --target frit

build/release/build.ninja:
	@tools/setup --check build
	@$(CONFIGURE) release -DFRIT_TESTS=OFF

## make run        builds it and lets the bundled model tell a tale (PROMPT="..." for another question)
run:
	@tools/setup build
	@$(MAKE) --no-print-directory all
	@build/release/frit run -p "$(PROMPT)" </dev/null

## make test       builds and runs all tests
test:
	@tools/setup test
	@$(CONFIGURE) release -DFRIT_TESTS=ON
	@$(BUILD) release
	@set -f; $(CTEST) build/release -j $(JOBS) $$FRIT_CTEST_OPTIONS

## make test-gpu   compiles all kernels for NVIDIA GPUs and, where there is one, compares them with plain C
test-gpu:
	@tools/setup gpu
	@$(CONFIGURE) release -DFRIT_TESTS=ON
	@$(BUILD) release --target bench_gpu \
	    $(patsubst tests/backend/%_test.c,test_backend_%,$(wildcard tests/backend/cuda_*_test.c))
	@$(CTEST) build/release -R 'backend/cuda'
	@if build/release/bench/bench_gpu present; then build/release/bench/bench_gpu $(NVRTC) check && mkdir -p build/cubins && \
	    { for program in picks ops adapt experts cache start; do FRIT_TEST_GPU=build/cubins \
	      LD_LIBRARY_PATH=build/tools/nvrtc:$$LD_LIBRARY_PATH build/release/tests/test_backend_cuda_$$program || exit 1; \
	      done; } && \
	    { FRIT_TEST_GPU=build/cubins LD_LIBRARY_PATH=build/tools/nvrtc:$$LD_LIBRARY_PATH \
	      build/release/tests/test_backend_cuda_model -dense -moe || [ $$? -eq 77 ]; }; fi

## make test-arm64  builds for 64-bit ARM and tests its kernels, and a whole model, in an emulator (a few minutes)
test-arm64:
	@tools/setup arm64
	@tools/arm64_root
	@$(CONFIGURE) arm64
	@$(BUILD) arm64 --target frit test_base_cpu $(ARM64_TESTS:%=test_backend_%)
	@$(CTEST) build/arm64 -j $(JOBS) -R "^(emulated/|base/cpu|backend/($$(echo $(ARM64_TESTS) | tr ' ' '|'))$$)"

## make test-agreement  compares tokenizers with the tokenizers and sentencepiece packages (from PyPI) on random strings
test-agreement:
	@tools/setup --check build
	@$(CONFIGURE) release
	@$(BUILD) release --target frit_shared
	@python3 tests/text/agreement.py build/release/libfrit.so ../shared

## make test-sentences  compares embeddings with sentence-transformers (from PyPI, into build/sentences)
test-sentences:
	@tools/setup --check build
	@$(CONFIGURE) release
	@$(BUILD) release --target frit
	@[ -x build/sentences/bin/python ] || python3 -m venv build/sentences
	@build/sentences/bin/pip install -q sentence-transformers==6.2.0
	@build/sentences/bin/python tests/engine/sentences.py build/release/frit

## make test-clients  runs other people's clients (from PyPI and npm, into build/clients) against frit serve
test-clients:
	@tools/setup test
	@$(CONFIGURE) release -DFRIT_TESTS=ON
	@$(BUILD) release --target frit test_server_tools
	@tests/server/clients/clients.sh build/release/frit

## make test-pull  kills downloads at 200 random bytes, and compares the cache with huggingface-hub's (from PyPI)
test-pull: all
	@[ -x build/clients/hub/bin/python ] || python3 -m venv build/clients/hub
	@build/clients/hub/bin/pip install --quiet --disable-pip-version-check huggingface-hub
	@python3 tests/hub/pull_test.py build/release/frit --kills 200
	@build/clients/hub/bin/python tests/hub/client_test.py build/release/frit

## make test-python  checks the Python package's types and tests it (pytest, numpy ... from PyPI, into build/python)
test-python:
	@tools/setup build
	@$(CONFIGURE) release
	@$(BUILD) release --target frit frit_shared
	@bindings/python/test.sh build/release/libfrit.so build/release/frit

## make test-frameworks  LangChain's and LlamaIndex's own classes for llama-cpp-python, over the package frit (from PyPI)
test-frameworks:
	@tools/setup build
	@$(CONFIGURE) release
	@$(BUILD) release --target frit frit_shared
	@bindings/python/test.sh --setup
	@bindings/python/test.sh --frameworks
	@FRIT_FRAMEWORKS=1 bindings/python/test.sh build/release/libfrit.so build/release/frit -k frameworks

## make asan-python  the Python package's tests with a library under the address sanitizer (PYTEST="-k tensor": some of them)
asan-python:
	@$(CONFIGURE) asan
	@$(BUILD) asan --target frit frit_shared
	@FRIT_PRELOAD="$$(cc -print-file-name=libasan.so) $$(cc -print-file-name=libubsan.so)" \
	    bindings/python/test.sh build/asan/libfrit.so build/asan/frit $(PYTEST)

## make wheels     builds wheels into build/wheels, by zig (WHEELS="linux-x86_64 macos-aarch64"), or for this machine (WHEELS=native)
wheels:
	@tools/setup zig
	@tools/setup web-ui
	@bindings/python/wheel.sh build/wheels $(or $(WHEELS),$(PLATFORMS))

## make check-deploy  validates what is in deploy/, with validators from PyPI (into build/check-deploy)
check-deploy: all
	@tests/deploy/check.sh build/release/frit

## make test-ray   runs deploy/ray under Ray Serve (from PyPI, about 500 MB, into build/check-deploy/ray)
test-ray: all
	@tests/deploy/ray.sh build/release/frit

## make web-ui     builds frit with the web UI, whose libraries come from npm into build/tools/web-ui
web-ui:
	@tools/setup web-ui
	@$(CONFIGURE) release
	@$(BUILD) release --target frit

## make test-web-ui  uses the web UI in a browser (Chromium): chats, branches, panels, keyboard, accessibility
test-web-ui:
	@tools/setup browser
	@$(CONFIGURE) release -DFRIT_TESTS=ON
	@$(BUILD) release --target frit test_server_tools
	@node tests/server/web_ui/run.mjs build/release/frit

## make web        builds the modules for browsers, frit.js and frit-relaxed.js, into build/web (docs/dev/web.md)
web:
	@tools/setup wasm
	@$(CONFIGURE) web
	@$(BUILD) web --target frit frit-relaxed

## make test-web   tests them and their kernels in Node, Chromium and Firefox, beside the command with the reference kernels
test-web:
	@tools/setup wasm-test
	@$(CONFIGURE) release
	@$(BUILD) release --target frit
	@$(CONFIGURE) web
	@$(BUILD) web
	@node tests/web/run.mjs build/web build/release/frit $(ENGINES)

## make web-package  builds the npm package @frit/web into build/web-package (docs/web.md)
web-package: web
	@tools/setup web-package
	@node bindings/web/build.mjs build/tools/web-package build/web build/web-package

## make test-web-package  tests it in Node, Chromium and Firefox; make test-web-package ENGINES=firefox: in one of them
test-web-package: web-package
	@tools/setup wasm-test
	@$(CONFIGURE) release
	@$(BUILD) release --target frit
	@node tests/web/package.mjs build/web-package build/release/frit $(ENGINES)

## make web-page   builds the page that chats with models on the visitor's device, into build/web-page
web-page: web
	@tools/setup web-package
	@node bindings/web/page/build.mjs build/tools/web-ui build/web build/web-page

## make test-web-page  uses this page in Chromium: a model, an answer, without a network, accessibility
test-web-page: web-page
	@tools/setup wasm-test
	@node tests/web/page_test.mjs build/web-page build/tools/web-ui

## make test-structured  answers from random logits: 200 in each format of tool calls, under schemas, read by other programs
test-structured:
	@tools/setup --check build
	@$(CONFIGURE) release
	@$(BUILD) release --target test_grammar_answer test_grammar_schema
	@build/release/tests/test_grammar_answer --rounds 200
	@python3 tests/grammar/answers.py build/release/tests/test_grammar_schema

## make dist       writes a release into build/dist: source, archives and wheels for Linux, macOS and Windows, SBOMs, recipes, sums
dist:
	@tools/setup zig
	@tools/setup web-ui
	@packaging/dist build/dist $(DIST_NAMES)

## make deb        builds the Debian packages, into build/dist
deb:
	@tools/setup deb
	@tools/setup web-ui
	@packaging/deb build/dist

## make check-packages  checks what both wrote: runs archives, validates SBOMs and recipes, installs in a bare root
check-packages:
	@tools/setup packages || echo "what is missing skips the checks that need it"
	@tests/packaging/check.sh build/dist

## make check-twice  builds the last commit once more in another folder, and compares all files with those of build/dist
check-twice:
	@tools/setup zig
	@tools/setup deb
	@tests/packaging/twice.sh build/dist

## make release    dist, deb and check-packages, of a committed tree whose version CHANGELOG.md names (docs/dev/release.md)
release:
	@packaging/ready
	@$(MAKE) --no-print-directory dist deb check-packages

## make setup      installs what is missing on this machine, for all of the below
setup:
	@tools/setup check

## make format     lays out all C files as .clang-format says
format:
	@tools/setup check
	@$(SOURCES) | xargs clang-format -i

## make lint       format, layers, sizes, banned calls, headers: what make check does beside the tests
lint:
	@tools/setup check
	@$(CONFIGURE) debug
	@$(SOURCES) | xargs -P $(JOBS) -n 100 clang-format --dry-run -Werror
	@$(BUILD) debug --target frit_check frit_headers
	@build/debug/tools/frit_check
	@for header in include/*.h include/frit/*.h; do \
	    cc -std=c11 -pedantic -Wall -Wextra -Werror -fsyntax-only -x c $$header && \
	    c++ -std=c++17 -pedantic -Wall -Wextra -Werror -fsyntax-only -x c++ $$header || exit 1; \
	done

## make check      lint and test: run it before every commit
check: lint test

## make bench      measures the machine and the bundled model
bench: all
	@build/release/frit bench

## make kernels    compiles the kernels for NVIDIA GPUs of KERNELS="sm_80 ..." into build/dist (tools/setup gpu)
kernels: all
	@packaging/kernels build/dist $(KERNELS)

## make load       soak: loads the server for LOAD_SECONDS=600 with clients that leave, grammars and long prompts
load: all
	@python3 bench/server_load.py build/release/frit --seconds $(LOAD_SECONDS)

## make bench-memory  measures how this machine's memory is read fastest, and how products of one token read it
bench-memory:
	@$(BUILD) release --target bench_memory
	@build/release/bench/bench_memory

## make test-webgpu  compares kernels for other GPUs, and all reference models, with plain C through wgpu-native
test-webgpu:
	@tools/setup webgpu
	@$(CONFIGURE) release -DFRIT_TESTS=ON
	@$(BUILD) release --target bench_webgpu \
	    $(patsubst tests/backend/%_test.c,test_backend_%,$(wildcard tests/backend/webgpu_*_test.c))
	@$(CTEST) build/release -R 'backend/webgpu'
	@build/release/tests/test_backend_webgpu_ops all || [ $$? -eq 77 ]
	@build/release/tests/test_backend_webgpu_recurrent all || [ $$? -eq 77 ]
	@build/release/tests/test_backend_webgpu_model "" || [ $$? -eq 77 ]

## make test-dawn  the same through Dawn, from a root of Debian unstable that debootstrap makes
test-dawn:
	@$(CONFIGURE) release -DFRIT_TESTS=ON
	@$(BUILD) release --target $(patsubst tests/backend/%_test.c,test_backend_%,$(wildcard tests/backend/webgpu_*_test.c))
	@tests/webgpu/dawn.sh build/release

## make bench-gpu  measures the kernels for NVIDIA GPUs: products, whole decode steps, and what they are compared with
bench-gpu:
	@tools/setup gpu
	@$(CONFIGURE) release
	@$(BUILD) release --target bench_gpu
	@build/release/bench/bench_gpu $(NVRTC) --cache build/cubins

## make fuzz       feeds random input to every parser, or to FUZZ_TARGETS="grammar schema", FUZZ_SECONDS=60 each
fuzz:
	@tools/setup fuzz
	@$(CONFIGURE) fuzz
	@$(BUILD) fuzz
	@for target in $(or $(FUZZ_TARGETS:%=build/fuzz/tests/fuzz_%),build/fuzz/tests/fuzz_*); do \
	    name=$${target##*/fuzz_}; corpus=build/fuzz/corpus/$$name; mkdir -p $$corpus; \
	    echo "== $$name"; \
	    $$target -max_total_time=$(FUZZ_SECONDS) -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
	        -artifact_prefix=$$corpus- $$corpus $$(ls -d tests/fuzz/seeds/$$name 2>/dev/null) || exit 1; \
	done

## make asan       runs the tests under the address and undefined-behaviour sanitizers
asan:
	@tools/setup test
	@$(CONFIGURE) asan -DFRIT_SANITIZE_ALL=OFF
	@$(BUILD) asan
	@$(CTEST) build/asan -j $(JOBS)

## make nightly    what takes too long for every change: all of clang's build, all tests on ARM, and under all sanitizers
nightly:
	@$(MAKE) --no-print-directory lint test test-arm64
	@$(CONFIGURE) clang
	@$(BUILD) clang
	@$(CTEST) build/clang -j $(JOBS) -LE nightly
	@$(MAKE) --no-print-directory asan-python
	@FRIT_TEST_AHEAD=1 $(MAKE) --no-print-directory test-python
	@$(CONFIGURE) asan -DFRIT_SANITIZE_ALL=ON
	@$(BUILD) asan
	@$(CTEST) build/asan -j $(JOBS)
	@$(MAKE) --no-print-directory tsan

## make tsan       runs the tests under the thread sanitizer
tsan:
	@tools/setup test
	@$(CONFIGURE) tsan
	@$(BUILD) tsan
	@$(FIXED_LAYOUT) $(CTEST) build/tsan -j $(JOBS)

## make install    installs command, man page, completions, library and model under PREFIX=/usr/local (DESTDIR is heeded)
install:
	@tools/setup build
	@$(CONFIGURE) release -DFRIT_TESTS=OFF -DCMAKE_INSTALL_PREFIX="$(PREFIX)"
	@$(BUILD) release --target frit frit_static frit_shared frit_printed
	@cmake --install build/release

## make clean      removes everything that was built (tools that setup fetched stay)
clean:
	@find build -mindepth 1 -maxdepth 1 ! -name tools -exec rm -rf {} + 2>/dev/null || true

help:
	@sed -n 's/^## //p' Makefile
