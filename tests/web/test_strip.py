"""The tokens in the cache, one by one: the strip says what the engine holds, live, after the turn and after a reload."""

import pytest

from tests.scripted import ASSISTANT_END, ASSISTANT_START, BOS, USER_END, USER_START, ByteTokenizer, PlainByteTokenizer, ScriptedModel
from tests.web.talk import Browser, wait_until

FIELDS = {"id", "text", "origin", "position", "turn", "message"}


def strip_of(browser, conversation):
    return browser.get(f"/api/strip?conversation={conversation}").json


def origins(tokens):
    return "".join({"reused": "u", "read": "r", "written": "w", "forced": "f"}[token["origin"]] for token in tokens)


def start(server):
    browser = Browser(server)
    return browser, browser.socket()


def test_the_strip_is_the_row_token_for_token(serve):
    server = serve(ScriptedModel("Yes.", "No."))
    browser, socket = start(server)
    socket.ask("One?")
    conversation = socket.conversation
    strip = strip_of(browser, conversation)
    row = server.worker.snapshot().kept_ids[conversation]
    assert [token["id"] for token in strip["tokens"]] == list(row)
    assert [token["position"] for token in strip["tokens"]] == list(range(len(row)))
    assert all(FIELDS <= token.keys() for token in strip["tokens"])
    assert strip["cached"] == len(row) == browser.cache(conversation)["conversation"]["tokens"]
    assert origins(strip["tokens"]) == "r" * 8 + "w" * 4
    # the last token of the reply has been chosen, but nothing has been computed with it
    assert [token["id"] for token in strip["waiting"]] == [ASSISTANT_END]


def test_after_a_second_turn_all_before_it_is_reused_but_the_last_token(serve):
    browser, socket = start(serve(ScriptedModel("Yes.", "No.")))
    socket.ask("One?")
    before = strip_of(browser, socket.conversation)["tokens"]
    socket.ask("Two?", socket.conversation)
    tokens = strip_of(browser, socket.conversation)["tokens"]
    numbers = browser.cache(socket.conversation)["last_reply"]
    assert origins(tokens) == "u" * numbers["reused"] + "r" * numbers["read"] + "w" * (numbers["written"] - 1)
    assert numbers["reused"] == len(before)
    assert [token["turn"] for token in tokens] == [1] * 13 + [2] * 10
    assert [token["text"] for token in tokens if token.get("mark")] == [
        "<|bos|>", "<|user_start|>", "<|user_end|>", "<|assistant_start|>", "<|assistant_end|>", "<|user_start|>",
        "<|user_end|>", "<|assistant_start|>"]
    assert [token.get("source") for token in tokens[:13]] == [None] * 8 + ["written"] * 5


def test_the_event_after_a_turn_says_the_same_as_the_page_without_the_chances(serve):
    browser, socket = start(serve())
    socket.ask("One?")
    told = socket.of("strip")
    assert len(told) == 1
    page = strip_of(browser, socket.conversation)["tokens"]
    light = [{name: value for name, value in token.items() if name not in ("chance", "runners_up")} for token in page]
    assert told[0]["tokens"] == light
    assert any("chance" in token for token in page)


def test_reading_and_token_events_make_up_the_strip(serve):
    browser, socket = start(serve(ScriptedModel("Yes <|python_start|>6*7<|python_end|> so.", "No.")))
    socket.ask("One?")
    socket.ask("Two? " + "long " * 60, socket.conversation)
    grown = []
    for event in socket.heard:
        if event["type"] == "reading":
            del grown[event["done"] - len(event["tokens"]):]
            for token in grown[:event["reused"]]:
                token["origin"] = "reused"
            grown += event["tokens"]
            assert len(grown) == event["done"]
        elif event["type"] == "token":
            grown += event["tokens"]
    held = strip_of(browser, socket.conversation)
    whole = held["tokens"] + held["waiting"]
    for name in ("id", "text", "origin", "position", "call", "chance", "runners_up"):
        assert [token.get(name) for token in grown] == [token.get(name) for token in whole], name


def test_a_written_token_says_how_likely_it_was_also_after_a_restart(serve):
    server = serve(ScriptedModel("Yes.", "No."))
    browser, socket = start(server)
    socket.ask("One?")
    strip = strip_of(browser, socket.conversation)
    told = [token for event in socket.of("token") for token in event["tokens"]]
    written = strip["tokens"][8:] + strip["waiting"]
    for live, stored in zip(told, written, strict=True):
        assert live["chance"] == stored["chance"] == 1.0
        assert live["runners_up"] == stored["runners_up"] and len(stored["runners_up"]) == 3
        assert {"id", "text", "chance"} <= stored["runners_up"][0].keys()
    assert all("chance" not in token for token in strip["tokens"][:8])
    socket.close()
    server.restart()
    later = strip_of(browser, socket.conversation)
    assert later["tokens"] == [] and later["cached"] == 0
    assert [token.get("chance") for token in later["waiting"]] == [None] * 8 + [1.0] * 5


