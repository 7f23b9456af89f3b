"""A file that `exports.py` made, or somebody else: every field is checked before anything is stored.

What is wrong is refused with a sentence that names the place. Text stays text. Ids are stored with the fingerprint of
their tokenizer, and `prompt.py` takes them only where it is the running one's. This module must never store anything.
"""

from __future__ import annotations

import base64
import binascii
import time
from dataclasses import dataclass

from app.chat.chance_records import EMPTY
from app.chat.conversation import Choice, Conversation, MemoryEvent, Message, new_id
from app.chat.errors import ChatError
from app.chat.exports import FORMAT, VERSION
from app.chat.import_checks import Wrong, amount_of, flag_of, is_number, is_text, list_of, number_of, text_of, time_of
from app.chat.import_timelines import Timelines
from app.chat.reply_settings import MAX_TOKENS as MAX_ASKED_TOKENS
from app.chat.reply_settings import MAX_TOP_K, ReplySettings
from app.chat.sentences import fill
from app.chat.texts import MAX_TEXT_BYTES, MAX_TITLE_CHARACTERS, is_blank
from app.engine.messages import Reason, ToolState
from app.engine.sampling import MAX_SEED, MAX_TEMPERATURE

MAX_MESSAGES, MAX_EVENTS, MAX_SEGMENTS, MAX_TOKENS = 4_000, 100, 10_000, 2_000_000
MAX_SEGMENTS_IN_ALL = 20_000
MAX_SENTENCE_CHARACTERS = 10_000  # with its figures in it
MAX_ID = 2**31 - 1
SEGMENT_TEXTS, SEGMENT_NUMBERS = ("expression", "result", "reason"), ("written_tokens", "forced_tokens")
ADDED_NUMBERS = ("written_marks", "forced_marks")  # which files from before have not
STAT_WHOLE_NUMBERS = {"prompt_tokens": MAX_TOKENS, "reused_tokens": MAX_TOKENS, "read_tokens": MAX_TOKENS,
                      "generated_tokens": MAX_TOKENS, "forced_tokens": MAX_TOKENS, "without_cache": 2**53 - 1,
                      "seed": MAX_SEED, "top_k": MAX_TOP_K, "max_tokens": MAX_ASKED_TOKENS}
STAT_MEASURES = ("time_to_first_token_s", "read_tokens_per_s", "write_tokens_per_s")
MAX_MEASURE = 10**12


@dataclass
class Imported:
    conversation: Conversation
    messages: list[Message]
    events: list[MemoryEvent]
    timelines: dict[str, list[dict]]
    chances: dict[str, bytes]


def read_import(document: object, owner: str) -> Imported:
    """Raises ChatError. Everything in it has new ids and belongs to `owner`."""
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ChatError("bad_import", "This file is no chat that was exported from here.")
    version = document.get("version")
    if isinstance(version, int) and not isinstance(version, bool) and version > VERSION:
        raise ChatError("bad_import", "This file comes from a newer Glasschat: it has version {version}, and this one reads "
                        "version {known} at most.", version=min(version, MAX_ID), known=VERSION)
    try:
        if type(version) is not int or version != VERSION:
            raise Wrong("version")
        return _read(document, owner)
    except Wrong as wrong:
        raise ChatError("bad_import", "This file cannot be taken in: {place} is not what an exported chat has there.",
                        place=str(wrong)) from None


def _read(document: dict, owner: str) -> Imported:
    title = text_of(document, "title", "title", MAX_TITLE_CHARACTERS * 4)
    if is_blank(title) or len(title) > MAX_TITLE_CHARACTERS:
        raise Wrong("title")
    conversation = Conversation(owner, title, system=text_of(document, "system", "system", MAX_TEXT_BYTES, may_lack=True),
                                created_s=time_of(document, "created_s"), imported_s=time.time())
    imported = Imported(conversation, [], [], {}, {})
    new_ids: dict[str, str] = {}
    timelines = Timelines()
    for index, raw in enumerate(list_of(document, "messages", "messages", MAX_MESSAGES)):
        place = f"messages[{index}]"
        if not isinstance(raw, dict):
            raise Wrong(place)
        message = _message(raw, place, conversation.id)
        old_id = text_of(raw, "id", f"{place}.id", 100)
        if not old_id or old_id in new_ids:
            raise Wrong(f"{place}.id")
        new_ids[old_id] = message.id
        message.reply_to = text_of(raw, "reply_to", f"{place}.reply_to", 100, may_lack=True)
        imported.messages.append(message)
        if message.is_reply:
            _timeline_and_chances(raw, place, message, imported, timelines)
    if sum(len(message.segments) for message in imported.messages) > MAX_SEGMENTS_IN_ALL:
        raise Wrong("messages: segments")
    _check_order(imported.messages, new_ids)
    for index, raw in enumerate(list_of(document, "events", "events", MAX_EVENTS)):
        imported.events.append(_event(raw, f"events[{index}]", conversation.id))
    return imported


