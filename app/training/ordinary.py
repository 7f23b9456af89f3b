"""Prompts in which a calculator has no place: what people ask a chat, many of them with numbers in them.

The published model's own answers to these are what keeps it as it was while it learns the tool. This module
must never make a sum.
"""

from __future__ import annotations

import random

from app.training.wordings import lines_of

PLACES = """France|Italy|Spain|Germany|Poland|Portugal|Greece|Sweden|Norway|Finland|Denmark|Austria|Hungary|Ireland|Turkey
Egypt|Kenya|Nigeria|Morocco|Ethiopia|South Africa|Ghana|Japan|China|India|Thailand|Vietnam|Indonesia|Malaysia|Mongolia|Nepal
Iran|Israel|Canada|Mexico|Cuba|Brazil|Argentina|Chile|Peru|Colombia|Australia|New Zealand|Iceland|Belgium|the Netherlands
Switzerland|Ukraine|Romania|Bulgaria|the Philippines|South Korea|Pakistan|Saudi Arabia|the United States|Russia"""
TOPICS = """black holes|volcanoes|the water cycle|photosynthesis|gravity|electricity|magnets|the moon|the sun|stars|comets
dinosaurs|whales|bees|ants|elephants|penguins|owls|cats|dogs|horses|trees|mushrooms|deserts|oceans|rivers|glaciers|coral reefs
the Roman Empire|ancient Egypt|the Silk Road|the printing press|the steam engine|the telephone|the internet|computers|robots
artificial intelligence|language models|programming|Python|open source|music|jazz|painting|photography|theatre|poetry|novels
cooking|baking bread|coffee|tea|chocolate|cheese|soup|gardening|cycling|running|swimming|chess|football|tennis|yoga|sleep
friendship|happiness|patience|courage|honesty|teamwork|time management|public speaking|learning a language|saving money
the heart|the brain|vitamins|exercise|stress|recycling|climate change|solar power|wind power|electric cars|trains|bridges
democracy|inflation|trade|taxes|the stock market|banks|insurance|the United Nations|human rights|schools|libraries|museums"""
PEOPLE = """Marie Curie|Albert Einstein|Isaac Newton|Charles Darwin|Galileo|Leonardo da Vinci|Ada Lovelace|Alan Turing|Mozart
Beethoven|Shakespeare|Jane Austen|Mark Twain|Nelson Mandela|Mahatma Gandhi|Abraham Lincoln|Cleopatra|Julius Caesar|Napoleon
Confucius|Aristotle|Plato|Socrates|Florence Nightingale|Nikola Tesla|Thomas Edison|Rosa Parks|Frida Kahlo|Vincent van Gogh"""
WORDS = """serendipity|ephemeral|resilience|nostalgia|algorithm|metaphor|photosynthesis|democracy|entropy|irony|empathy|paradox
sum|product|average|fraction|percentage|decimal|prime number|square root|equation|calculator|geometry|probability|strawberry"""
TASKS = """a short poem about {topic}|a haiku about {topic}|a two-sentence story about {topic}|a joke about {topic}
a slogan for {topic}|a tweet about {topic}|a short paragraph about {topic}|a riddle about {topic}|a limerick about {topic}
a thank-you note to a teacher|a birthday message for a friend|an email to ask for a day off|an apology to a neighbour
a cover letter opening for a baker|a headline about {topic}|a short dialogue about {topic}|a letter to my future self
a product description of a lamp|a toast for a wedding|a motivational quote|a lullaby|a recipe for pancakes|a packing list"""
PLAIN = """Hello!|Hi there|Good morning|hey|How are you?|Who are you?|What can you do?|Thanks!|Thank you so much|Goodbye|ok
What is your name?|Are you a robot?|Can you help me?|Tell me something interesting|Tell me a joke|I am bored|I feel sad today
What should I cook tonight?|What should I read next?|Give me some advice|How do I make friends?|How do I learn faster?
Why is the sky blue?|Why is the sea salty?|Why do leaves fall?|Why do we dream?|Why do cats purr?|How do planes fly?
How does a fridge work?|How does the internet work?|How do vaccines work?|What is love?|What is the meaning of life?
What is the largest ocean?|What is the tallest mountain?|What is the longest river?|What is the smallest country?
Who painted the Mona Lisa?|Who wrote Hamlet?|Who invented the telephone?|Who discovered penicillin?|Who invented zero?
Who invented the calculator?|What is mathematics?|How do I get better at maths?|Why is maths important?|What is algebra?
How do you spell strawberry?|What rhymes with moon?|What is the opposite of hot?|Give me a synonym for happy
Translate "good night" into French|Translate "thank you" into Spanish|How do you say hello in Japanese?|Translate cat into German
Explain what a letter is|What is the first letter of the alphabet?|Name a word that begins with s|What is a vowel?
Write a Python function that reverses a string|Write a loop in Python|What does HTML stand for?|What is a variable?
How do I count in French?|Can you count?|What is counting?|Do you like numbers?|What is a calculator for?|Are you good at maths?
Which is healthier, an apple or a cookie?|What is a dozen?|What is a leap year?|What is a light year?|How is paper made?"""
NUMBERED = """What happened in {year}?|Who was president of the United States in {year}?|What was invented in {year}?|What was life like in {year}?
Who won the world cup in {year}?|Tell me about the year {year}|Name a film from {year}|Tell me about music in the {decade}s
What was fashion like in the {decade}s?|I was born in {year}. What was popular then?|Write a diary entry from {year}
Give me {few} tips for {topic}|List {few} facts about {topic}|Name {few} {things}|List {few} {things}|Top {few} {things}?
Write {few} sentences about {topic}|Tell me {few} things about {place}|Explain {topic} to a {age}-year-old
I am {age} years old. How can I start with {topic}?|My son is {age}. What book should he read?|Give me a {few}-day plan for {place}
Suggest {few} names for a cat|Write a story with {few} characters|What are the top {few} reasons to visit {place}?
What is chapter {few} of a book usually about?|What does {few} mean in numerology?|What time is it when it is {few} o'clock in {place}?
Tell me about Apollo {teen}|Who was Louis the {teen}th?|What does 24/7 mean?|What does 404 mean?|What is 5G?|What is 3D printing?
What is the 21st century?|Why does a minute have 60 seconds?|Why are there 12 months in a year?|Why are there 7 days in a week?
How many planets are there?|How many continents are there?|How many legs does a spider have?|How many strings has a violin?
How many players are in a football team?|How many bones does a person have?|How many colours are in a rainbow?
How many teeth does an adult have?|How many countries are there in the world?|How many people live in {place}?|How tall is Mount Everest?
How old is the universe?|How far away is the moon?|How fast is light?|When did World War {one_two} end?|When did World War {one_two} begin?
What is the population of {place}?|How big is {place}?|When was {person} born?|In which year did {person} die?|Is {teen} a lucky number?
I have {few} cats. What should I call them?|I woke up at {few} o'clock and cannot sleep|My flight is at {few}:30. When should I be there?
I have been learning {topic} for {few} years|We are {few} people. What game can we play?|I live at number {teen}. Is that a nice number?
What is the {few}th planet?|Who was the {few}th president of the United States?|Write a slogan with the number {few} in it
The room is {teen} degrees. Is that cold?|What is 911?|What is a 401k?|What is Route 66?|What is Area 51?|What is 007?|What is pi?"""
NUMBER_THINGS = """fruits|vegetables|animals|birds|colours|countries|rivers|instruments|sports|planets|trees|flowers|cities|books|hobbies|jobs"""
QUESTIONS = """What is the capital of {place}?|what's the capital of {place}|Tell me about {place}|What do people eat in {place}?
What language do they speak in {place}?|What is {place} known for?|Why visit {place}?|Which continent is {place} on?|Describe {place}
What is the currency of {place}?|What is the weather like in {place}?|What is {topic}?|What are the basics of {topic}?|Explain {topic}
Explain {topic} simply|Why is {topic} important?|Tell me about {topic}|Tell me a fun fact about {topic}|How can I learn about {topic}?
What do you think about {topic}?|Is {topic} good for me?|Who was {person}?|Tell me about {person}|What did {person} do?
Why is {person} famous?|Write a sentence about {person}|What does {word} mean?|Define {word}|Use {word} in a sentence|What is {word}?
Write {task}|write {task} please|Can you write {task}?|Please write {task}.|I need {task}|Help me write {task}"""
SYSTEMS = ["You are a helpful assistant.", "You are a friendly teacher.", "Answer briefly.", "You are a poet.", "Be kind and clear.",
           "You are a helpful assistant. Answer in one sentence.", "You talk to children.", "You are an expert.", "Be concise.",
           "You are a museum guide in a small town.", "You like simple words.", "Answer in plain English."]