def test_what_the_calculator_put_in_is_forced_and_belongs_to_its_call(serve):
    said = "A <|python_start|>1/0<|python_end|> b <|python_start|>6*7<|python_end|> c."
    browser, socket = start(serve(ScriptedModel(said)))
    socket.ask("Sum?")
    tokens = strip_of(browser, socket.conversation)["tokens"]
    by_call = {number: "".join(token["text"] for token in tokens if token.get("call") == number) for number in (0, 1)}
    assert by_call == {0: "<|python_start|>1/0<|python_end|>",
                       1: "<|python_start|>6*7<|python_end|><|output_start|>42<|output_end|>"}
    assert "".join(token["text"] for token in tokens if token["origin"] == "forced") == "<|output_start|>42<|output_end|>"


def test_a_piece_of_a_character_is_spelled_as_its_bytes(serve):
    browser, socket = start(serve(ScriptedModel("ü👍")))
    socket.ask("é")
    tokens = strip_of(browser, socket.conversation)["tokens"]
    assert [token["text"] for token in tokens if "hex" in token] == [
        "\\xc3", "\\xa9", "\\xc3", "\\xbc", "\\xf0", "\\x9f", "\\x91", "\\x8d"]
    spelled = bytes.fromhex("".join(token["hex"] for token in tokens if "hex" in token))
    assert spelled.decode() == "éü👍"
    assert "\ufffd" not in str(tokens)


def test_a_tokenizer_of_the_contract_alone_has_a_strip_too(serve):
    browser, socket = start(serve(ScriptedModel("é"), PlainByteTokenizer()))
    socket.ask("Hi")
    tokens = strip_of(browser, socket.conversation)["tokens"]
    assert [token["text"] for token in tokens] == ["<|bos|>", "<|user_start|>", "H", "i", "<|user_end|>",
                                                   "<|assistant_start|>", "‹195›", "‹169›"]


def test_what_was_made_without_the_cache_is_not_in_the_strip(serve):
    browser, socket = start(serve(ScriptedModel("Yes.", "No.")))
    socket.ask("One?")
    held = strip_of(browser, socket.conversation)["tokens"]
    socket.ask("Two?", socket.conversation, settings={"use_cache": False})
    assert all("tokens" not in event for event in socket.of("reading")[-1:])
    strip = strip_of(browser, socket.conversation)
    assert [{**token, "origin": None, "source": None} for token in strip["tokens"]] == [
        {**token, "origin": None, "source": None} for token in held]
    assert [token["position"] for token in strip["waiting"]] == list(range(12, 12 + len(strip["waiting"])))


def test_while_and_after_an_answer_is_made_without_the_cache_all_in_the_row_is_of_before(serve):
    browser, socket = start(serve(ScriptedModel("Yes.", "No.", "So.")))
    socket.ask("One?")
    socket.ask("Two?", socket.conversation)
    held = strip_of(browser, socket.conversation)
    assert set(origins(held["tokens"])) == {"u", "r", "w"}
    heard = len(socket.heard)
    socket.ask("Three?", socket.conversation, settings={"use_cache": False})
    strip = strip_of(browser, socket.conversation)
    assert origins(strip["tokens"]) == "u" * len(held["tokens"])
    assert [token.get("source") for token in strip["tokens"][:12]] == [None] * 8 + ["written"] * 4
    assert origins(strip["waiting"]) == "w" + "r" * 9 + "w" * 4  # the last of before, the question, and the answer
    told = [(event["type"], origins(event["tokens"])) for event in socket.heard[heard:] if event["type"] == "strip"]
    assert told == [("strip", "u" * len(held["tokens"]))] * 2  # as it begins to be written, and at its end
    socket.ask("Four?", socket.conversation)
    numbers = browser.cache(socket.conversation)["last_reply"]
    assert origins(strip_of(browser, socket.conversation)["tokens"]) == "u" * numbers["reused"] + "r" * numbers["read"] + \
        "w" * (numbers["written"] - 1)


