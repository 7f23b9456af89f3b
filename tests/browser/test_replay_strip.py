"""The tokens of a replay: those that the memory held, each as what it was."""

import json

from playwright.sync_api import expect

from tests.browser.replay import CALC, saved
from tests.browser.without_cache import then_without_the_cache
from tests.scripted import ScriptedModel

PLAYED = """async () => {
    const { expand } = await import("/static/js/replay_script.js");
    const { newTokenList } = await import("/static/js/token_list.js");
    const { script, tokens } = JSON.parse(document.getElementById("page-data").textContent);
    const list = newTokenList();
    for (const event of expand(script, tokens).flatMap((entry) => entry.events)) list.receive(event);
    return { tokens: list.list.slice(0, list.cached), waiting: list.list.slice(list.cached) };
}"""


def test_the_strip_of_a_replay_ends_with_the_tokens_that_the_memory_held(serve, visit):
    chat = visit(serve(ScriptedModel(CALC, "Fine.", "Well.")))
    for question in ("One", "Two é", "Three"):
        chat.ask_and_wait(question)
    held = chat.page.evaluate("async () => (await fetch(`/api/strip?conversation=${location.pathname.slice(3)}`)).json()")
    chat.page.goto(chat.page.url + "/replay")
    played = chat.page.evaluate(PLAYED)
    for where in ("tokens", "waiting"):
        without_calls = [{name: value for name, value in token.items() if name != "call"} for token in held[where]]
        assert played[where] == without_calls and played[where]
    chat.replay_position.focus()
    chat.page.keyboard.press("End")
    expect(chat.page.get_by_test_id("token")).to_have_count(len(held["tokens"]))
    chat.token_strip.focus()
    chat.page.keyboard.press("Home")
    expect(chat.page.locator("#token-card")).to_contain_text("<|bos|>")
    expect(chat.page.locator("#token-card")).to_contain_text("Remembered from before")
    chat.open_trace.click()
    expect(chat.trace_token).to_have_count(len(held["tokens"]) + len(held["waiting"]))


def test_an_answer_without_the_cache_leaves_cells_that_are_all_of_before_in_a_replay_too(serve, visit):
    chat, held = then_without_the_cache(serve, visit)
    chat.ask_and_wait("Two")
    chat.page.goto(chat.page.url + "/replay")
    chat.replay_position.focus()
    chat.page.keyboard.press("End")
    expect(chat.token).to_have_count(held)
    expect(chat.page.locator("[data-testid=token][data-origin=reused]")).to_have_count(held)


def test_tokens_of_a_foreign_tokenizer_are_shown_by_number_and_those_of_a_lost_prompt_only_counted(serve, visit, tmp_path):
    chat = visit(serve(ScriptedModel("abc", "def")))
    chat.ask_and_wait("hi")
    chat.ask_and_wait("on")
    path = saved(chat, tmp_path)
    document = json.loads(path.read_text())
    for message in document["messages"]:
        message["fingerprint"] = "another"
    document["messages"][0]["ids"].pop()  # as where old turns were left out: the prompt is not what is stored
    path.write_text(json.dumps(document))
    chat.import_file.set_input_files(path)
    expect(chat.notice).to_contain_text("Opened")
    chat.page.goto(chat.page.url + "/replay")
    played = chat.page.evaluate(PLAYED)
    last = document["messages"][-1]
    run = last["timeline"][0]
    assert [token["origin"] for token in played["tokens"]].count("reused") == run["reused"]
    assert [(token["id"], token["text"]) for token in played["tokens"][:run["prompt"]]] == [(None, "")] * run["prompt"]
    assert [(token["id"], token["text"]) for token in [*played["tokens"][run["prompt"]:], *played["waiting"]]] == [
        (id, f"‹{id}›") for id in last["ids"]]
    chat.replay_position.focus()
    chat.page.keyboard.press("End")
    chat.token_strip.focus()
    chat.page.keyboard.press("Home")
    expect(chat.page.locator("#token-card")).to_contain_text("not saved")
    chat.open_trace.click()
    expect(chat.page.locator(".trace__message").first).to_have_text("not saved")
