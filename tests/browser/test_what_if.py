"""The what-if page: server and browser work out the same, a link carries all, and everybody can use it."""

import json
import random
import re
from dataclasses import asdict

import pytest
from playwright.sync_api import expect

from app.web.what_if import BITS, KNOWN, LIMITS, MACHINES, closer_drawing, cost, drawing, read_shape
from tests.browser.conftest import PHONE
from tests.browser.test_access import assert_accessible

LLAMA_8B = "/memory?layers=32&heads=32&kv=8&head=128&bits=16&context=8192&people=1"
IN_THE_BROWSER = """async ([cases, known]) => {
    const { closerDrawing, cost, drawing, readShape } = await import("/static/js/memory_arithmetic.js");
    return cases.map(([raw, initial, withWeights]) => {
        const { shape, notes } = readShape(raw, initial, known);
        const numbers = cost(shape, known, withWeights);
        const text = JSON.stringify([numbers, notes], (_, value) => (typeof value === "bigint" ? `n${value}` : value));
        return [text, drawing(numbers), closerDrawing(numbers)];
    });
}"""


def hostile_or_not(rng) -> dict:
    """What a link might say."""
    odd = ["", " 7", "0", "-1", "1e3", "12.5", "٣", "<b>", "9" * 16, "9" * 15, "-0", "007", "2_0", "+4", "NaN"]
    raw = {name: str(rng.randint(least, most)) if rng.random() < 0.8 else rng.choice(odd)
           for name, (least, most) in LIMITS.items() if rng.random() < 0.9}
    if rng.random() < 0.9:
        raw["bits"] = str(rng.choice(BITS)) if rng.random() < 0.8 else rng.choice(odd)
    if rng.random() < 0.4:  # heads that divide are rare by chance
        raw["heads"], raw["kv"] = "64", str(2 ** rng.randint(0, 6))
    return raw


def test_server_and_browser_work_out_the_same_for_many_settings(serve, visit):
    page = visit(serve(), "/memory").page
    rng = random.Random(7)
    cases = [(hostile_or_not(rng), rng.choice(KNOWN).shape, rng.random() < 0.5) for _ in range(600)]
    cases += [(asdict_of_texts(preset.shape), preset.shape, weights) for preset in KNOWN for weights in (True, False)]
    known = {"presets": [asdict(preset) for preset in KNOWN], "limits": LIMITS, "bits": BITS, "machines": MACHINES}
    answers = page.evaluate(IN_THE_BROWSER, [[(raw, asdict(initial), weights) for raw, initial, weights in cases], known])
    for (raw, initial, weights), (text, squares, closer) in zip(cases, answers, strict=True):
        shape, notes = read_shape(raw, initial)
        numbers = cost(shape, KNOWN, weights)
        found, found_notes = json.loads(re.sub(r'"n(\d+)"', r"\1", text))
        assert found == numbers, raw
        assert found_notes == [{"code": code, **figures} for code, figures in notes], raw
        for mine, theirs in zip(drawing(numbers), squares, strict=True):
            assert theirs == pytest.approx(mine), raw
        assert closer == (pytest.approx(mine) if (mine := closer_drawing(numbers)) else None), raw


def asdict_of_texts(shape) -> dict:
    return {name: str(value) for name, value in asdict(shape).items()}


def shown(page) -> dict:
    """Every number and sentence of the page that follows from the shape."""
    return page.evaluate("""() => ({
        texts: [...document.querySelectorAll("#what [data-slot]:not([data-slot=heads]), #what tbody")].map(
            (e) => e.textContent.replace(/\\s+/g, " ").trim()),
        values: [...document.querySelectorAll("#what [data-value]")].map((e) => e.dataset.value),
        people: [...document.querySelectorAll("#what [data-people]")].map((e) => e.dataset.people),
        boxes: [...document.querySelectorAll("#what input[type=number]")].map((e) => e.value),
        squares: [...document.querySelectorAll(".square")].map((e) => parseFloat(e.getAttribute("width")).toFixed(1)),
        closer: document.querySelector(".closer").hidden || [...document.querySelectorAll(".closer :is(rect, polygon)")].map(
            (e) => [...e.getAttributeNames()].sort().map((name) => e.getAttribute(name).replace(/[0-9.]+/g, (n) => (+n).toFixed(1)))),
        heads: document.querySelectorAll(".heads__group").length,
        preset: document.querySelector("[data-preset][aria-current]")?.dataset.preset ?? null,
    })""")


