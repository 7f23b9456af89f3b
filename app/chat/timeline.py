"""When a reply was read and written: what a replay needs besides the reply itself.

A reply has one run, and one more each time that it went on after having been cut:

    first      which of the reply's tokens the run begins with
    prompt     tokens of the prompt; `reused` of them were remembered; `cached`: tokens in the row at the end
    use_cache  false: everything was computed anew for each token
    reads      [[ms, done], …]: so much of the prompt was there, reused or read, after so many milliseconds
    times      for each token the milliseconds since the one before it; for the first, since the request
    shown      for each token how many characters of prose became readable with it
    calls      [[token, number, state], …]: the tool call `number` came into this state before that token of the run
    ended      milliseconds until the end
    limit      tokens that the conversation might hold then
    model      the numbers of the model that made it; `windows` only where it has some

This module must never know a token's text: a replay needs no tokenizer, and so no model.
"""

from __future__ import annotations

from app.engine.messages import Finished, Reading, Snapshot, Token, ToolCall

MODEL_TEXTS = ("name", "weights_dtype", "cache_dtype")
MODEL_NUMBERS = ("n_layer", "n_head", "n_kv_head", "head_dim", "bytes_per_element", "bytes_per_token", "weight_bytes")


class Recorder:
    """One run, from its engine events. Times are counted from `began_s`, on the clock of the engine's events."""

    def __init__(self, first: int, prompt: int, use_cache: bool, began_s: float):
        self._began_s, self._last_ms = began_s, 0
        self.first = first
        self._run = {"first": first, "prompt": prompt, "use_cache": use_cache, "reused": 0, "reads": [], "times": [],
                     "shown": [], "calls": []}

    def take_reading(self, event: Reading) -> None:
        self._run["reused"] = event.reused
        self._run["reads"].append([self._ms(event.at_s), event.done])

    def take_token(self, token: Token, prose: str) -> None:
        at_ms = max(self._ms(token.at_s), self._last_ms)
        self._run["times"].append(at_ms - self._last_ms)
        self._run["shown"].append(len(prose))
        self._last_ms = at_ms

    def take_call(self, event: ToolCall, number: int) -> None:
        calls, call = self._run["calls"], [number, event.state.value]
        if not calls or calls[-1][1:] != call:
            calls.append([len(self._run["times"]), *call])

    def run(self, finished: Finished, num_kept: int, ended_s: float, snapshot: Snapshot) -> dict:
        """The whole run, when the reply has ended with `num_kept` tokens. Those that are not kept, of a tool call
        that was cut, are not told; those that the engine completed afterwards came at the end."""
        count = max(0, num_kept - self.first)
        added = [0] * (count - len(self._run["times"]))
        model = vars(snapshot.model)
        return {**self._run, "times": self._run["times"][:count] + added, "shown": self._run["shown"][:count] + added,
                "cached": finished.counts.cached, "ended": max(self._ms(ended_s), self._last_ms), "limit": snapshot.context,
                "model": {name: model[name] for name in (*MODEL_TEXTS, *MODEL_NUMBERS)}
                | ({"windows": [window or 0 for window in model["windows"]]} if any(model["windows"]) else {})}

    def _ms(self, at_s: float) -> int:
        return max(0, round(1000 * (at_s - self._began_s)))
