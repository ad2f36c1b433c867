# make sweep: run the main job. make test: run the tests. Both set up .venv first, once.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
INSTALLED := $(VENV)/.installed
FOR_DOCS := $(VENV)/.installed-docs

.PHONY: sweep test lint docs tables gallery setup clean

sweep: $(INSTALLED)
	@echo "Running the main sweep (capmem-sweep, preset main); about half a minute on two cores"
	@$(RUN) -m analyses.sweep

test: $(INSTALLED)
	@echo "Running the tests (pytest); in parallel; the slow ones: $(RUN) -m pytest -m slow"
	@$(RUN) -m pytest -n auto --maxprocesses 4 --dist loadfile

lint: $(INSTALLED)
	@$(RUN) -m pip install --quiet --disable-pip-version-check -e '.[lint]'
	@$(RUN) -m ruff check .
	@$(RUN) -m mypy

docs: $(FOR_DOCS)
	@$(RUN) -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo "The pages: docs/_build/html/index.html"

tables: $(INSTALLED)
	@$(RUN) -m capmem.catalogue

gallery: $(INSTALLED)
	@echo "Rendering the gallery into outputs/gallery; a second time only redraws; some: make gallery NAMES='heatmap heads'"
	@$(RUN) -m capmem.gallery $(NAMES)

setup: $(INSTALLED)

$(INSTALLED): setup.cfg pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(v < (3, 11) and f"capmem needs Python 3.11 or newer, {sys.executable} is {v[0]}.{v[1]}: make PYTHON=python3.12 ...")'
	@echo "Setting up $(VENV): installing capmem and what it needs (once, a minute or two)"
	@$(PYTHON) -m venv $(VENV)
	@$(RUN) -m pip install --quiet --disable-pip-version-check -e '.[test]'
	@touch $@

$(FOR_DOCS): $(INSTALLED)
	@echo "Installing what the documentation is built with"
	@$(RUN) -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	@touch $@

clean:
	rm -rf $(VENV) build docs/_build *.egg-info
