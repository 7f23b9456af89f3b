"""`python -m app.translations` brings each `<name>.po` up to date with the sources: new sentences are added without a
translation, those that are told no more go. It says how many are still to be translated."""

from __future__ import annotations

from argparse import ArgumentParser
from io import BytesIO
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.pofile import read_po, write_po

from app.translations.collect import sentences

HERE = Path(__file__).parent
HEADER = """msgid ""
msgstr ""
"Language: {name}\\n"
"MIME-Version: 1.0\\n"
"Content-Type: text/plain; charset=utf-8\\n"
"Content-Transfer-Encoding: 8bit\\n"
"Plural-Forms: {plurals}\\n"

"""


def update(path: Path) -> list[str]:
    """-> the sentences that have no translation yet."""
    old = read_po(BytesIO(path.read_bytes()), locale=path.stem)
    new = Catalog(locale=path.stem, fuzzy=False)
    for file, sentence in sentences():
        known = old.get(sentence if isinstance(sentence, str) else sentence[0])
        new.add(sentence, known.string if known else "", locations=[(file, 0)])
    written = BytesIO()
    write_po(written, new, width=116, include_lineno=False, omit_header=True)
    path.write_bytes(HEADER.format(name=path.stem, plurals=old.plural_forms).encode() + written.getvalue().strip() + b"\n")
    return [str(message.id) for message in new if message.id and not message.string]


if __name__ == "__main__":
    ArgumentParser("python -m app.translations", description=__doc__).parse_args()
    for path in sorted(HERE.glob("*.po")):
        missing = update(path)
        print(f"{path.name}: {len(missing)} to be translated", *missing, sep="\n  ")
