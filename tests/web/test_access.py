"""Who may come in (T31), what browsers may do with what they get (T06, T07, T08), and the path prefix."""

import re
import stat
import threading
import time

import pytest
import simple_websocket
from itsdangerous import TimestampSigner

from tests.scripted import ScriptedModel
from tests.web.talk import Browser, RunningServer, Socket, wait_until

HOSTILE = '<img src=x onerror="alert(1)"><script>alert(1)</script><svg onload=alert(1)>'


@pytest.mark.parametrize("origin, is_let_in", [
    ("http://{own}", True), (None, True),
    ("http://evil.example", False), ("http://{own}.evil.example", False), ("http://evil.example/{own}", False),
    ("http://127.0.0.1:1", False), ("https://{own}", False), ("null", False), ("", False),
    ("http://user@{own}", False), ("HTTP://{own}/", False),
])
def test_the_socket_opens_for_the_own_origin_alone(server, origin, is_let_in):
    headers = {} if origin is None else {"Origin": origin.format(own=server.host)}
    if is_let_in:
        socket = Socket(server, headers)
        socket.say("ping")
        assert socket.next()["type"] == "pong"
        socket.close()
    else:
        with pytest.raises(simple_websocket.ConnectionError) as refused:  # before the upgrade, not after it
            Socket(server, headers)
        assert refused.value.status_code == 403


def test_a_browser_names_the_port_and_then_it_counts(browser):
    handshake = {
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
    }
    assert browser.get("/ws", headers={**handshake, "Origin": "http://127.0.0.1"}).status == 403
    assert browser.get("/ws", headers={**handshake, "Origin": f"http://localhost:{browser.server.port}"}).status == 403


def test_nothing_is_changed_for_a_page_of_another_site(browser):
    for path in ("/api/forget", "/api/count"):
        assert browser.request("POST", path, {"text": "x"}, {"Origin": "http://evil.example"}).status == 403
    assert (
        browser.request("POST", "/api/count", {"text": "x"}, {"Origin": f"http://{browser.server.host}"}).status == 200
    )


@pytest.mark.parametrize("path", ["/", "/c/nothing", "/api/cache", "/healthz", "/static/css/base.css", "/nothing"])
def test_every_answer_carries_a_strict_policy(browser, path):
    headers = browser.get(path).headers
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "script-src 'self';" in policy and "unsafe" not in policy
    assert f"connect-src 'self' ws://{browser.server.host};" in policy
    assert headers["X-Content-Type-Options"] == "nosniff" and headers["Referrer-Policy"] == "same-origin"


def test_a_host_that_is_none_is_refused(browser):
    assert browser.get("/", headers={"Host": "evil.example; script-src *"}).status == 400


def test_chats_are_not_kept_in_any_cache(browser):
    assert browser.get("/").headers["Cache-Control"] == "no-store"


def test_pages_have_no_inline_script_or_style(server, browser):
    socket = browser.socket()
    socket.ask("hi")
    html = browser.get(f"/c/{socket.conversation}").text
    assert re.findall(r"<script(?![^>]*\bsrc=)(?![^>]*application/json)[^>]*>", html) == []
    assert not re.search(r"<[^>]+\sstyle=|<style|<[^>]+\son\w+=", html)


def test_hostile_text_is_harmless_wherever_it_stands(serve):
    """T06, T07: as an answer, a question, a title, a tool's expression, the model's name, a URL."""
    server = serve(
        ScriptedModel(
            HOSTILE + f"\n\n<|python_start|>'{HOSTILE}'.count('x')<|python_end|>\n\n[a](javascript:alert(1)) "
            "![b](https://evil.example/?q=1)",
            name=HOSTILE,
        )
    )
    browser = Browser(server)
    socket = browser.socket()
    socket.ask(HOSTILE)
    socket.say("rename", conversation=socket.conversation, title=HOSTILE)
    socket.until("conversation")
    for html in (
        browser.get(f"/c/{socket.conversation}").text,
        browser.get(f"/?{HOSTILE.replace(' ', '%20')}").text,
        browser.get(f"/c/{HOSTILE.replace(' ', '%20')}").text,
        "".join(part["html"] for part in socket.of("block")),
    ):
        assert "<img src=x" not in html and "<script>" not in html and "<svg onload" not in html
        assert "javascript:" not in re.sub(r">[^<]*<", "><", html) and 'src="https://evil' not in html


