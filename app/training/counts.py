"""Questions for how often a letter, or a part, stands in a word or a short phrase.

Words come from the model's own vocabulary, a good twenty thousand of them, and from syllables put together, so that
most of what is asked later was never seen. This module must never answer.
"""

from __future__ import annotations

import random
import re

from app.training.typed import as_typed
from app.training.wordings import lines_of

SYLLABLES = ("ba be bi bo bra bri ca ce chi clo cra da de dri du el en fa fe fi flo fra ga gle go gri ha hi hu in ja jo ka ki kro la le li lo lu ma me mi mo "
             "mu na ne ni no nu oc or pa pe pi plo pra qua ra re ri ro ru sa se shi slo so spi sta sti ta te thi to tra tri tu ul un va ve vi vo wa we wi xa "
             "ya ye zo zu").split()
ENDINGS = "ble ness ment ing ed er ous tion ally ess ette ism ist ity ling some ward worth ful less ssion ttle bby ddy ffin nnel rry ppo zzle x th".split()

# {l} is the part as asked, {w} the word as asked
PART_FORMS = ["How many times does {l} appear in {w}?", "How often is {l} in {w}?", "Count {l} in {w}", "How many {l} are in {w}?", "how many times is {l} in {w}",
              "How many times does the string {l} occur in {w}?", "Count how often {l} stands in {w}."]
PHRASE_WORDS = ("the a my old red green little big brown quick lazy happy sad new cold warm sweet tall river tree house dog cat bird apple summer winter morning "
                "night moon sun song letter bottle butter yellow street garden window mirror coffee pepper cheese balloon puzzle jumps runs sings falls over under "
                "near with and of in on never always every seven three little").split()


def words_of(tokenizer) -> list[str]:
    """Every token that is a word: a space and at least four plain small letters."""
    words = []
    for token in range(tokenizer.get_vocab_size()):
        if not tokenizer.is_special(token) and re.fullmatch(rb" [a-z]{4,}", spelling := tokenizer.decode_bytes([token])):
            words.append(spelling.decode().strip())
    return words


def invented(rng: random.Random) -> str:
    word = "".join(rng.choice(SYLLABLES) for _ in range(rng.choice([1, 2, 2, 3, 3, 4])))
    return word + rng.choice(ENDINGS) if rng.random() < 0.7 else word + rng.choice(SYLLABLES)


class Counts:
    def __init__(self, words: list[str]):
        self._words = words

    def ask(self, rng: random.Random):
        """(question as typed, expression, (the part, the word) as an answer may name them)."""
        kind = rng.random()
        if kind < 0.62:
            word = rng.choice(self._words)
        elif kind < 0.72:
            word = rng.choice(self._words) + rng.choice(self._words)
        elif kind < 0.9:
            word = invented(rng)
        else:
            word = " ".join(rng.choice(PHRASE_WORDS) for _ in range(rng.choice([2, 3, 3, 4, 5])))
        is_phrase = " " in word
        if rng.random() < 0.12 and not is_phrase:
            start = rng.randrange(len(word) - 1)
            part = word[start:start + rng.choice([2, 2, 3])] if rng.random() < 0.7 else "".join(rng.choice("aeiounrstl") for _ in range(2))
        elif rng.random() < 0.8:
            part = rng.choice([letter for letter in word if letter != " "])
        else:
            part = rng.choice("abcdefghijklmnopqrstuvwxyz")
        shown = word if rng.random() < 0.85 or is_phrase else rng.choice([word.capitalize(), word.capitalize(), word.upper()])
        quote = rng.choice(['"{}"', "'{}'", "“{}”"]) if is_phrase or rng.random() < 0.3 else "{}"
        letter = rng.choice([part, part, part.upper()]) if len(part) == 1 else part
        letter = (rng.choice(['"{}"', "'{}'"]) if len(part) > 1 or rng.random() < 0.2 else "{}").format(letter)
        form = rng.choice(PART_FORMS if len(part) > 1 else lines_of("letter_counts"))
        question = form.format(l=letter, w=quote.format(shown))
        question = as_typed(question, rng, keep=shown)
        return question, expression_for(question, shown, part), (part, shown)


def expression_for(question: str, shown: str, part: str) -> str:
    """The word stands in the expression as it does in the question, the space before it included: so its tokens are the
    same there and can be copied, which a small model does more surely than it spells. Where its capital would be
    counted as another letter, it is written small."""
    if shown.isupper():
        part = part.upper()
    elif shown.lower().count(part) != shown.count(part):
        shown = shown.lower()
    start = question.lower().rfind(shown.lower())
    space = " " if start > 0 and question[start - 1] == " " else ""
    return f'"{space}{shown}".count("{part}")'
