"""Several answers to one question: side by side until one is picked, and what that costs."""

import pytest

from app.chat.chats import Caller
from tests.scripted import ASSISTANT_END, ASSISTANT_START, ByteTokenizer, ScriptedModel
from tests.web.talk import Browser, wait_until

BYTES_PER_TOKEN = 2 * 2 * 2 * 4 * 4
LETTERS = slice(ord("a"), ord("z") + 1)


class DrawingModel(ScriptedModel):
    """As `ScriptedModel`, but the first letter of each reply is drawn: with another seed it is another."""

    def forward(self, ids, kv_cache=None):
        self.begins = []
        logits = super().forward(ids, kv_cache)
        for row, begins in enumerate(self.begins):
            if begins:
                logits[row, -1, LETTERS] = 100.0
        return logits

    def _next_id(self, ids):
        self.begins.append(ids[-1] == ASSISTANT_START)
        return super()._next_id(ids)


class Table:
    """One browser at a chat with several answers."""

    def __init__(self, server, **settings):
        self.server, self.browser = server, Browser(server)
        self.socket = self.browser.socket()
        self.settings = {"n": 3, "temperature": 1.0, "seed": 7, **settings}

    def ask(self, text="hi", **fields):
        """-> the ids of the answers, all of them finished."""
        start = len(self.socket.heard)
        self.socket.send(text, self.socket.conversation, settings=self.settings, **fields)
        self.socket.until("state", state="idle")
        return [event["id"] for event in self.socket.heard[start:]
                if event["type"] == "message" and event["role"] == "assistant"]

    def say(self, type, **fields):
        self.socket.say(type, conversation=self.socket.conversation, **fields)

    def pick(self, message):
        self.say("pick", message=message)
        return self.socket.until("picked")

    @property
    def store(self):
        return self.server.replies.store

    def line(self):
        """The texts of the conversation as it goes on."""
        return [message.text for message in self.store.messages(self.socket.conversation)]

    def rows(self):
        return dict(self.server.worker.snapshot().cached_tokens)

    def look(self):
        owner = self.store.conversation(self.socket.conversation).owner
        return self.server.replies.chats.look(Caller(owner), self.socket.conversation)


@pytest.fixture
def table(serve):
    return Table(serve(DrawingModel("-one", "-two", "-three")))


def test_the_question_is_read_once_and_each_answer_has_its_seed(table):
    answers = table.ask()
    events = table.socket.of("message")
    assert [(event["answer"], event["choice"], event["seed"]) for event in events[1:]] == [
        (0, "open", 7), (1, "open", 8), (2, "open", 9)]
    assert {event["reply_to"] for event in events[1:]} == {events[0]["id"]}
    done = {event["message"]: event for event in table.socket.of("done")}
    assert [done[id]["stats"]["seed"] for id in answers] == [7, 8, 9]
    assert [done[id]["stats"]["read_tokens"] for id in answers] == [6, 0, 0]
    assert [done[id]["stats"]["reused_tokens"] for id in answers] == [0, 6, 6]
    texts = [table.store.message(id).text for id in answers]
    assert len(set(texts)) > 1 and all(text[1:] == "one" for text in texts)
    assert [event["state"] for event in table.socket.of("state")].count("idle") == 1
    # each is what its seed alone gives
    table.settings.update(n=1)
    for seed, text in zip((7, 8, 9), texts, strict=True):
        other = Table(table.server, n=1, seed=seed)
        assert table.store.message(other.ask()[0]).text == text


def test_the_numbers_say_what_the_copies_cost(table):
    table.ask()
    cache = table.socket.of("cache")[-1]["cache"]
    held = 2 * (6 + 4)  # the last token of each is in no cache
    assert cache["conversation"]["tokens"] == 6 + 4
    assert cache["copies"] == {"rows": 2, "prompt_tokens": 6, "copied_tokens": 12, "copied_bytes": 12 * BYTES_PER_TOKEN,
                               "tokens": held, "bytes_used": held * BYTES_PER_TOKEN}
    assert cache["last_reply"]["read"] == 6
    (told,) = table.socket.reasons()
    assert told["code"] == "copied" and told["figures"]["tokens"] == 12
    assert "3 answers at once: the 6 tokens before them were read once" in told["text"]
    assert "12 tokens, 1.54 kB" in told["text"]
    assert wait_until(lambda: table.browser.cache(table.socket.conversation)["pool"]["rows_used"] == 3)