def test_open_sockets_leave_threads_for_pages(server, browser, monkeypatch):
    monkeypatch.setattr("app.web.socket.MOST_OPEN", 3)
    sockets = [browser.socket() for _ in range(3)]
    for socket in sockets:  # it is served, so it counts
        socket.say("ping")
        assert socket.next()["type"] == "pong"
    with pytest.raises(simple_websocket.ConnectionError) as refused:
        browser.socket()
    assert refused.value.status_code == 503
    assert browser.get("/healthz").status == browser.get("/").status == 200
    sockets.pop().close()
    wait_until(lambda: server.replies.hub.num_connected == 2)
    browser.socket().close()


def test_fewer_sockets_may_be_open_than_there_are_threads():
    from app.commands import gunicorn_settings
    from app.web.socket import MOST_OPEN
    assert MOST_OPEN <= gunicorn_settings.threads - 32


# --- the cookie

def test_the_cookie_is_for_the_server_alone(browser):
    cookie = Browser(browser.server, visits=False).get("/").headers["Set-Cookie"]
    assert "HttpOnly" in cookie and "SameSite=Lax" in cookie and "Path=/;" in cookie and "Secure" not in cookie
    assert re.match(r"glasschat_[0-9a-f]{8}=", cookie)


def test_over_tls_outside_the_cookie_is_secure_and_the_origin_is_https(server):
    tls = {"X-Forwarded-Proto": "https", "X-Forwarded-Host": "chat.example"}
    answer = Browser(server, visits=False).get("/", headers=tls)
    assert "Secure" in answer.headers["Set-Cookie"]
    assert "wss://chat.example;" in answer.headers["Content-Security-Policy"]
    Socket(server, {**tls, "Origin": "https://chat.example"}).close()
    with pytest.raises(simple_websocket.ConnectionError):
        Socket(server, {**tls, "Origin": "http://chat.example"})


def test_the_secret_key_is_its_owners_alone_and_outlives_a_restart(server, browser):
    socket = browser.socket()
    socket.ask("hi")
    path = server.replies.store.path.with_name("secret_key")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and len(path.read_bytes()) == 32
    server.restart()
    assert browser.get(f"/c/{socket.conversation}").status == 200
    assert sorted(file.name for file in path.parent.iterdir() if "sqlite" not in file.name) == ["secret_key"]


def test_a_cookie_that_was_made_up_begins_a_session_of_its_own(server, browser):
    socket = browser.socket()
    socket.ask("hi")
    forged = Browser(server, visits=False)
    forged.cookie = browser.cookie[:-3] + "abc"
    assert forged.get(f"/c/{socket.conversation}").status == 404


@pytest.mark.parametrize("made_days_ago, is_known", [(-1, True), (-0.0001, True), (399, True), (401, False)])
def test_a_clock_that_was_set_back_takes_nobodys_chats_away(server, monkeypatch, made_days_ago, is_known):
    made_at = time.time() - made_days_ago * 86_400
    with monkeypatch.context() as then:
        then.setattr(TimestampSigner, "get_timestamp", lambda signer: int(made_at))
        browser = Browser(server)
        socket = browser.socket()
        socket.ask("hi")
    assert browser.get(f"/c/{socket.conversation}").status == (200 if is_known else 404)


def test_without_a_cookie_a_chat_lives_as_long_as_its_socket(server):
    socket = Socket(server)
    socket.ask("hi")
    store = server.replies.store
    assert store.conversation(socket.conversation)
    socket.close()
    wait_until(lambda: store.conversation(socket.conversation) is None)


def test_a_chat_without_a_cookie_does_not_outlive_a_restart(server, browser):
    kept, socket = browser.socket(), Socket(server)
    kept.ask("hi")
    socket.ask("hi")
    server.restart()
    assert server.replies.store.conversation(socket.conversation) is None
    assert server.replies.store.conversation(kept.conversation)


# --- the prefix

