# Needs only Python 3.11+ and make: every target makes the virtual environment that it uses.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PEER := .venv-peer

.PHONY: plan test peer bench validate memory docs clean

plan: $(VENV)/.installed  ## plan Llama 3.1 405B on 1,024 H100s
	$(BIN)/tradespace plan examples/llama-3.1-405b/config.json dgx-h100 --devices 1024 --global-batch 512 --seq 8192 --out plan.png

test: $(VENV)/.installed-dev  ## lint, types, tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -n 2

peer: $(PEER)/.installed  ## our Chakra traces in mlc-chakra's own decoder, and its in ours
	$(PEER)/bin/python tests/astra/roundtrip_chakra.py

bench: $(VENV)/.installed-dev  ## candidates per second, as ratios in one run
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/explore.py
	$(BIN)/python benchmarks/network.py

validate: $(VENV)/.installed  ## predicted beside measured runs
	$(BIN)/tradespace validate

memory: $(VENV)/.installed  ## the page on predicted and measured memory
	$(BIN)/tradespace validate --out docs --format csv > /dev/null

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(VENV)/bin/python
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[all]'
	touch $@

$(VENV)/.installed-dev: pyproject.toml | $(VENV)/bin/python
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $@

# mlc-chakra pins old versions of what its decoder does not need: installed alone, apart from everything else.
$(PEER)/.installed: pyproject.toml
	$(PYTHON) -m venv $(PEER)
	$(PEER)/bin/pip install --quiet --disable-pip-version-check -e . "protobuf>=6.31.1"
	$(PEER)/bin/pip install --quiet --disable-pip-version-check --no-deps mlc-chakra
	touch $@

clean:
	rm -rf $(VENV) $(PEER) plan.png
