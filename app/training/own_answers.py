"""What the published model itself answers to ordinary prompts: the engine writes it, many rows at once, and a file keeps it.

This module must never train.
"""

from __future__ import annotations

import json
import queue
from pathlib import Path

from tqdm import tqdm

from app.engine.messages import Finished, Reason, Request
from app.engine.worker import EngineWorker

ROWS, CONTEXT_TOKENS, ANSWER_TOKENS = 16, 256, 80


def own_answers(conversations: list[dict], file: Path, load, temperatures: tuple[float, ...] = (0.0,)) -> list[dict]:
    """For each {"messages": […, user]}: {"messages", "ids" of the answer, "ended", "text"}, from `file` where they lie already.

    `load()` gives (model, tokenizer) of the published model. The n-th conversation is answered at the n-th
    temperature, round and round, with its number for a seed, whether the others are answered in the same run or not.
    """
    done: dict[str, dict] = {}
    if file.exists():
        for line in file.read_text().splitlines():
            answer = json.loads(line)
            done[json.dumps(answer["messages"])] = answer
    wanted = [(number, each) for number, each in enumerate(conversations) if json.dumps(each["messages"]) not in done]
    if wanted:
        with file.open("a") as opened:
            for answer in tqdm(_answers(wanted, load, temperatures), total=len(wanted), desc="the model's own answers"):
                opened.write(json.dumps(answer) + "\n")
                done[json.dumps(answer["messages"])] = answer
    return [done[json.dumps(each["messages"])] for each in conversations]


def whole_answers(own: list[dict]) -> list[dict]:
    """Those that came to an end and say something: what may stand in a conversation as its earlier turn."""
    return [answer for answer in own if answer["ended"] and answer["text"].strip()]


def _answers(conversations: list[tuple[int, dict]], load, temperatures: tuple[float, ...]):
    worker = EngineWorker(load, rows=ROWS, context=CONTEXT_TOKENS, max_queue=len(conversations) + 1)
    worker.start()
    worker.wait_ready(300)
    finished: queue.SimpleQueue = queue.SimpleQueue()
    try:
        for number, conversation in conversations:
            waiting = {"messages": [*conversation["messages"], {"role": "assistant", "content": ""}]}
            worker.submit(Request(str(number), str(number), tuple(worker.tokenizer.render_for_completion(waiting)),
                                  temperature=temperatures[number % len(temperatures)], top_k=50,
                                  max_tokens=ANSWER_TOKENS, seed=number),
                          lambda event: finished.put(event) if isinstance(event, Finished) else None)
        messages = {str(number): conversation["messages"] for number, conversation in conversations}
        for _ in conversations:
            event = finished.get()
            end = worker.tokenizer.encode_special("<|assistant_end|>")
            ids = [token for token in event.ids if token != end]
            yield {"messages": messages[event.reply], "ids": ids,
                   "ended": event.reason == Reason.STOP, "text": worker.tokenizer.decode(ids)}
    finally:
        worker.stop()
