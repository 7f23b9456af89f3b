"""Markdown that can do no harm (T06, T08), and blocks that are finished once (T36)."""

import re
import sys

import pytest
from hypothesis import given, strategies as st

from app.chat.block_splitter import BlockSplitter
from app.chat.markdown import render_block

HOSTILE = [
    '<img src=x onerror="alert(1)">',
    "<svg onload=alert(1)>",
    "<script>alert(1)</script>",
    '<iframe srcdoc="<script>alert(1)</script>">',
    "[a](javascript:alert(1))",
    "[a](JaVaScRiPt:alert(1))",
    "[a](java\nscript:alert(1))",
    "[a](&#106;avascript:alert(1))",
    "<javascript:alert(1)>",
    "[a](data:text/html,<script>)",
    "[a](vbscript:x)",
    "[a](//evil.example/x)",
    "[a](/forget)",
    "![a](javascript:alert(1))",
    "![x](data:image/svg+xml,<svg/onload=1>)",
    "[a]: javascript:alert(1)\n\n[a]",
    '[a](http://x.example "\\" onmouseover=alert(1)")',
    "`<b onclick=1>`",
    '```"><script>alert(1)</script>\ncode\n```',
    "| a |\n|---|\n| <img src=x onerror=1> |",
    "[a](file:///etc/passwd)",
    '![" onerror="alert(1)](http://x.example/a.png)',
    "```html\n<script>alert(1)</script>\n```",
]
ALLOWED_TAGS = set(
    "a p em strong s code pre span ul ol li table thead tbody tr th td h3 h4 h5 h6 blockquote hr br".split()
)
ALLOWED_ATTRIBUTES = {"href", "rel", "target", "title", "class", "data-language", "start"}


@pytest.mark.parametrize("source", HOSTILE)
def test_hostile_markdown_makes_only_harmless_elements(source):
    html = "".join(render_block(block) for block in all_at_once(source))
    for tag, attributes in re.findall(r"<([a-z0-9]+)((?:\s[^<>]*)?)>", html):
        assert tag in ALLOWED_TAGS, html
        for name, value in re.findall(r'\s([\w-]+)(?:="([^"]*)")?', attributes):
            assert name in ALLOWED_ATTRIBUTES, html
            assert name != "href" or value.startswith(("http://", "https://", "mailto:")), html


def test_an_image_becomes_a_link_and_is_not_loaded():
    html = render_block("![a secret](https://evil.example/x.png?q=secret)")
    assert "<img" not in html
    assert 'href="https://evil.example/x.png?q=secret"' in html and ">a secret</a>" in html


def test_an_image_in_a_link_is_its_description():
    html = render_block("[![logo](https://a.example/i.png)](https://b.example)")
    assert html.count("<a ") == 1 and ">logo</a>" in html


def test_a_link_opens_apart_and_tells_nothing():
    assert 'rel="noopener noreferrer nofollow" target="_blank"' in render_block("[a](https://a.example)")


def test_table_cells_are_aligned_by_class_not_by_style():
    html = render_block("| a | b |\n|:--|--:|\n| 1 | 2 |\n")
    assert "style" not in html and 'class="align-right"' in html


def test_code_is_highlighted_with_classes_and_names_its_language():
    html = render_block("```python\ndef f(): pass\n```")
    assert 'data-language="python"' in html and '<span class="k">def</span>' in html and "style" not in html


def test_unknown_languages_are_shown_plain():
    assert (
        render_block("```klingon\na < b\n```")
        == '<pre class="code" data-language="klingon"><code>a &lt; b\n</code></pre>\n'
    )


def test_headings_go_below_those_of_the_page():
    assert render_block("# A").strip() == "<h3>A</h3>"


# --- blocks

DOCUMENT = """# Title
A paragraph
of two lines.

- one

  more of one
- two
1. three

```python
def f():

    return "```"  # not the end
```
After the fence.
~~~
# no heading

- no list
~~~

> a quote

> another

    indented

    code
| a | b |
|---|---|
| 1 | 2 |

2. goes on at two
   ```
   in a list

   with a gap
   ```
The end *without* a newline"""


def all_at_once(text):
    splitter = BlockSplitter()
    return splitter.feed(text) + splitter.finish()


def test_a_document_is_cut_into_its_blocks():
    first_lines = [block.split("\n")[0] for block in all_at_once(DOCUMENT)]
    assert first_lines == [
        "# Title",
        "A paragraph",
        "- one",
        "```python",
        "After the fence.",
        "~~~",
        "> a quote",
        "> another",
        "    indented",
        "2. goes on at two",
    ]


def test_block_by_block_looks_as_all_at_once():
    assert "".join(render_block(block) for block in all_at_once(DOCUMENT)) == render_block(DOCUMENT)


@given(
    st.lists(
        st.sampled_from(
            ["a", " ", "\n", "\n\n", "- ", "1. ", "    ", "```", "~~~", "# ", "> ", "|", "---", "字", "\t"]
        ),
        max_size=40,
    ),
    st.lists(st.integers(0, 80), max_size=12),
)
def test_how_text_is_cut_does_not_depend_on_the_pieces_it_came_in(words, cuts):
    text = "".join(words)
    cuts = sorted(min(cut, len(text)) for cut in cuts)
    splitter, blocks = BlockSplitter(), []
    for start, end in zip([0, *cuts], [*cuts, len(text)]):
        blocks += splitter.feed(text[start:end])
    assert blocks + splitter.finish() == all_at_once(text)
    assert splitter.tail == ""


@given(
    st.lists(
        st.sampled_from(["word", "\n", "\n\n", "- item", "  more", "1. one", "```\n", "> q", "# h\n", "*", "`"]),
        max_size=25,
    )
)
def test_no_text_is_lost(words):
    text = "".join(words)
    assert "".join("".join(all_at_once(text)).split()) == "".join(text.split())


@pytest.mark.parametrize("text", ["Some:\n- one\n\n- two\n\nEnd", "Some:\n1. one\n\n   more\n2. two\n\nEnd\n"])
def test_a_list_below_its_introduction_stays_one_list(text):
    blocks = all_at_once(text)
    assert len(blocks) == 2
    assert "".join(render_block(block) for block in blocks) == render_block(text)


def test_a_paragraph_is_finished_at_its_empty_line():
    splitter = BlockSplitter()
    assert splitter.feed("One.\n") == []
    assert splitter.feed("\nTw") == ["One.\n"]
    assert splitter.tail == "Tw"


def test_work_grows_with_the_length_of_the_text_not_with_its_square():
    """Counted in function calls: 5,000 tokens with a code fence against 10,000 (T36)."""
    def calls(num_tokens):
        count = 0

        def counter(frame, event, argument):
            nonlocal count
            count += event in ("call", "c_call")

        splitter = BlockSplitter()
        tokens = ["```\n", *["code ", "more\n"] * (num_tokens // 2), "```\n"]
        sys.setprofile(counter)
        try:
            blocks = [block for token in tokens for block in splitter.feed(token)]
        finally:
            sys.setprofile(None)
        assert len(blocks) == 1
        return count

    assert calls(10_000) < 2.1 * calls(5_000)


def test_pieces_are_not_joined_before_a_line_ends():
    splitter = BlockSplitter()
    for _ in range(1000):
        splitter.feed("word ")
    assert len(splitter._line) == 1000
