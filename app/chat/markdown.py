"""Markdown of a model to HTML that can do no harm. The only renderer there is.

Raw HTML stays text. Links lead to http, https and mailto addresses and nowhere else. Images are never
loaded (an address with a query string would carry the conversation away): they become links. Nothing has
an inline style, so a strict Content-Security-Policy holds. This module must never see what a user typed:
that is shown as typed.
"""

from __future__ import annotations

import re
from functools import lru_cache
from html import escape

from markdown_it import MarkdownIt
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

ALLOWED_SCHEMES = ("http://", "https://", "mailto:")
LONGEST_HIGHLIGHTED = 20_000  # characters; longer code is shown plain
HEADING_OFFSET = 2            # the page's own headings are h1 and h2
# Lexers of languages that people chat about. Not all that Pygments has: some are slow on hostile input.
LANGUAGES = frozenset("bash c c++ cpp csharp css diff docker go haskell html ini java javascript js json kotlin lua "
                      "make markdown perl php py python python3 r ruby rust sh shell sql swift toml ts typescript xml "
                      "yaml".split())


@lru_cache(maxsize=512)
def render_block(source: str) -> str:
    """The HTML of a piece of Markdown, as the block splitter cuts it."""
    return _MARKDOWN.render(source)


def _is_allowed(url: str) -> bool:
    return url.lower().startswith(ALLOWED_SCHEMES)


def _class_for_alignment(state) -> None:
    """Table cells are aligned by a class: the parser would write a style attribute."""
    for token in state.tokens:
        style = token.attrs.pop("style", None)
        if style:
            token.attrSet("class", "align-" + str(style).rpartition(":")[2])


def _lower_headings(state) -> None:
    for token in state.tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1]) + HEADING_OFFSET)}"


def _render_link_open(renderer, tokens, index, options, env):
    tokens[index].attrSet("rel", "noopener noreferrer nofollow")
    tokens[index].attrSet("target", "_blank")
    return renderer.renderToken(tokens, index, options, env)


def _render_image(renderer, tokens, index, options, env):
    """The image's description, leading to the image; inside of another link only the description."""
    image = tokens[index]
    text = escape(renderer.renderInlineAsText(image.children or [], options, env) or str(image.attrs.get("src", "")))
    before = [token.type for token in tokens[:index]]
    if before.count("link_open") > before.count("link_close"):
        return text
    url = escape(str(image.attrs.get("src", "")))
    return f'<a class="image-link" href="{url}" rel="noopener noreferrer nofollow" target="_blank">{text}</a>'


def _render_fence(renderer, tokens, index, options, env):
    token = tokens[index]
    named = re.match(r"[\w+#.-]{1,30}", token.info.strip()) if token.type == "fence" else None
    language = named.group().lower() if named else ""
    label = f' data-language="{escape(language)}"' if language else ""
    return f'<pre class="code"{label}><code>{_highlight(token.content, language)}</code></pre>\n'


def _highlight(code: str, language: str) -> str:
    if language in LANGUAGES and len(code) <= LONGEST_HIGHLIGHTED:
        try:
            return highlight(code, get_lexer_by_name(language, stripnl=False), HtmlFormatter(nowrap=True))
        except ClassNotFound:
            pass
    return escape(code)


def _make_markdown() -> MarkdownIt:
    markdown = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    markdown.validateLink = _is_allowed
    markdown.core.ruler.push("class_for_alignment", _class_for_alignment)
    markdown.core.ruler.push("lower_headings", _lower_headings)
    for name, rule in (("link_open", _render_link_open), ("image", _render_image),
                       ("fence", _render_fence), ("code_block", _render_fence)):
        markdown.add_render_rule(name, rule)
    return markdown


_MARKDOWN = _make_markdown()
