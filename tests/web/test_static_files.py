"""Static files: kept by browsers for good, under an address that changes with them."""

import re

from app.web.static_files import version_of


def test_files_are_kept_for_good_under_the_addresses_that_pages_name(browser):
    files = re.findall(r'(?:href|src)="(/static/[^"]*)"', browser.get("/").text)
    assert files and len({re.match("/static/v-([0-9a-f]{12})/", file)[1] for file in files}) == 1
    for file in files:
        answer = browser.get(file)
        assert answer.status == 200
        assert answer.headers["Cache-Control"] == "public, max-age=31536000, immutable"


def test_a_version_that_is_no_longer_gives_what_is_there_now_and_is_asked_for_anew(browser):
    now = browser.get("/static/css/base.css")
    old = browser.get("/static/v-000000000000/css/base.css")
    assert now.status == old.status == 200 and now.body == old.body
    for answer in (now, old):
        assert answer.headers["Cache-Control"] == "no-cache" and answer.headers["ETag"]


def test_nothing_outside_the_folder_is_given(browser):
    for path in ("/static/v-1/../../README.md", "/static/v-1/%2e%2e/README.md", "/static/v-1//etc/passwd", "/static/v-1/"):
        assert browser.get(path).status == 404


def test_the_version_is_that_of_the_files_names_and_contents(tmp_path):
    def version(name: str, files: dict) -> str:
        for file, text in files.items():
            path = tmp_path / name / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return version_of(tmp_path / name)

    files = {"css/a.css": "a", "js/b.js": "b"}
    assert version("one", files) == version("two", files)
    others = ({"css/a.css": "a", "js/b.js": "c"}, {"css/a.css": "a", "js/c.js": "b"}, {**files, "js/c.js": ""})
    versions = [version(f"other{number}", other) for number, other in enumerate(others)]
    assert len({version_of(tmp_path / "one"), *versions}) == 4
