"""The tutorial says what its code prints: every block is run, in order, and compared with the page.

Why the printed digits are the same elsewhere: all draws are seeded and in float64, and what `measure` gives is computed
in float64 too. Rounding, some 1e-13 of a number, does not reach the two to four digits that are printed. Capacities
that are simulated or of real heads are computed in float32; of those two digits or whole numbers are printed.
"""

import hashlib
import importlib.util
import io
import re

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from capmem import LinearMemory, evaluate
from capmem.feature_maps import Identity
from tests.conftest import ROOT

DOCS = ROOT / "docs"
SPEC = importlib.util.spec_from_file_location("tutorial_render", DOCS / "tutorial" / "render.py")
render = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(render)

TEXT = render.PAGE.read_text(encoding="utf-8")
BLOCKS = render.blocks(TEXT)
STALE = "run: python docs/tutorial/render.py"
NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?")


@pytest.fixture(scope="module")
def ran():
    return list(render.run(BLOCKS))


@pytest.mark.parametrize("place", range(len(BLOCKS)))
def test_block_prints_what_the_page_says(ran, place):
    assert render.fault(BLOCKS[place], ran[place]) is None, STALE


def test_every_fence_of_code_and_output_belongs_to_a_block():
    assert len(BLOCKS) > 14
    assert render.unread(TEXT) == 0
    assert TEXT.count("![") == sum(block.picture is not None for block in BLOCKS) >= 3


def test_pictures_show_the_numbers_of_the_code(ran):
    for block, result in zip(BLOCKS, ran, strict=True):
        if block.picture:
            stored = pd.read_csv((DOCS / block.picture).with_suffix(".csv"))
            drawn = pd.read_csv(io.StringIO(render.numbers(result.grid)))
            pd.testing.assert_frame_equal(drawn, stored, check_exact=False, rtol=1e-3, atol=1e-9, obj=STALE)


def test_pictures_are_small_and_drawn_from_the_tables_beside_them():
    pictures = sorted(DOCS / block.picture for block in BLOCKS if block.picture)
    assert pictures == sorted((DOCS / "tutorial").glob("*.png"))
    assert sum(picture.stat().st_size for picture in pictures) < 300_000
    for picture in pictures:
        digest = hashlib.sha256(picture.with_suffix(".csv").read_bytes()).hexdigest()
        with Image.open(picture) as image:
            assert image.text[render.NUMBERS] == digest, STALE


def test_rendering_a_current_page_changes_nothing(ran):
    assert render.updated(TEXT, ran) == TEXT


def dead_links(text):
    """Return links of the page, seen from docs, to a file or a heading that is not there."""
    dead = []
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        name, _, heading = link.partition("#")
        if not (DOCS / name).is_file() or (heading and heading not in _headings(DOCS / name)):
            dead.append(link)
    return dead


def _headings(page):
    """Return the headings of a page as MyST and GitHub make anchors of them."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-") for title in titles}


def test_links_lead_to_files_and_headings_that_exist():
    assert dead_links(TEXT) == []


def test_a_link_to_a_heading_that_was_renamed_is_found():
    assert dead_links("[a](mathematics.md#set-up), [b](mathematics.md#setup)") == ["mathematics.md#setup"]


def test_commands_exist():
    scripts = re.findall(r"^    (capmem-[\w-]+) = ", (ROOT / "setup.cfg").read_text(), re.MULTILINE)
    told = set(re.findall(r"`(capmem-[\w-]+)", TEXT))
    assert len(told) > 10 and told <= set(scripts)


def test_every_step_names_its_command():
    steps = re.split(r"^## \d+\. ", TEXT, flags=re.MULTILINE)[1:]
    assert len(steps) == 15 and all("`capmem-" in step for step in steps)


def test_lines_of_blocks_fit_the_page():
    lines = "".join(block.code + (block.output or "") for block in BLOCKS).splitlines()
    assert [line for line in lines if len(line) > 88] == []


# What the comparison is worth: a page with a fault must fail.


@pytest.mark.parametrize("place", [i for i, block in enumerate(BLOCKS) if block.output])
def test_a_block_without_its_output_is_a_fault(ran, place):
    shown = f"\n```text\n{BLOCKS[place].output}```\n"
    page = render.blocks(TEXT.replace(shown, "\n"))
    assert len(page) == len(BLOCKS)
    assert "the output is missing" in render.fault(page[place], ran[place])


def test_an_output_with_another_digit_is_a_fault(ran):
    changed = TEXT.replace("numbers in the state: 1056", "numbers in the state: 1057")
    faults = [render.fault(block, result) for block, result in zip(render.blocks(changed), ran, strict=True)]
    assert sum(fault is not None for fault in faults) == 1
    assert render.updated(changed, ran) == TEXT


@pytest.mark.parametrize(
    "page, told",
    [
        ("```python\nx = 1\n```\n", "shows nothing"),
        ("```python\nprint(1)\n```\n\nSome prose.\n\n```text\n1\n```\n", "output is missing"),
        ("```python\nprint(1)\n```\n\n```text\n1\n```\n\n![a](b.png)\n", "a picture a figure"),
    ],
)
def test_a_page_that_does_not_show_its_results_is_a_fault(page, told):
    (block,) = render.blocks(page)
    (result,) = render.run([block])
    assert told in render.fault(block, result)


def test_a_block_that_fails_is_named_by_its_line_in_the_page():
    page = "# Title\n\n```python\nx = 1\nx / 0\n```\n"
    with pytest.raises(ZeroDivisionError) as failed:
        list(render.run(render.blocks(page)))
    assert failed.traceback[-1].lineno + 1 == 5


def test_an_output_apart_from_its_block_is_counted():
    assert render.unread("```python\nprint(1)\n```\n\nProse.\n\n```text\n1\n```\n") == 1


def unprinted(text):
    """Return numbers of the prose that no code or output above, or in the same step, contains."""
    known, missing = set(), []
    for step in re.split(r"(?=^## )", text, flags=re.MULTILINE):
        fenced = re.findall(r"^```.*?^```$", step, re.DOTALL | re.MULTILINE)
        known |= {number for fence in fenced for number in _numbers(fence)}
        prose = re.sub(r"^## \d+\.|^```.*?^```$|\]\([^)]*\)|\$\$.*?\$\$|steps?\s+\d+(\s+and\s+\d+)?", "", step,
                       flags=re.DOTALL | re.MULTILINE)  # fmt: skip
        missing += [number for number in _numbers(prose) if number not in known]
    return missing


def _numbers(text):
    return [float(found.rstrip(",").replace(",", "")) for found in NUMBER.findall(text)]


def test_numbers_in_the_prose_are_printed_or_set_by_the_code():
    assert unprinted(TEXT) == []


def test_real_keys_hold_fewer_values_that_are_unrelated_to_them(rng):
    keys, values = (np.load(ROOT / f"samples/minilm/{name}.npz") for name in ("keys", "values"))
    for head in keys.files:
        own, other = (
            evaluate(LinearMemory(Identity(), key_center="mean"), keys[head], rows, num_pairs=32, trials=16)
            for rows in (values[head], rng.permutation(values[head]))
        )
        assert _mean_error(own) < _mean_error(other) - 0.02


def _mean_error(records):
    return np.mean([record["scale_optimal_error"] for record in records])


def test_a_number_that_nothing_prints_is_found():
    claim = "Independent keys of this dimension hold 33"
    assert claim in TEXT
    assert unprinted(TEXT.replace(claim, claim.replace("33", "37"))) == [37]