def test_without_copies_the_numbers_do_not_speak_of_them(serve):
    table = Table(serve(), n=1)
    table.ask()
    assert all("copies" not in event["cache"] for event in table.socket.of("cache"))
    assert table.socket.reasons() == [] and table.socket.of("message")[1]["choice"] == "only"


@pytest.mark.parametrize("number", [0, 1, 2])
def test_the_chat_goes_on_in_the_row_of_the_picked_one_and_the_others_are_free(table, number):
    answers = table.ask()
    text = table.store.message(answers[number]).text
    event = table.pick(answers[number])
    assert event["message"] == answers[number] and event["others"] == answers[:number] + answers[number + 1:]
    wait_until(lambda: list(table.rows()) == [table.socket.conversation])
    told = table.socket.until("event", code="picked")
    assert told["figures"]["rows"] == 2 and told["figures"]["tokens"] == 2 * (6 + 4)
    while (cache := table.socket.until("cache")["cache"])["pool"]["rows_used"] > 1:  # told before the engine came to it
        pass
    assert "copies" not in cache
    assert table.line() == ["hi", text]
    table.settings["n"] = 1
    table.ask("more")
    assert table.line() == ["hi", text, "more", table.line()[-1]]
    stats = table.socket.of("done")[-1]["stats"]
    assert stats["reused_tokens"] == 6 + 4  # all that was kept of the picked one
    folded = table.look()["messages"][1]
    assert (folded["choice"], [other["choice"] for other in folded["others"]]) == ("picked", ["folded", "folded"])


def test_the_next_question_goes_on_with_the_first_where_none_is_picked(table):
    answers = table.ask()
    start = len(table.socket.heard)
    more = table.ask("more", base=answers[2])  # the last that was seen
    picked = next(event for event in table.socket.heard[start:] if event["type"] == "picked")
    assert (picked["message"], picked["others"]) == (answers[0], answers[1:])
    assert table.line()[:3] == ["hi", table.store.message(answers[0]).text, "more"]
    assert table.socket.of("done")[-3]["stats"]["prompt_tokens"] == 6 + 5 + 3 + 4
    first = next(e for e in table.socket.of("done") if e["message"] == more[0])
    assert first["stats"]["reused_tokens"] == 6 + 4
    conversation = table.socket.conversation
    wait_until(lambda: set(table.rows()) == {conversation, f"{conversation}/{more[1]}", f"{conversation}/{more[2]}"})


def test_another_may_be_picked_while_the_chat_has_not_gone_on_and_not_after(table):
    answers = table.ask()
    table.pick(answers[1])
    table.pick(answers[2])
    assert table.line()[1] == table.store.message(answers[2]).text
    assert "after all" in table.socket.until("event", code="picked")["text"]
    table.settings["n"] = 1
    table.ask("more")
    assert table.socket.of("done")[-1]["stats"]["reused_tokens"] >= 6
    table.say("pick", message=answers[0])
    assert table.socket.until("error")["code"] == "not_last"
    table.say("pick", message="nothing")
    assert table.socket.until("error")["code"] == "not_found"


def test_somebody_else_picks_nothing(table):
    answers = table.ask()
    Table(table.server).socket.say("pick", conversation=table.socket.conversation, message=answers[1])
    stranger = Browser(table.server).socket()
    stranger.say("pick", conversation=table.socket.conversation, message=answers[1])
    assert stranger.until("error")["code"] == "not_found"
    assert table.store.message(answers[1]).choice == "open"


def test_stopping_one_lets_the_others_go_on(serve):
    model = DrawingModel("long enough to be stopped")
    table = Table(serve(model))
    model.hold(3)
    table.socket.send("hi", settings=table.settings)
    wait_until(model.holding.is_set)
    answers = [table.socket.until("message", role="assistant")["id"] for _ in range(3)]
    table.say("stop", message=answers[0])
    table.say("pick", message=answers[1])
    assert table.socket.until("error")["code"] == "busy"
    model.let_go()
    table.socket.until("state", state="idle")
    reasons = {event["message"]: event["reason"] for event in table.socket.of("done")}
    assert [reasons[id] for id in answers] == ["cancelled", "stop", "stop"]


