"""Each reader has a language: by the address, the switch or the browser. What is stored has none but English."""

import html
import re

import pytest

from app.chat.conversation import MemoryEvent
from app.chat.errors import ChatError
from app.web.languages import COOKIE, NAMES, CompiledTemplates
from app.web.retelling import FORMER, error_text
from tests.scripted import ScriptedModel
from tests.web.talk import Browser, RunningServer, Socket

CHINESE = {"Accept-Language": "zh-CN,zh;q=0.9,en;q=0.8"}
CALCULATES = "<|python_start|>2**8<|python_end|>no, <|python_start|>pi<|python_end|>neither."


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """One for all of these tests, which leave nothing behind that another would see."""
    server = RunningServer(tmp_path_factory.mktemp("data"))
    yield server
    server.stop()


def language_of(answer) -> str:
    shown = re.search(r'<html lang="([^"]+)">', answer.text)[1]
    assert answer.headers["Content-Language"] == shown
    return shown


@pytest.mark.parametrize("asked, given", [
    (None, "en"), ("de", "en"), ("zh", "zh-Hans"), ("zh-TW", "zh-Hans"), ("fr, zh-CN;q=0.9, en;q=0.8", "zh-Hans"),
    ("fr, en;q=0.9, zh-CN;q=0.8", "en"), ("zh;q=0, en;q=0.1", "en"), ("*", "en"), ("en-GB", "en"), (";;q=x,\u00ff", "en")])
def test_the_browser_gets_the_first_language_that_it_asks_for_and_there_is(server, asked, given):
    headers = {"Accept-Language": asked} if asked else {}
    assert language_of(Browser(server, visits=False).get("/", headers=headers)) == given


def test_what_was_chosen_goes_before_what_the_browser_asks_for_and_an_address_before_both(server):
    browser = Browser(server, visits=False)
    browser.cookie = f"{COOKIE}=en"
    assert language_of(browser.get("/", headers=CHINESE)) == "en"
    browser.cookie = f"{COOKIE}=zh"
    assert language_of(browser.get("/")) == "zh-Hans"
    assert language_of(browser.get("/?language=en")) == "en"
    browser.cookie = f"{COOKIE}=klingon"
    assert language_of(browser.get("/?language=klingon")) == "en"


def test_two_readers_of_one_server_each_get_their_own_words(server):
    chinese, english = Browser(server, visits=False), Browser(server, visits=False)
    for _ in range(2):
        assert "新对话" in chinese.get("/", headers=CHINESE).text
        assert "New chat" in english.get("/").text and "新对话" not in english.get("/").text


def test_a_template_is_compiled_once_for_all_languages(serve, monkeypatch):
    monkeypatch.setattr("app.web.languages.COMPILED", CompiledTemplates())
    server, compiled = serve(), []
    environment = server.app.jinja_env
    compile_it = environment.compile
    monkeypatch.setattr(environment, "compile", lambda source, name, file: compiled.append(name) or compile_it(source, name, file))
    for name in NAMES:
        assert Browser(server, visits=False).get(f"/?language={name}").status == 200
    assert "chat.html" in compiled and len(compiled) == len(set(compiled))


def test_a_page_says_that_it_depends_on_the_reader_and_is_kept_in_no_cache(server):
    headers = Browser(server, visits=False).get("/", headers=CHINESE).headers
    assert {"Accept-Language", "Cookie"} <= {part.strip() for part in headers["Vary"].split(",")}
    assert headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("referer, location", [
    ("http://{host}/c/abc?x=1", "/c/abc?x=1"), ("http://{host}/memory?layers=3&language=en", "/memory?layers=3"),
    ("http://evil.example/c/abc", "/"), ("http://{host}//evil.example/x", "/evil.example/x"),
    ("http://{host}/\\evil.example", "/evil.example"), ("nonsense", "/"), ("http://[", "/"), ("", "/")])
def test_the_switch_leads_back_to_the_page_before_and_never_elsewhere(server, referer, location):
    browser = Browser(server, visits=False)
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Referer": referer.format(host=server.host)}
    answer = browser.request("POST", "/language", "language=zh", headers)
    assert (answer.status, answer.headers["Location"]) == (303, location)
    assert language_of(browser.get("/")) == "zh-Hans"


def test_the_switch_takes_no_language_that_there_is_not_and_none_from_another_site(server):
    browser = Browser(server, visits=False)
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    assert "Set-Cookie" not in browser.request("POST", "/language", "language=xx", form).headers
    assert browser.request("POST", "/language", "language=zh", {**form, "Origin": "http://evil.example"}).status == 403


