"""What somebody might make a model say, or type as a title, to run a script or to load something."""

from playwright.sync_api import expect

PAYLOADS = [
    '<img src=x onerror="window.__pwned=1">',
    "<svg onload=window.__pwned=1>",
    "<script>window.__pwned=1</script>",
    "[click](javascript:window.__pwned=1)",
    "[click](JaVaScRiPt:window.__pwned=1)",
    "[click](data:text/html,<script>window.__pwned=1</script>)",
    '<iframe srcdoc="<script>parent.__pwned=1</script>"></iframe>',
    "<a href=javascript:window.__pwned=1>x</a>",
    '"><b onmouseover=window.__pwned=1>x</b>',
    "</script><script>window.__pwned=1</script>",
    "</template></details></textarea><script>window.__pwned=1</script>",
    "{{ 7 * 7 }}{% raw %}",
    "<style>body{display:none}</style>",
]

# Elements and attributes that none of them may bring into the page.
FORBIDDEN = ", ".join([
    "main [onerror]", "main [onload]", "main [onmouseover]", "main script", "main iframe", "main style", "main img",
    "main a[href^='javascript:' i]", "main a[href^='data:' i]", "nav [onerror]", "nav script", "nav iframe",
    "aside [onerror]", "aside script",
])


def assert_harmless(chat) -> None:
    assert chat.page.evaluate("window.__pwned") is None
    assert chat.page.locator(FORBIDDEN).evaluate_all("all => all.map(element => element.outerHTML.slice(0, 200))") == []
    expect(chat.composer, "the page is hidden").to_be_visible()