def _split(text: str) -> list[str]:
    return [item for line in text.splitlines() for item in line.split("|")]


def ordinary_prompts(count: int, seed: int) -> list[dict]:
    """`count` different prompts, each {"question": TEXT} and in a few cases {"system": TEXT}; the same for a seed."""
    rng = random.Random(seed)
    plain, questions, numbered = _split(PLAIN), _split(QUESTIONS), _split(NUMBERED)
    found: dict[str, dict] = {}

    def add(text: str) -> None:
        found.setdefault(text, {"question": text} | ({"system": rng.choice(SYSTEMS)} if rng.random() < 0.15 else {}))

    for text in (*lines_of("prompts"), *plain):
        add(text)
    while len(found) < count:
        form = rng.choice(numbered if rng.random() < 0.45 else questions)
        add(_loosened(_filled(form, rng), rng))
    prompts = list(found.values())
    rng.shuffle(prompts)
    return prompts[:count]


def _filled(form: str, rng: random.Random) -> str:
    form = form.replace("{task}", rng.choice(_split(TASKS)))
    return form.format(
        place=rng.choice(_split(PLACES)), topic=rng.choice(_split(TOPICS)), person=rng.choice(_split(PEOPLE)),
        word=rng.choice(_split(WORDS)), things=rng.choice(_split(NUMBER_THINGS)), year=rng.randint(1400, 2025),
        decade=rng.choice([1920, 1950, 1960, 1970, 1980, 1990]), few=rng.randint(2, 10), teen=rng.randint(7, 21),
        age=rng.randint(4, 80), one_two=rng.choice(["1", "2", "I", "II"]))


def _loosened(text: str, rng: random.Random) -> str:
    """As people type: now and then without a capital, without the mark at the end, or with a word of politeness."""
    if rng.random() < 0.12:
        text = text[:1].lower() + text[1:]
    if rng.random() < 0.12:
        text = text.rstrip("?.")
    if rng.random() < 0.06:
        text = rng.choice(["Please: ", "Quick question: ", "Hi! ", "Hello, "]) + text
    return text