def _check_order(messages: list[Message], new_ids: dict[str, str]) -> None:
    """Questions and replies alternate; of several answers the conversation goes on with one; `reply_to` is that
    before. Only whole turns are left out, the oldest ones."""
    before: Message | None = None
    by_place: dict[int, list[Message]] = {}
    for message in messages:
        by_place.setdefault(message.place, []).append(message)
    if sorted(by_place) != list(range(len(by_place))) or not by_place or len(by_place) % 2:
        raise Wrong("messages: place")
    for place, here in sorted(by_place.items()):
        main = [message for message in here if not message.is_beside]
        role = ("user", "assistant")[place % 2]
        if len(main) != 1 or any(message.role != role for message in here) or (role == "user" and len(here) > 1):
            raise Wrong("messages: role")
        if len({message.answer for message in here}) != len(here):
            raise Wrong("messages: answer")
        for message in here:
            message.reply_to = new_ids.get(message.reply_to) if message.reply_to else None
            if message.reply_to != (before.id if before else None):
                raise Wrong("messages: reply_to")
        before = main[0]
    left_out = [message.left_out for message in sorted(messages, key=lambda message: message.place) if not message.is_beside]
    oldest = sum(left_out)
    if oldest % 2 or any(left_out[oldest:]):
        raise Wrong("messages: left_out")


def _message(raw: dict, place: str, conversation: str) -> Message:
    def one_of(name: str, allowed) -> str:
        value = raw.get(name)
        if not isinstance(value, str) or value not in allowed:
            raise Wrong(f"{place}.{name}")
        return value

    role = one_of("role", ("user", "assistant"))
    is_reply = role == "assistant"
    ids = _ids(raw, place)
    return Message(
        conversation, number_of(raw.get("place"), f"{place}.place", MAX_MESSAGES), role, id=new_id(),
        text=text_of(raw, "text", f"{place}.text", MAX_TEXT_BYTES),
        segments=_segments(raw, place) if is_reply else [],
        ids=ids, masks=_masks(raw, place, ids),
        fingerprint=text_of(raw, "fingerprint", f"{place}.fingerprint", 200, may_lack=True) if ids is not None else None,
        reason=one_of("reason", [reason.value for reason in Reason]) if is_reply else None,
        error=text_of(raw, "error", f"{place}.error", 10_000, may_lack=True) if is_reply else None,
        stats=_stats(raw, place) if is_reply else None, settings=_settings(raw, place) if is_reply else None,
        left_out=flag_of(raw, "left_out", f"{place}.left_out"),
        answer=number_of(raw.get("answer"), f"{place}.answer", 100) if is_reply else 0,
        choice=one_of("choice", [choice.value for choice in Choice]) if is_reply else Choice.ONLY.value,
        created_s=time_of(raw, "created_s", f"{place}.created_s"))


def _ids(raw: dict, place: str) -> list[int] | None:
    if raw.get("ids") is None:
        return None
    return [number_of(id, f"{place}.ids", MAX_ID) for id in list_of(raw, "ids", f"{place}.ids", MAX_TOKENS)]


def _masks(raw: dict, place: str, ids: list[int] | None) -> list[int] | None:
    if raw.get("masks") is None:
        return None
    masks = [number_of(mask, f"{place}.masks", 1) for mask in list_of(raw, "masks", f"{place}.masks", MAX_TOKENS)]
    if len(masks) != len(ids or []):
        raise Wrong(f"{place}.masks")
    return masks