def test_an_answer_that_was_replaced_without_the_cache_stays_in_the_row_and_belongs_to_no_message(serve):
    server = serve(ScriptedModel("Yes."))
    browser, socket = start(server)
    first = socket.ask("One?")
    server.model.replies[0] = "No!!"
    socket.say("regenerate", conversation=socket.conversation, message=first["message"], settings={"use_cache": False})
    done = socket.until("done")
    socket.until("state", state="idle")
    strip = strip_of(browser, socket.conversation)
    assert [token["id"] for token in strip["tokens"]] == list(server.worker.snapshot().kept_ids[socket.conversation])
    assert "".join(token["text"] for token in strip["tokens"][8:]) == "Yes."
    assert {token["message"] for token in strip["tokens"][8:]} == {None}
    assert {token["message"] for token in strip["waiting"]} == {done["message"]}


def test_a_question_that_was_stopped_while_it_waited_for_its_turn_leaves_the_strip_as_it_was(serve):
    server = serve(ScriptedModel("Yes."), rows=3)
    browser, socket = start(server)
    socket.ask("One?")
    kept = strip_of(browser, socket.conversation)
    server.model.hold(2)
    others = [Browser(server).socket() for _ in range(2)]
    others[0].send("Hold on")
    wait_until(server.model.holding.is_set)
    others[1].send("All at once", settings={"n": 3})  # needs more rows than are free, so all behind it wait
    others[1].until("message", role="assistant")
    socket.send("Two?", socket.conversation)
    reply = socket.until("message", role="assistant")["id"]
    socket.say("stop", conversation=socket.conversation, message=reply)
    server.model.let_go()
    assert socket.until("done")["reason"] == "cancelled"
    socket.until("state", state="idle")
    told = socket.of("strip")[-1]["tokens"]
    assert [token["id"] for token in told] in ([token["id"] for token in kept["tokens"]], [])  # it may be forgotten by then
    assert origins(told) == "u" * len(told)


def test_an_evicted_chat_has_an_empty_strip_and_is_told_so(serve):
    browser, socket = start(serve(rows=1))
    socket.ask("One?")
    first = socket.conversation
    socket.ask("Another?")
    told = next(event for event in socket.heard if event["type"] == "strip" and event["conversation"] == first
                and not event["tokens"])
    assert told["tokens"] == []
    wait_until(lambda: strip_of(browser, first)["tokens"] == [])
    assert len(strip_of(browser, first)["waiting"]) > 10


def test_a_picked_answer_brings_its_own_tokens(serve):
    browser, socket = start(serve(ScriptedModel("Same.")))
    socket.ask("Which?", settings={"n": 3, "temperature": 1.0})
    answers = [event for event in socket.of("message") if event["role"] == "assistant"]
    assert len(answers) == 3
    socket.say("pick", conversation=socket.conversation, message=answers[2]["id"])
    socket.until("strip")

    def authors():
        tokens = strip_of(browser, socket.conversation)["tokens"]
        return {token["message"] for token in tokens if token["origin"] == "written"}

    wait_until(lambda: authors() == {answers[2]["id"]})


def test_a_reply_that_goes_on_keeps_the_chances_it_had(serve):
    browser, socket = start(serve(ScriptedModel("One two three."), max_tokens=4))
    done = socket.ask("Go?")
    assert done["reason"] == "length"
    socket.say("continue", conversation=socket.conversation, message=done["message"])
    socket.until("state", state="idle")
    strip = strip_of(browser, socket.conversation)
    own = [token for token in strip["tokens"] + strip["waiting"] if token["message"] == done["message"]]
    assert "".join(token["text"] for token in own) == "One two " and [token["chance"] for token in own] == [1.0] * 8


def test_who_was_away_is_told_to_ask_for_the_strip(serve):
    browser, socket = start(serve())
    socket.ask("One?")
    began = next(event["seq"] for event in socket.heard if event["type"] == "message")
    other = browser.socket()
    other.say("open", conversation=socket.conversation, after=began)
    assert other.until("strip")["tokens"] is None
    other.until("state", state="idle")
    assert [event["seq"] for event in other.heard] == list(range(began + 1, other.heard[-1]["seq"] + 1))


@pytest.mark.parametrize("path", ["/api/strip", "/api/strip?conversation=none"])
def test_another_browsers_strip_is_not_found(serve, path):
    server = serve()
    _, socket = start(server)
    socket.ask("One?")
    assert Browser(server).get(path).status == 404
    assert Browser(server).get(f"/api/strip?conversation={socket.conversation}").status == 404


def test_marks_of_this_tokenizer_are_what_the_strip_shows():
    from app.chat.token_names import TokenNames
    names = TokenNames(ByteTokenizer())
    assert [names.of(id) for id in (BOS, USER_START, USER_END, ASSISTANT_START)] == [
        {"text": f"<|{name}|>", "mark": True} for name in ("bos", "user_start", "user_end", "assistant_start")]