def test_under_a_prefix_the_choice_is_kept_for_the_prefix_alone(serve):
    browser = Browser(serve(prefix="/chat"), visits=False)
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Referer": f"http://{browser.server.host}/chat/race"}
    answer = browser.request("POST", "/chat/language", "language=zh", headers)
    assert answer.headers["Location"] == "/chat/race" and "Path=/chat/" in answer.headers["Set-Cookie"]


def test_the_page_of_an_error_is_in_the_readers_language(server):
    answer = Browser(server, visits=False).get("/c/none", headers=CHINESE)
    assert answer.status == 404 and language_of(answer) == "zh-Hans" and "找不到" in answer.text


def test_each_socket_is_told_in_its_own_language_and_english_is_stored(serve):
    server = serve(ScriptedModel(CALCULATES), rows=2)
    browser = Browser(server)
    english = browser.socket()
    english.ask("hi")
    chat = english.conversation
    chinese = Socket(server, {"Cookie": browser.cookie}, "/ws?language=zh")
    chinese.say("open", conversation=chat)
    snapshot = chinese.until("snapshot")
    calls = [part for part in snapshot["messages"][1]["parts"] if part["type"] == "tool_call"]
    assert [call["reason"] for call in calls] == ["不允许使用乘方", "不允许使用名称：pi"]
    assert [call["reason"] for call in english.of("tool_call") if call["state"] == "refused"] == [
        "powers are not allowed", "names are not allowed: pi"]
    english.ask("again", chat)
    chinese.until("done")
    assert [call["reason"] for call in chinese.of("tool_call") if call["state"] == "refused"] == [
        "不允许使用乘方", "不允许使用名称：pi"]
    told, heard = english.of("event")[-1], chinese.until("state", state="idle") and chinese.of("event")[-1]
    assert told["figures"] == heard["figures"] and told["text"].isascii() and not heard["text"].isascii()
    chinese.say("send", text="", request="r", conversation=chat)
    error = chinese.until("error")
    assert (error["code"], error["text"]) == ("empty", "没有可回答的内容：消息是空的。")
    assert all(event.text.isascii() for event in server.replies.store.events(chat))
    page = html.unescape(browser.get(f"/c/{chat}", headers=CHINESE).text)
    assert heard["text"] in page and "不允许使用名称：pi" in page and told["text"] not in page


def test_what_was_stored_before_sentences_had_slots_is_told_in_english(server):
    browser = Browser(server)
    socket = browser.socket()
    socket.ask("hi")
    server.replies.store.add_event(MemoryEvent(socket.conversation, "evicted", "The 12 tokens {of} old.", {}))
    assert "The 12 tokens {of} old." in browser.get(f"/c/{socket.conversation}", headers=CHINESE).text


def test_a_stored_sentence_that_is_worded_differently_now_is_still_told_in_the_readers_language(server):
    browser = Browser(server)
    socket = browser.socket()
    socket.ask("hi")
    for wording in FORMER:
        figures = dict.fromkeys(re.findall(r"{(\w+)", wording), 1234)
        server.replies.store.add_event(MemoryEvent(socket.conversation, "of_before", wording, figures))
    told = re.findall(r'data-code="of_before">([^<]*)<', browser.get(f"/c/{socket.conversation}", headers=CHINESE).text)
    assert len(told) == len(FORMER)
    for text in told:
        assert not text.isascii() and "1,234" in text and "{" not in text


def test_an_error_over_http_is_told_in_the_readers_language_with_its_code_and_figures(server):
    browser = Browser(server)
    answer = browser.request("POST", "/api/count", {"text": 3}, CHINESE).json
    assert answer["code"] == "bad_message" and answer["text"].startswith("需要一个 JSON 对象")


def test_what_a_person_wrote_never_becomes_markup_on_its_way_through_a_sentence(server):
    with server.app.test_request_context("/?language=zh"):
        error = ChatError("bad_settings", "There is no setting {name}; there are {names}.", name="<b>{names}", names="x")
        assert error_text(error) == "没有名为 <b>{names} 的设置；可用的有 x。"
        page = server.app.jinja_env.from_string("{{ text }} {{ _('Answer {number}').format(number='<i>') }}")
        assert page.render(text=error_text(error)) == "没有名为 &lt;b&gt;{names} 的设置；可用的有 x。 回答 &lt;i&gt;"