def _segments(raw: dict, place: str) -> list[dict]:
    segments = []
    for index, segment in enumerate(list_of(raw, "segments", f"{place}.segments", MAX_SEGMENTS)):
        where = f"{place}.segments[{index}]"
        kind = segment.get("type") if isinstance(segment, dict) else None
        if kind == "text":
            segments.append({"type": "text", "text": text_of(segment, "text", where, MAX_TEXT_BYTES)})
        elif kind == "tool_call":
            segments.append(_tool_call(segment, where))
        else:
            raise Wrong(where)
    return segments


def _tool_call(segment: dict, where: str) -> dict:
    state = segment.get("state")
    if not isinstance(state, str) or state not in [each.value for each in ToolState]:
        raise Wrong(where)
    call = {"type": "tool_call", "state": state}
    for name in SEGMENT_TEXTS:
        call[name] = text_of(segment, name, where, MAX_TEXT_BYTES, may_lack=name != "expression")
    for name in SEGMENT_NUMBERS:
        call[name] = number_of(segment.get(name), where, MAX_TOKENS)
    for name in ADDED_NUMBERS:
        call[name] = number_of(segment.get(name, 0), where, MAX_TOKENS)
    if segment.get("refusal") is not None:
        refusal = segment["refusal"]
        if not isinstance(refusal, dict):
            raise Wrong(where)
        call["refusal"] = dict(zip(("sentence", "figures"), _sentence(refusal, "sentence", where), strict=True))
    return call


def _stats(raw: dict, place: str) -> dict | None:
    """What `numbers.reply_stats` makes: all of it, since pages take each for granted. A measure is null where nothing was
    read or written, as of a reply that was stopped while it waited."""
    stats = raw.get("stats")
    if stats is None:
        return None
    if not isinstance(stats, dict):
        raise Wrong(f"{place}.stats")

    def where(name: str) -> str:
        return f"{place}.stats.{name}"

    return {**{name: number_of(stats.get(name), where(name), most) for name, most in STAT_WHOLE_NUMBERS.items()},
            **{name: amount_of(stats.get(name), where(name), MAX_MEASURE, may_lack=name in stats) for name in STAT_MEASURES},
            "temperature": amount_of(stats.get("temperature"), where("temperature"), MAX_TEMPERATURE),
            "use_cache": flag_of(stats, "use_cache", where("use_cache"))}


def _settings(raw: dict, place: str) -> dict | None:
    settings = raw.get("settings")
    if settings is None:
        return None
    try:
        if not isinstance(settings, dict):
            raise Wrong(f"{place}.settings")
        checked = ReplySettings(0.0, 0, 1).changed_by(settings)
    except ChatError:
        raise Wrong(f"{place}.settings") from None
    if {"temperature", "top_k", "max_tokens"} - set(settings):
        raise Wrong(f"{place}.settings")
    return vars(checked)


def _timeline_and_chances(raw: dict, place: str, message: Message, imported: Imported, timelines: Timelines) -> None:
    count = len(message.ids or [])
    if raw.get("timeline") is not None:
        imported.timelines[message.id] = timelines.runs_of(raw, place, count, message.place + 1)
    if raw.get("chances") is not None:
        try:
            records = base64.b64decode(text_of(raw, "chances", f"{place}.chances", 2 * MAX_TOKENS * len(EMPTY)), validate=True)
        except (binascii.Error, ValueError):
            raise Wrong(f"{place}.chances") from None
        if len(records) != count * len(EMPTY):
            raise Wrong(f"{place}.chances")
        imported.chances[message.id] = records


def _event(raw: object, where: str, conversation: str) -> MemoryEvent:
    if not isinstance(raw, dict):
        raise Wrong(where)
    text, figures = _sentence(raw, "text", where)
    return MemoryEvent(conversation, text_of(raw, "code", where, 50), text, figures, time_of(raw, "created_s", where))


def _sentence(raw: dict, name: str, where: str) -> tuple[str, dict]:
    """With its figures: texts and numbers alone, so that it can be told in every language."""
    text, figures = text_of(raw, name, where, 2_000), raw.get("figures")
    if not isinstance(figures, dict) or len(figures) > 50:
        raise Wrong(where)
    for slot, value in figures.items():
        if not is_text(slot, 100) or not (is_number(value) or is_text(value, 8_000)):
            raise Wrong(f"{where}.figures")
    try:
        told = fill(text, figures)
    except (TypeError, ValueError, OverflowError):
        raise Wrong(where) from None
    if len(told) > MAX_SENTENCE_CHARACTERS:
        raise Wrong(where)
    return text, dict(figures)
