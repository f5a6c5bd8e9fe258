# make demo    from nothing to a fine-tuned model that runs in paddleocr; make demo-defect: the same in paddlex
# make test    style, types and every test; make fast leaves the slow tests out
# make lint    style and types alone; make format mends the style
# PYTHON picks the interpreter (3.10 to 3.12); PINS=gpu takes the GPU build of Paddle, installed beforehand.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.PHONY: demo demo-defect test fast lint format install install-dev clean

PINS ?= cpu
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
PYTHON ?= $(shell for version in 3.11 3.12 3.10; do \
	python$$version -c '' 2>/dev/null && echo python$$version && break; done)

demo: install
	$(BIN)/python tools/demo.py text

demo-defect: install
	$(BIN)/python tools/demo.py defect

test: lint
	$(BIN)/python -m pytest

fast: lint
	$(BIN)/python -m pytest -m "not slow"

lint: install-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: install-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

install: $(VENV)/installed-$(PINS)
install-dev: $(VENV)/installed-dev

# Stamps: an install runs again only when its pins or the package's metadata change.
$(BIN)/python:
	@[[ -n "$(PYTHON)" ]] || { echo "no Python 3.10 to 3.12 found; run make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@echo "creating $(VENV) with $(PYTHON)"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/installed-$(PINS): requirements/$(PINS).txt pyproject.toml | $(BIN)/python
	@echo "installing requirements/$(PINS).txt (a few minutes the first time)"
	@$(PIP) install --no-deps -r $<
	@$(PIP) install --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/installed-dev: requirements/dev.txt $(VENV)/installed-$(PINS)
	@echo "installing requirements/dev.txt"
	@$(PIP) install --no-deps -r $<
	@touch $@

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
