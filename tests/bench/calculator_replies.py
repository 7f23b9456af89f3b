"""Has a model answer the evaluation's questions, several at once, through the engine's scheduler.

Everything happens on the calling thread, so that models can be measured one after another in one process.
This module knows nothing of right and wrong.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import torch

from app.chat.conversation import Message
from app.chat.prompt import PromptBuilder
from app.chat.transcript import ToolSegment, Transcript
from app.engine.messages import Finished, Request
from app.engine.scheduler import Scheduler
from tests.bench.calculator_items import Item

CONTEXT_TOKENS = 1024


@dataclass(frozen=True)
class Sampling:
    temperature: float = 0.0
    top_k: int = 50
    seed: int = 42
    max_tokens: int = 160


@dataclass(frozen=True)
class Answer:
    """One reply. `sampled` says of each of `ids` whether the model wrote it or it was put in."""
    prompt_ids: tuple[int, ...]
    ids: tuple[int, ...]
    sampled: tuple[int, ...]
    text: str                       # the prose alone
    conclusion: str                 # the prose after the last calculator block
    calls: tuple[ToolSegment, ...]
    reason: str


@torch.inference_mode()
def answer_all(model, tokenizer, items: list[Item], sampling: Sampling, rows: int = 16,
               progress: Callable[[int], None] = lambda done: None) -> list[list[Answer]]:
    """The answers to every turn of every item. Replies of one conversation follow one another."""
    scheduler = Scheduler(model, tokenizer, rows=rows, context=CONTEXT_TOKENS)
    builder = PromptBuilder(tokenizer)
    talks = [_Talk(f"talk {place}", item, tokenizer, builder, sampling) for place, item in enumerate(items)]
    waiting, talking, done = deque(talks), [], 0
    while waiting or talking:
        while waiting and len(talking) < rows:
            talking.append(waiting.popleft())
            talking[-1].ask(scheduler)
        scheduler.step()
        for talk in [each for each in talking if each.finished is not None]:
            talk.listen()
            done += 1
            progress(done)
            if talk.is_over:
                scheduler.forget(talk.name)
                talking.remove(talk)
            else:
                talk.ask(scheduler)
    return [talk.answers for talk in talks]


class _Talk:
    """One conversation: its messages so far, and the reply that is being written."""

    def __init__(self, name: str, item: Item, tokenizer, builder: PromptBuilder, sampling: Sampling):
        self.name, self.item, self.answers = name, item, []
        self.finished: Finished | None = None
        self._tokenizer, self._builder, self._sampling = tokenizer, builder, sampling
        self._messages: list[Message] = []

    @property
    def is_over(self) -> bool:
        return len(self.answers) == len(self.item.turns)

    def ask(self, scheduler: Scheduler) -> None:
        place, sampling = len(self._messages), self._sampling
        self._messages.append(Message(self.name, place, "user", text=self.item.turns[len(self.answers)].question))
        prompt = self._builder.build(self._messages, self.item.system)
        for message in self._messages:
            message.ids, message.fingerprint = prompt.ids_by_message[message.id], self._builder.fingerprint
        self.finished, self._transcript, self._prompt_ids = None, Transcript(self._tokenizer), tuple(prompt.ids)
        scheduler.submit(Request(f"{self.name}, {place}", self.name, self._prompt_ids, sampling.temperature,
                                 sampling.top_k, sampling.max_tokens, sampling.seed), self._take)

    def _take(self, event: object) -> None:
        self._transcript.take(event)
        if isinstance(event, Finished):
            self.finished = event

    def listen(self) -> None:
        """Keep the reply that has ended, as an answer and as a message of the conversation."""
        finished, transcript = self.finished, self._transcript
        assert finished.error is None, f"the engine failed at {self.item.turns[len(self.answers)]}: {finished.error}"
        calls = [segment for segment in transcript.segments if isinstance(segment, ToolSegment)]
        after = transcript.segments[transcript.segments.index(calls[-1]) + 1:] if calls else transcript.segments
        self.answers.append(Answer(self._prompt_ids, finished.ids, finished.masks, transcript.text,
                                   "".join(segment.text for segment in after), tuple(calls), str(finished.reason)))
        self._messages.append(Message(self.name, len(self._messages), "assistant", text=transcript.text,
                                      segments=transcript.as_json(), ids=list(finished.kept_ids),
                                      fingerprint=self._builder.fingerprint))


@torch.inference_mode()
def nats_per_token(model, answer: Answer) -> float:
    """How unlikely an answer is to `model`: the mean of -ln p(token | all before it) over the tokens that were
    sampled, the end token among them. Tokens that the engine put in are read, but not counted."""
    ids = torch.tensor([answer.prompt_ids + answer.ids], device=model.get_device())
    start = len(answer.prompt_ids)
    logits = model.forward(ids)[0, start - 1:-1].float()  # what each token of the answer was drawn from
    losses = torch.nn.functional.cross_entropy(logits, ids[0, start:], reduction="none")
    counted = torch.tensor(answer.sampled, dtype=torch.bool, device=losses.device)
    return float(losses[counted].mean())