@pytest.mark.parametrize("path", [
    "/memory", LLAMA_8B, LLAMA_8B + "&weights=0", LLAMA_8B.replace("people=1", "people=8"), "/memory?layers=80&heads=64&kv=64&head=128&bits=4&context=8192&people=300",
    "/memory?layers=500&kv=5&heads=12&head=zero&bits=7&people=-1&context=100"])
def test_the_page_is_the_same_with_and_without_javascript(serve, visit, path):
    server = serve()
    with_scripts, without = visit(server, path).page, visit(server, path, java_script_enabled=False).page
    expect(with_scripts.locator(".why.is-shown")).to_have_count(1)  # the scripts have run
    assert shown(with_scripts) == shown(without)


def test_without_javascript_the_form_is_sent_and_answered(serve, visit):
    page = visit(serve(), "/memory", java_script_enabled=False).page
    page.get_by_test_id("preset").nth(4).click()
    expect(page.get_by_test_id("what-bytes")).to_have_text("1.07 GB")
    page.get_by_test_id("what-people").fill("3")
    page.get_by_role("button", name="Work it out").click()
    expect(page.get_by_test_id("what-bytes")).to_have_attribute("data-value", str(3 * 2**30))
    expect(page.get_by_test_id("what-counted")).to_contain_text("16.1 GB, and what is remembered, 3.22 GB: 19.3 GB together.")
    page.get_by_test_id("with-weights").uncheck()
    page.get_by_role("button", name="Work it out").click()
    expect(page.get_by_test_id("what-counted")).to_contain_text("Counted is only what is remembered, 3.22 GB.")
    page.get_by_test_id("with-weights").check()
    page.get_by_role("button", name="Work it out").click()
    expect(page.get_by_test_id("what-counted")).to_contain_text("19.3 GB together")


def test_a_slider_a_box_and_a_preset_change_everything_and_the_link(serve, visit):
    chat = visit(serve(), "/memory?language=en")
    page = chat.page
    page.get_by_test_id("preset").filter(has_text="Llama-3-8B").click()
    expect(chat.what_bytes).to_have_text("1.07 GB")
    expect(chat.what_times).to_have_text("4×")
    expect(page.locator("[data-machine=laptop]")).to_have_attribute("data-fits", "false")
    expect(page.locator("[data-machine=gpu24]")).to_contain_text("room for 7 people")
    page.locator("[data-slider=people]").focus()
    page.keyboard.press("ArrowRight")
    expect(chat.what_people).to_have_value("2")
    expect(chat.what_bytes).to_have_attribute("data-value", str(2**31))
    page.locator("[data-slider=kv]").focus()
    page.keyboard.press("End")
    expect(chat.what_kv).to_have_value("32")
    expect(chat.what_times).to_have_text("1×")
    page.get_by_role("radio", name="8 bit").check()
    expect(chat.what_bytes).to_have_attribute("data-value", str(2**32))
    page.wait_for_url(re.compile("kv=32.*people=2&bits=8"))
    chat.with_weights.uncheck()
    expect(page.locator("[data-machine=laptop]")).to_contain_text("its cache fits: 27 % of it")
    page.wait_for_url(re.compile("weights=0"))
    assert "language=en" in page.url
    before = shown(page)
    page.reload()
    expect(page.locator(".why.is-shown")).to_have_count(1)
    assert shown(page) == before


