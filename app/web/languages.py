"""Which language a reader gets, and the catalogue that every sentence is looked up in.

English stands in the templates and in the code; each other language has a file `app/translations/<name>.po`, read
once at the start. A reader's language is the one that the address names (`?language=zh`), else the one chosen with
the switch (a cookie), else the first that the browser asks for, else English.

Nothing here may keep a reader's language for longer than a request: the next one is another reader's.
"""

from __future__ import annotations

from datetime import datetime
from decimal import ROUND_HALF_UP, localcontext
from functools import cache
from io import BytesIO
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit

from babel.dates import format_date
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from babel.numbers import format_decimal
from babel.support import Translations
from flask import Blueprint, Flask, g, has_request_context, redirect, request, url_for
from flask.templating import Environment
from jinja2.bccache import Bucket, BytecodeCache
from jinja2.environment import create_cache
from markupsafe import Markup

from app.web.sessions import LIFETIME

ENGLISH = "en"
NAMES = {ENGLISH: "English", "zh": "中文"}
TAGS = {ENGLISH: "en", "zh": "zh-Hans"}  # as HTML and Intl want them
COOKIE = "glasschat_language"
TEMPLATES_KEPT = 400
TRANSLATIONS = Path(__file__).parent.parent / "translations"

blueprint = Blueprint("languages", __name__)


class LanguageEnvironment(Environment):
    """Keeps each template once a language: what a template computes when it is imported, such as the words of
    templates/_words.html, is kept with it, and would otherwise be in the language of whoever came first."""

    @property
    def cache(self):
        return self._caches[language()]

    @cache.setter
    def cache(self, _) -> None:
        self._caches = {name: create_cache(TEMPLATES_KEPT) for name in NAMES}


class CompiledTemplates(BytecodeCache):
    """What a template was compiled to, which is the same in all languages and for all applications of a process.
    Compiling those of the chat page takes 0.3 s. Jinja looks whether the source is still the one that was compiled."""

    def __init__(self):
        self._kept: dict[str, bytes] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        if bucket.key in self._kept:
            bucket.bytecode_from_string(self._kept[bucket.key])

    def dump_bytecode(self, bucket: Bucket) -> None:
        self._kept[bucket.key] = bucket.bytecode_to_string()


COMPILED = CompiledTemplates()


def init_languages(app: Flask) -> None:
    """Before anything asks for `app.jinja_env`."""
    app.jinja_environment = LanguageEnvironment
    app.jinja_env.bytecode_cache = COMPILED
    app.jinja_env.globals.update({"_": gettext, "gettext": gettext, "ngettext": ngettext, "number": number, "date": date,
                                  "language": language, "language_tag": lambda: TAGS[language()],
                                  "language_names": NAMES, "language_tags": TAGS})
    app.register_blueprint(blueprint)
    app.after_request(_say_what_it_depends_on)
    for name in NAMES:
        catalogue(name)  # a broken file is told at the start


@cache
def catalogue(name: str) -> Translations:
    """The sentences of a language; English has none, and so says what it is asked."""
    path = TRANSLATIONS / f"{name}.po"
    if name == ENGLISH:
        return Translations()
    compiled = BytesIO()
    write_mo(compiled, read_po(BytesIO(path.read_bytes()), locale=name))
    return Translations(BytesIO(compiled.getvalue()))


def language() -> str:
    """Of the reader who made this request."""
    if not has_request_context():
        return ENGLISH
    if "language" not in g:
        wishes = (request.args.get("language"), request.cookies.get(COOKIE), *_wishes_of_browser())
        g.language = next((wish for wish in wishes if wish in NAMES), ENGLISH)
    return g.language


def _wishes_of_browser() -> list[str]:
    """`zh-CN` and `zh-Hans-SG` ask for `zh`."""
    return [tag.lower().partition("-")[0] for tag, quality in request.accept_languages if quality > 0]


def translated(sentence: str) -> str:
    """The sentence in the reader's language; one that is not in the catalogue as it is."""
    return catalogue(language()).gettext(sentence)


def gettext(sentence: str) -> Markup:
    """For templates. It is markup, since what stands in a template and its translation are our own writing; what is
    formatted into its `{slots}` is escaped. Never to be given what a person, a model or a program wrote."""
    return Markup(translated(sentence))


def ngettext(singular: str, plural: str, count: int) -> Markup:
    return Markup(catalogue(language()).ngettext(singular, plural, count))


def number(value: float, digits: int = 0) -> str:
    """As the reader's language writes it, with so many digits behind the point; halves go up, as in the browser."""
    with localcontext(rounding=ROUND_HALF_UP):
        return format_decimal(value, format="#,##0" + ("." + "0" * digits if digits else ""), locale=language())


def date(at_s: float) -> str:
    """The day of a time, as this machine's clock has it and the reader's language writes it."""
    return format_date(datetime.fromtimestamp(at_s), format="medium", locale=language())


@blueprint.post("/language")
def choose():
    """Remember the language that was chosen, and go back to where it was."""
    answer = redirect(_page_before(), 303)
    if (name := request.form.get("language")) in NAMES:
        answer.set_cookie(COOKIE, name, max_age=LIFETIME, path=(request.script_root or "") + "/",
                          secure=request.is_secure, httponly=True, samesite="Lax")
    return answer


def _page_before() -> str:
    """The page of this server that the request came from: its path alone, so that it can lead nowhere else."""
    try:
        before = urlsplit(request.referrer or "")
    except ValueError:
        return url_for("pages.index")
    if before.netloc != request.host:
        return url_for("pages.index")
    query = urlencode([(name, value) for name, value in parse_qsl(before.query) if name != "language"])
    return "/" + before.path.lstrip("/\\") + (f"?{query}" if query else "")


def _say_what_it_depends_on(response):
    if request.endpoint != "static":
        response.vary.update(("Accept-Language", "Cookie"))
        response.headers["Content-Language"] = TAGS[language()]
    return response