def test_picking_one_stops_those_that_are_still_written(serve):
    model = ScriptedModel("x" * 300, seconds_per_token=0.2)  # none comes to its end here
    table = Table(serve(model))
    table.socket.send("hi", settings=table.settings)
    answers = [table.socket.until("message", role="assistant")["id"] for _ in range(3)]
    table.socket.until("token", message=answers[1])
    table.say("stop", message=answers[1])
    table.socket.until("done", message=answers[1])
    kept = len(table.store.message(answers[1]).ids)
    table.pick(answers[1])
    model.seconds_per_token = 0
    table.socket.until("state", state="idle")
    assert {event["reason"] for event in table.socket.of("done")} == {"cancelled"}
    wait_until(lambda: list(table.rows()) == [table.socket.conversation])
    table.settings["n"] = 1
    table.socket.send("more", table.socket.conversation, settings=table.settings | {"max_tokens": 3})
    done = table.socket.until("done")
    assert done["stats"]["reused_tokens"] == 6 + kept


def test_a_second_tab_and_a_reload_see_the_same_answers_in_mid_stream(serve):
    model = DrawingModel("long enough to look twice")
    table = Table(serve(model))
    model.hold(6)
    table.socket.send("hi", settings=table.settings)
    wait_until(model.holding.is_set)
    answers = [table.socket.until("message", role="assistant")["id"] for _ in range(3)]
    for id in answers:
        table.socket.until("token", message=id)
    question, first = table.look()["messages"]
    views = [first, *first["others"]]
    assert [view["state"] for view in views] == ["writing"] * 3 and all(view["tail"] for view in views)
    assert [view["seed"] for view in views] == [7, 8, 9]
    tab = table.browser.socket()
    tab.say("open", conversation=table.socket.conversation)
    snapshot = tab.until("snapshot")
    assert [other["id"] for other in snapshot["messages"][1]["others"]] == [view["id"] for view in views[1:]]
    views = [snapshot["messages"][1], *snapshot["messages"][1]["others"]]  # more may have been told meanwhile
    model.let_go()
    table.socket.until("state", state="idle")
    tab.until("state", state="idle")
    for view in views:
        heard = "".join(event["text"] for event in tab.of("token") if event["message"] == view["id"])
        assert view["tail"] + heard == table.store.message(view["id"]).text
    table.pick(views[2]["id"])
    assert tab.until("picked")["message"] == views[2]["id"]
    assert question["id"] in table.browser.get(f"/c/{table.socket.conversation}").text


def test_a_repeated_request_is_told_all_answers_and_done_once(table):
    answers = table.ask(request="once")
    table.socket.send("hi", table.socket.conversation, request="once", settings=table.settings)
    told = [table.socket.next() for _ in range(4 + 1)]
    assert [event["id"] for event in told if event["type"] == "message"][1:] == answers
    assert len(table.store.answers_beside(table.socket.conversation)) == 2


def test_deleting_the_chat_frees_all_rows(table):
    table.ask()
    wait_until(lambda: len(table.rows()) == 3)
    table.say("delete")
    wait_until(lambda: table.rows() == {})


def test_deleting_in_mid_stream_ends_all_answers(serve):
    model = DrawingModel("long enough to be deleted")
    table = Table(serve(model))
    model.hold(3)
    table.socket.send("hi", settings=table.settings)
    wait_until(model.holding.is_set)
    table.socket.until("message", role="assistant")
    table.say("delete")
    table.socket.until("conversation", deleted=True)
    model.let_go()
    wait_until(lambda: table.server.worker.snapshot().pool.rows_used == 0)


