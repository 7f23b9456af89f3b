"""Every string that a person sees is written once, in English, where a translation can be found for it, and has one."""

from __future__ import annotations

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from babel.messages.pofile import read_po
from jinja2 import Environment, nodes

from app.chat.sentences import SLOT
from app.translations.collect import IN_TEMPLATES, ROOT, UntranslatableError, of_python, sentences
from app.web.languages import ENGLISH, NAMES, TRANSLATIONS

TEMPLATES = sorted((ROOT / "templates").glob("*.html"))
SCRIPTS = sorted((ROOT / "static/js").glob("*.js"))
OTHERS = [name for name in NAMES if name != ENGLISH]
HTML_TAG = re.compile(r"</?\w+[^>]*>")
SEEN_ATTRIBUTES = ("title", "aria-label", "placeholder", "alt", "label")
WORD = re.compile(r"[A-Za-z]{2,}")
NAMES_OF_KEYS = {"Enter", "Shift", "Shift+Enter", "Esc"}  # as they stand on the keys
PROSE = re.compile(r"[A-Z]?[a-z]+,?( [a-z]+)+|[A-Z][a-z]+")  # two words, or one that begins a sentence


def translations(name: str) -> dict[str, list[str]]:
    """Each English sentence, and what it is in a language: one string, or one for each plural."""
    catalogue = read_po((TRANSLATIONS / f"{name}.po").open("rb"), locale=name)
    both = [(message.id, message.string) for message in catalogue if message.id]
    return {id if isinstance(id, str) else id[0]: [said] if isinstance(said, str) else list(said) for id, said in both}


def slots(text: str) -> set[str]:
    return {slot[1] for slot in SLOT.finditer(text)}


@pytest.mark.parametrize("name", OTHERS)
def test_every_sentence_has_a_translation(name):
    known = translations(name)
    wanted = {sentence if isinstance(sentence, str) else sentence[0] for _, sentence in sentences()}
    assert [sentence for sentence in wanted if not all(known.get(sentence, [""]))] == []
    assert sorted(set(known) - wanted) == [], "told no more: python -m app.translations takes them out"


@pytest.mark.parametrize("name", OTHERS)
def test_a_translation_has_the_slots_and_the_tags_of_its_sentence(name):
    for sentence, forms in translations(name).items():
        for form in filter(None, forms):
            assert slots(form) == slots(sentence), sentence
            assert sorted(HTML_TAG.findall(form)) == sorted(HTML_TAG.findall(sentence)), sentence
            assert '"' not in sentence + form and "&" not in sentence + form, f"would end an attribute: {sentence}"


def test_a_sentence_that_is_put_together_where_it_is_told_is_refused():
    assert list(of_python('ANY = "One."\nraise ChatError("code", ANY if one else "Two {n}.", n=2)')) == ["One.", "Two {n}."]
    with pytest.raises(UntranslatableError):
        list(of_python('raise ChatError("code", f"There are {n}.")'))


class Seen(HTMLParser):
    """What of a template's own text a person would see or hear."""

    def __init__(self):
        super().__init__()
        self.texts: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag, attributes):
        self._hidden += tag in ("script", "style")
        self.texts += [value or "" for name, value in attributes if name in SEEN_ATTRIBUTES]

    def handle_endtag(self, tag):
        self._hidden -= tag in ("script", "style")

    def handle_data(self, data):
        if not self._hidden:
            self.texts.append(data)


def seen_in(source: str) -> list[str]:
    """Words that stand in a template outside of what Jinja puts there."""
    source = re.sub(r"(?s)\{% block body_attributes %\}.*?\{% endblock %\}", "", source)  # no text, but half a tag
    html, inside = "", ""
    for _, kind, value in Environment().lex(source):
        if kind.endswith("_begin"):
            inside = kind.removesuffix("_begin")
        elif kind.endswith("_end"):
            inside = ""
        elif kind == "data" and not inside:
            html += value
    parser = Seen()
    parser.feed(html)
    return [text.strip() for text in parser.texts if WORD.search(text)]


def strings_in(source: str) -> list[str]:
    """Strings within a template's expressions that read like prose and are not looked up."""
    tree = Environment().parse(source)
    looked_up = {id(argument) for call in tree.find_all(nodes.Call) for argument in call.args
                 if isinstance(call.node, nodes.Name) and call.node.name in IN_TEMPLATES}
    return [constant.value for constant in tree.find_all(nodes.Const)
            if id(constant) not in looked_up and isinstance(constant.value, str) and PROSE.fullmatch(constant.value)
            and constant.value not in NAMES_OF_KEYS]


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_a_template_has_no_words_that_are_not_looked_up(path):
    source = path.read_text()
    assert seen_in(source) == []
    assert strings_in(source) == []


def test_words_that_are_not_looked_up_are_found():
    assert seen_in('<p title="To {{ _("all") }}">{# no #}{{ _("yes") }} of <b>it</b> {{ n }}</p>') == ["To", "of", "it"]
    assert strings_in('{{ tile("key", "Put in", _("Put in"), "as it is") }}') == ["Put in", "as it is"]


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_a_script_has_no_sentences(path):
    assert sentences_of_script(path.read_text()) == []


def sentences_of_script(source: str) -> list[str]:
    code = re.sub(r"(?s:/\*.*?\*/)|^\s*//.*$|\s//\s.*$|Error\(.*?\)", "", source, flags=re.MULTILINE)
    texts = re.findall(r'"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\.)*)`', code)
    return [text for pair in texts for text in pair if re.search(r"[A-Z][a-z]+ [a-z]+|\} [a-z]{2,} \$\{|^[A-Z][a-z]+[.…!?]$", text)]


def test_a_sentence_in_a_script_is_found():
    assert sentences_of_script('show("Send again"); // "Not this one"\nset(`${used} of ${all}`);') == ["Send again", "${used} of ${all}"]


@pytest.mark.parametrize("option, status, said", [("--help", 0, "brings each"), ("--dry", 2, "--dry")])
def test_asking_how_it_is_used_changes_no_catalogue(option, status, said):
    catalogues = {path: path.stat().st_mtime_ns for path in TRANSLATIONS.glob("*.po")}
    ran = subprocess.run([sys.executable, "-m", "app.translations", option], cwd=Path(__file__).parents[1], capture_output=True, text=True)
    assert ran.returncode == status and said in ran.stdout + ran.stderr
    assert {path: path.stat().st_mtime_ns for path in TRANSLATIONS.glob("*.po")} == catalogues
