"""Where races are run: one at a time, between the steps of replies."""

from __future__ import annotations

from collections.abc import Callable

from app.engine.race import Race
from app.engine.race_messages import RaceFinished, RaceRequest
from app.engine.sequence import ReplyRules


class RaceTrack:
    """Belongs to the scheduler."""

    def __init__(self, model, rules: ReplyRules, context: int):
        self._model, self._rules, self._context = model, rules, context
        self._race: Race | None = None

    @property
    def busy(self) -> bool:
        return self._race is not None

    def start(self, request: RaceRequest, sink: Callable[[object], None]) -> None:
        """Race the two ways of writing an answer against each other; a second race at once fails."""
        if self._race is not None:
            sink(RaceFinished(request.race, "failed", error="Another race is being measured."))
        else:
            self._race = Race(request, self._model, self._rules, self._context, sink)

    def advance(self, quiet: bool) -> None:
        """One slice of the race, if there is one. `quiet`: no reply is being made, or waited for."""
        if self._race is not None:
            self._race.advance(quiet)
            if self._race.ended:
                self._race = None

    def stop(self, race: str | None = None) -> None:
        """End the race of that name, or any. One that has ended, or is unknown, is left alone."""
        if self._race is not None and race in (None, self._race.request.race):
            self._race.stop()
            self._race = None