@pytest.mark.parametrize("kind", ["edit", "regenerate"])
def test_asking_again_takes_the_place_of_all_answers_and_frees_their_rows(table, kind):
    answers = table.ask()
    question = table.store.messages(table.socket.conversation)[0]
    fields = {"message": question.id, "text": "ho"} if kind == "edit" else {"message": answers[1]}
    start = len(table.socket.heard)
    table.say(kind, **fields, settings=table.settings | {"n": 2, "seed": 20})
    table.socket.until("state", state="idle")
    new = [event for event in table.socket.heard[start:] if event["type"] == "message" and event["role"] == "assistant"]
    assert [(event["answer"], event["seed"]) for event in new] == [(0, 20), (1, 21)]
    assert all(table.store.message(id) is None for id in answers)
    conversation = table.socket.conversation
    wait_until(lambda: set(table.rows()) == {conversation, f"{conversation}/{new[1]['id']}"})


def test_after_a_restart_the_interrupted_answers_are_there_and_one_may_be_picked(serve):
    model = DrawingModel("long enough to be interrupted")
    table = Table(serve(model))
    model.hold(6)
    table.socket.send("hi", settings=table.settings)
    wait_until(model.holding.is_set)
    answers = [table.socket.until("message", role="assistant")["id"] for _ in range(3)]
    for id in answers:
        table.socket.until("token", message=id)
    table.server.restart()
    view = table.look()["messages"][1]
    assert [each["state"] for each in (view, *view["others"])] == ["interrupted"] * 3
    conversation, table.socket = table.socket.conversation, table.browser.socket()
    table.socket.conversation = conversation
    table.say("open")
    table.pick(answers[2])
    table.say("continue", message=answers[2], settings=table.settings)
    table.socket.until("state", state="idle")
    assert table.line()[1][1:] == "ong enough to be interrupted"


def test_an_answer_that_was_not_picked_does_not_go_on(table):
    answers = table.ask()
    table.say("continue", message=answers[1])
    assert table.socket.until("error")["code"] == "not_picked"


def test_going_on_with_the_first_picks_it(serve):
    table = Table(serve(DrawingModel("-something long")), max_tokens=4)
    answers = table.ask()
    table.settings.update(max_tokens=50)
    table.say("continue", message=answers[0], settings=table.settings)
    assert table.socket.until("picked")["message"] == answers[0]
    table.socket.until("state", state="idle")
    assert table.line()[1][1:] == "something long"
    wait_until(lambda: list(table.rows()) == [table.socket.conversation])


@pytest.mark.parametrize(("rows", "settings", "sentence"), [
    (8, {"n": 2, "use_cache": False}, "Switch the cache on"),
    (2, {"n": 3}, "3 answers at once need as many places in the memory; places here: 2"),
    (8, {"n": 5}, "n must be a whole number from 1 to 4"),
])
def test_what_cannot_be_had_is_refused_with_a_sentence(serve, rows, settings, sentence):
    table = Table(serve(rows=rows))
    table.socket.send("hi", settings=settings)
    error = table.socket.until("error")
    assert error["code"] == "bad_settings" and sentence in error["text"]
    assert "/c/" not in table.browser.get("/").text


def test_copies_are_no_chats_in_the_list(table):
    table.ask()
    wait_until(lambda: len(table.rows()) == 3)
    page = table.browser.get("/").text
    assert page.count('class="chat-item__link"') == 1 + 1  # and the template


def test_an_answer_whose_row_went_to_another_chat_is_told_of_and_can_still_be_picked(serve):
    table = Table(serve(DrawingModel("-one", "-two"), rows=3))
    answers = table.ask()
    others = [table.browser.socket() for _ in range(3)]
    for socket in others:
        socket.ask("me too", settings={"n": 1})
    codes = [table.socket.until("event")["code"] for _ in range(3)]
    assert codes == ["evicted", "copy_evicted", "copy_evicted"]
    table.pick(answers[2])
    table.settings["n"] = 1
    table.ask("more")
    done = table.socket.of("done")[-1]
    assert done["stats"]["reused_tokens"] == 0 and done["reason"] == "stop"
    stored = table.store.message(answers[2])
    assert stored.ids[-1] == ASSISTANT_END and ByteTokenizer().decode(stored.ids[:-1]) == stored.text


def test_the_largest_seed_has_a_next_one(serve):
    table = Table(serve(), n=2, seed=2**63 - 1)
    table.ask()
    assert [event["stats"]["seed"] for event in table.socket.of("done")] == [2**63 - 1, 0]
