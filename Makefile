# SPDX-License-Identifier: Apache-2.0
# The short way in. Everything here is a thin call of CMake (see CMakePresets.json) or of a script in scripts/.

BUILD   := build/host
TRACE   := examples/traces/geglu_64x128x768x3072_eager.json.gz
PREFIX  ?= /usr/local
LAUNCH  := $(if $(shell command -v ccache),-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
FORMAT  := git ls-files -z --cached --others --exclude-standard -- '*.cpp' '*.h' '*.cuh' '*.cu'

# A second checkout on the same machine compiles nothing that the first has compiled.
export CCACHE_BASEDIR := $(CURDIR)
export CCACHE_NOHASHDIR := 1

.DEFAULT_GOAL := help
.PHONY: help setup build run test bench lint format install clean

help:  ## this list
	@sed -n 's/^\([a-z]*\):.*##  *\(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

setup:  ## install the Debian packages that are missing
	@scripts/setup.sh

build: setup  ## release build in build/host
	@cmake --preset host $(LAUNCH) >/dev/null
	@cmake --build --preset host

run: build  ## build, explain a recorded trace, then bench the MLP found in it
	$(BUILD)/src/ingot explain $(TRACE)
	@echo
	$(BUILD)/src/ingot bench --from-trace $(TRACE)

test: setup  ## build and run every test: release, sanitizers, lint
	@scripts/setup.sh browser || echo "setup: no headless Chromium; the tests that need it are skipped"
	@python3 scripts/test.py

bench: build  ## run the benchmarks
	@cmake --build --preset host --target bench

lint: setup  ## formatting, static analysis, include rules, house rules
	@cmake --preset host $(LAUNCH) >/dev/null
	@python3 tests/lint/lint.py

format: setup  ## rewrite all C++ in the house format
	@$(FORMAT) | xargs -0 -r clang-format -i

install: build  ## install headers, library and command under PREFIX
	@cmake --install $(BUILD) --prefix $(PREFIX)

clean:  ## remove every build
	@rm -rf build