def test_a_model_fits_with_its_weights_unless_it_is_said_that_they_are_left_out(serve, visit):
    chat = visit(serve(), LLAMA_8B)
    phone = chat.page.locator("[data-machine=phone]")
    expect(phone).to_have_attribute("data-fits", "false")
    expect(chat.what_counted).to_have_text("Counted are the weights of Llama-3-8B, 16.1 GB, and what is remembered, "
                                           "1.07 GB: 17.1 GB together.")
    chat.with_weights.uncheck()
    expect(phone).to_contain_text("its cache fits: 13 % of it")
    expect(chat.what_counted).to_have_text("Counted is only what is remembered, 1.07 GB. The weights of Llama-3-8B, "
                                           "16.1 GB, are left out.")
    chat.with_weights.check()
    chat.what_layers.fill("31")  # no model that is known here
    expect(chat.what_counted).to_contain_text("is not known here")
    expect(chat.with_weights).to_be_disabled()
    expect(phone).to_contain_text("its cache fits")
    chat.what_layers.fill("32")
    expect(phone).to_have_attribute("data-fits", "false")


def test_what_is_too_little_to_be_seen_is_enlarged_and_told_in_conversations(serve, visit):
    chat = visit(serve(), "/memory?layers=30&heads=9&kv=3&head=64&bits=16&context=2048&people=1")
    expect(chat.closer).to_contain_text("Phone, 8 GB: the whole of it")
    expect(chat.closer).to_contain_text("Enlarged 100 times: 80.0 MB of it")
    expect(chat.closer).to_contain_text("It takes 347,222 tokens to fill it: 169 conversations as long as this one.")
    chat.what_people.fill("100")  # more than half a phone
    expect(chat.closer).to_be_hidden()


def test_what_cannot_be_is_refused_with_a_sentence_and_mended(serve, visit):
    chat = visit(serve(), LLAMA_8B)
    chat.what_kv.fill("5")
    expect(chat.what_notes).to_contain_text("must divide 32. 4 is used")
    expect(chat.what_kv).to_have_value("5")  # not while it is typed
    chat.what_kv.blur()
    expect(chat.what_kv).to_have_value("4")
    chat.what_layers.fill("1000")
    expect(chat.what_notes).to_have_text("Layers can be from 1 to 200. 200 is used.")
    chat.what_layers.fill("")
    expect(chat.what_notes).to_contain_text("must be a whole number")
    chat.what_layers.fill("32")
    expect(chat.what_notes).to_have_text("")


def test_pointing_at_a_factor_or_reaching_it_by_keyboard_says_what_it_is(serve, visit):
    page = visit(serve(), LLAMA_8B).page
    page.locator("[data-factor=kv]").hover()
    expect(page.locator(".why.is-shown")).to_contain_text("KV heads remember side by side")
    page.mouse.move(0, 0)
    expect(page.locator(".why.is-shown")).to_contain_text("Point at a number")
    page.locator("[data-factor=two]").focus()
    expect(page.locator(".why.is-shown")).to_contain_text("a key")
    page.keyboard.press("Tab")
    expect(page.locator(".why.is-shown")).to_contain_text("stack of layers")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("screen", [{}, PHONE], ids=["desktop", "phone"])
def test_axe_finds_nothing_on_the_what_if_page(serve, visit, scheme, screen):
    chat = visit(serve(), LLAMA_8B + "&people=30&kv=7", color_scheme=scheme, reduced_motion="reduce", **screen)
    assert_accessible(chat)
    chat.page.locator(".what__table summary").click()
    assert_accessible(chat)


@pytest.mark.parametrize("width", [360, 390, 768, 1024, 1280, 1920, 2560])
def test_no_width_makes_the_what_if_page_scroll_sideways(serve, visit, width):
    page = visit(serve(), "/memory?layers=200&heads=256&kv=128&head=512&bits=32&context=1048576&people=10000",
                 viewport={"width": width, "height": 900}).page
    page.locator(".what__table summary").click()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
