"""Findings on a terminal: a sentence a line, wrapped, tables as they are; and the gallery reads the same text back."""

from pathlib import Path

import pytest

from capmem.gallery.told import printed
from capmem.studies.prose import laid_out, sentences, wrapped

LONG = " ".join(["One finding of several words, at N = 8.5 and d = 64"] * 4) + "."
TABLE = "name   error\nplain   0.50"


def test_each_sentence_begins_a_line_and_no_line_is_longer_than_the_terminal():
    lines = wrapped(f"Short. {LONG} N* grows, e.g. by 2.5.", 60).splitlines()
    assert lines[0] == "Short." and lines[-1] == "N* grows, e.g. by 2.5."
    assert all(len(line) <= 60 for line in lines)
    assert len(lines) > 4 and all(line.startswith("  ") for line in lines[2:-1])


def test_a_question_is_told_with_its_answer():
    assert sentences("Worth it? Spearman 0.9. Yes.") == ["Worth it? Spearman 0.9.", "Yes."]


def test_tables_keep_their_layout():
    assert wrapped(f"A finding.\n\n{TABLE}", 10) == f"A finding.\n\n{TABLE}"
    assert laid_out(TABLE) and laid_out("a  b") and not laid_out("  a b ")


def test_a_word_longer_than_a_line_is_not_cut():
    assert wrapped("a " + "b" * 30, 10) == "a\n  " + "b" * 30


@pytest.mark.parametrize("columns", [40, 100])
def test_what_is_wrapped_reads_back_as_the_same_text(columns):
    text = f"The first. {LONG} The last."
    output = f"lead\n\n{wrapped(text, columns)}\n\nIn a folder:"
    assert printed("The first")(output, Path()) == text
    assert printed("One finding", others=False)(output, Path()) == LONG  # this statement alone
    assert printed("lead", others=False)(output, Path()) == "lead"


def test_the_terminal_decides_how_long_a_line_is(monkeypatch):
    for columns, most in (("50", 50), ("300", 100)):
        monkeypatch.setenv("COLUMNS", columns)
        assert most - 15 < max(map(len, wrapped(LONG).splitlines())) <= most
