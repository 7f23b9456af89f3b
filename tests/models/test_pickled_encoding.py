"""tokenizer.pkl: what is read, and what is refused without being believed or run."""

import copyreg
import io
import pickle

import pytest
import tiktoken

from app.models import checkpoint
from app.models.errors import ModelError
from app.models.random_weights import made_up_encoding
from tests.models.tiny_nanochat import Evil, write_checkpoint


def pickled(state, protocol=4) -> bytes:
    """A pickle of tiktoken's class with any state. (A string is what tiktoken would look up, and download.)"""
    class Pickler(pickle.Pickler):
        def reducer_override(self, obj):
            if isinstance(obj, tiktoken.Encoding):
                return copyreg.__newobj__, (tiktoken.Encoding,), state
            return NotImplemented

    file = io.BytesIO()
    Pickler(file, protocol).dump(object.__new__(tiktoken.Encoding))
    return file.getvalue()


def spoiled(**changes) -> bytes:
    state = made_up_encoding(270).__getstate__()
    return pickled({name: value for name, value in (state | changes).items() if value is not None})


RANKS, SPECIALS = made_up_encoding(270)._mergeable_ranks, made_up_encoding(270)._special_tokens

TOKENIZER_FAULTS = [
    ("a call", pickle.dumps(Evil("executed")), "asks for io.open, but may hold a tiktoken encoding and nothing else"),
    ("another class", pickle.dumps(pytest.approx), "asks for"),
    ("a function of tiktoken", pickle.dumps(tiktoken.get_encoding), "asks for tiktoken.registry.get_encoding"),
    ("a name only", pickled("gpt2"), "holds an encoding by its name ('gpt2') only"),
    ("nothing of the kind", pickle.dumps({"name": "x"}), "does not hold a tiktoken encoding"),
    ("only the class", pickle.dumps(tiktoken.Encoding), "does not hold a tiktoken encoding"),
    ("an encoding made with arguments", b"ctiktoken.core\nEncoding\n(S'gpt2'\ntR.", "an encoding made with arguments"),
    ("an old protocol's encoder", pickled(made_up_encoding(270).__getstate__(), protocol=2), "asks for _codecs.encode"),
    ("half a pickle", spoiled()[:-200], "is not a whole pickle"), ("no pickle", b"\x00", "is not a whole pickle"),
    ("a part too few", spoiled(pat_str=None), "holds an encoding whose parts are not"),
    ("a part too many", spoiled(explicit_n_vocab=3), "holds an encoding whose parts are not"),
    ("a part of another kind", spoiled(pat_str=7), "holds an encoding whose parts are not"),
    ("a pattern that is none", spoiled(pat_str="(["), "holds an encoding that tiktoken refuses"),
    ("text for bytes", spoiled(mergeable_ranks={"a": 0}), "whose tokens are not bytes"),
    ("eight special tokens", spoiled(special_tokens={k: v for k, v in SPECIALS.items() if k != "<|output_end|>"}),
     "without the special token <|output_end|>"),
    ("an id twice", spoiled(mergeable_ranks=RANKS | {b"a": 98}), "not numbered from 0 on, each once"),
    ("an id left out", spoiled(mergeable_ranks=RANKS | {b"a": 5000}), "not numbered from 0 on, each once"),
    ("an id that is no number", spoiled(mergeable_ranks=RANKS | {b"a": "97"}), "not numbered from 0 on, each once"),
    ("a byte left out",
     spoiled(mergeable_ranks={token + b"yz" * (token == b"x"): rank for token, rank in RANKS.items()}),
     "lacks some single bytes"),
]


@pytest.mark.parametrize("content, says", [fault[1:] for fault in TOKENIZER_FAULTS],
                         ids=[fault[0] for fault in TOKENIZER_FAULTS])
def test_a_tokenizer_that_is_not_a_whole_tiktoken_encoding_is_refused_by_name(tmp_path, monkeypatch, content, says):
    monkeypatch.chdir(tmp_path)
    folder = write_checkpoint(tmp_path / "model")
    (folder / "tokenizer.pkl").write_bytes(content)
    with pytest.raises(ModelError) as refusal:
        checkpoint.load(folder)
    assert says in str(refusal.value) and f"{folder}/tokenizer.pkl" in str(refusal.value)
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize("protocol", [3, 4, 5])
def test_a_tokenizer_pickled_by_tiktoken_itself_is_read(tmp_path, protocol):
    folder = write_checkpoint(tmp_path / "model")
    (folder / "tokenizer.pkl").write_bytes(pickle.dumps(made_up_encoding(270), protocol=protocol))
    _, tokenizer = checkpoint.load(folder)
    assert tokenizer.decode(tokenizer.encode("naïve 你好 🙂")) == "naïve 你好 🙂"