@pytest.mark.parametrize("cuts", [True, False], ids=["the proxy cuts it off", "the proxy leaves it on"])
def test_everything_stays_under_the_prefix(serve, cuts):
    server = serve(prefix="/chat")
    at = "" if cuts else "/chat"
    browser = Browser(server, visits=False)
    page = browser.get(at + "/")
    assert page.status == 200 and "Path=/chat/" in page.headers["Set-Cookie"]
    links = re.findall(r'(?:href|src|data-socket|data-root)="(/[^"]*)"', page.text)
    assert links and all(link.startswith("/chat/") for link in links)
    socket = Socket(server, {"Cookie": browser.cookie}, path=at + "/ws")
    socket.ask("hi")
    assert socket.of("conversation")[0]["url"] == f"/chat/c/{socket.conversation}"
    assert browser.get(f"{at}/c/{socket.conversation}").status == 200
    assert browser.get(at + "/static/css/base.css").status == 200
    assert 'href="/chat/"' in browser.get(at + "/nothing").text


def test_a_prefix_that_the_proxy_names_holds_without_the_option(server):
    page = Browser(server, visits=False).get("/", headers={"X-Forwarded-Prefix": "/deep/chat"})
    assert "Path=/deep/chat/" in page.headers["Set-Cookie"] and 'href="/deep/chat/static/' in page.text
    for bad in ("//evil.example", "/a b", "javascript:alert(1)", '/"><script>'):
        assert (
            "Path=/;"
            in Browser(server, visits=False).get("/", headers={"X-Forwarded-Prefix": bad}).headers["Set-Cookie"]
        )


# --- health and errors

def test_while_the_model_loads_pages_say_so_and_a_question_waits_for_it(tmp_path):
    """T39"""
    loaded = threading.Event()

    class Slow(ScriptedModel):
        def get_device(self):
            loaded.wait(300)
            return super().get_device()

    server = RunningServer(tmp_path, Slow("Hello."), waits=False)
    try:
        browser = Browser(server)
        assert browser.get("/healthz").status == 200
        answer = browser.get("/readyz")
        assert (answer.status, answer.json["state"]) == (503, "loading")
        assert 'data-state="loading"' in browser.get("/").text
        socket = browser.socket()
        socket.say("ping")  # this client looks at a frame that came with the handshake only when another comes
        socket.until("pong")
        assert socket.of("state") == [{"type": "state", "state": "loading", "text": None}]
        socket.send("hi")
        socket.silence(0.2)
        loaded.set()
        assert socket.until("done")["reason"] == "stop"
        assert browser.get("/readyz").json == {"state": "ready"}
    finally:
        loaded.set()
        server.stop()


def test_a_model_that_cannot_be_loaded_is_told_everywhere(tmp_path):
    class Broken(ScriptedModel):
        def get_device(self):
            raise OSError("the file <model> is cut short")

    server = RunningServer(tmp_path, Broken())
    try:
        browser = Browser(server, visits=False)
        assert browser.get("/").status == 200
        answer = browser.get("/readyz")
        assert (answer.status, answer.json["state"]) == (503, "failed") and "cut short" in answer.json["text"]
        socket = browser.socket()
        socket.send("hi")
        error = socket.until("error")
        assert socket.of("state")[0]["state"] == "failed"
        assert error["code"] == "failed" and "cut short" in error["text"]
    finally:
        server.stop()


def test_what_is_not_there_is_said_in_a_sentence(browser):
    page = browser.get("/nothing")
    assert page.status == 404 and "no such page" in page.text
    answer = browser.get("/api/cache?conversation=nothing")
    assert (answer.status, answer.json["code"]) == (404, "not_found")
    assert (
        browser.request("POST", "/api/count", b"{", {"Content-Type": "application/json"}).json["code"] == "bad_message"
    )
    assert browser.request("POST", "/").status == 405
    assert browser.request("POST", "/api/count", {"text": "x" * 9 * 2**20}).status == 413


def test_a_mistake_of_ours_shows_no_traceback(server, browser, monkeypatch):
    monkeypatch.setattr(server.replies.chats, "look", lambda *_: 1 / 0)
    page = browser.get("/c/any")
    assert page.status == 500 and "went wrong" in page.text and "ZeroDivision" not in page.text
