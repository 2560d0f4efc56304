"""The words that were given up stay given up: planted, each is found; where it is another word, it is not."""

from __future__ import annotations

import ast

import pytest

from tools.words import NAMES, PARTS, PROSE, check_names, check_prose


def names(source: str, path: str = "rgs/core/x.py") -> list[str]:
    return [what for _, _, what in check_names(path, ast.parse(source))]


@pytest.mark.parametrize("part", PARTS)
def test_a_name_with_an_old_part_is_refused(part: str) -> None:
    for source in (
        f"{part}_id = 1",
        f"def pay_{part}s(): ...",
        f"class My{part.capitalize()}: ...",
        f"def f({part}): ...",
    ):
        assert names(source) != [], source
        assert names(source, "rng/drbg.py") == []


@pytest.mark.parametrize("name", NAMES)
def test_an_old_name_is_refused_and_its_successor_named(name: str) -> None:
    assert names(f"class {name}: ...") == [f"{name}: say {NAMES[name]}"]


def test_a_name_that_another_library_gave_may_be_used() -> None:
    assert names("position = stream.tell()\nfull_house = FullHouse = 1\nlegal = collegiate = retold = 1") == []
    assert names("def test_what_was_told_once(): ...") == []


@pytest.mark.parametrize("word", PROSE)
def test_an_old_word_of_prose_is_refused(word: str) -> None:
    text = f"One {word}.\n\nTwo {word.replace(' ', chr(10))}s.\n"
    assert [(line, rule) for line, rule, _ in check_prose("docs/x.md", text)] == [(1, "old word"), (3, "old word")]
    assert list(check_prose("docs/decisions/0001-x.md", text)) == []
