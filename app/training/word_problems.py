"""Small stories that end in a sum: shopping, sharing, distances, time, measures.

Every function gives (question, expression, a word for what comes out or None). This module must never answer.
"""

from __future__ import annotations

import random

from app.training.numbers import decimal, money, spelled, whole

NAMES = "Anna|Tom|Maria|Ben|Lena|Omar|Yuki|Priya|Carlos|Fatima|Noah|Emma|Ivan|Mei|Sara|Luca|Nina|Paul|Aisha|Jonas|Ruth|Leo|Clara|Max".split("|")
THINGS = ("apples|pears|eggs|books|pens|pencils|marbles|stickers|cookies|tickets|chairs|bottles|oranges|cards|coins|stamps|candles|cups|plates|"
          "balloons|flowers|bricks|shirts|socks|lemons|muffins|sandwiches|toys|buttons|bananas|postcards|batteries|nails|tiles|bags of rice").split("|")
BOXES = "boxes|bags|packs|crates|baskets|rows|shelves|trays|cartons|jars".split("|")

# {a} {b} {c} are whole numbers, {m} {k} {l} money, {d} {e} decimals, {h} a small whole number; {n} and {o} are names, {t} and {s} things
STORIES = """{n} has {a} {t} and buys {b} more. How many {t} does {n} have now?|{a}+{b}|t
{n} has {a} {t} and gives {b} to {o}. How many are left?|{a}-{b}|t
{n} had {a} {t}, lost {b} and found {c}. How many {t} are there now?|{a}-{b}+{c}|t
There are {h} {x} with {a} {t} each. How many {t} are there in all?|{h}*{a}|t
There are {h} {x} of {a} {t} and {b} loose ones. How many {t} altogether?|{h}*{a}+{b}|t
{n} packs {a} {t} into {h} {x} equally. How many are in each?|{a}/{h}|t
{h} friends share {a} {t} equally. How many does each get?|{a}/{h}|t
{n} has {a} {t}. {o} has {h} times as many. How many does {o} have?|{h}*{a}|t
{n} has {a} {t}. {o} has {h} times as many. How many do they have together?|{a}+{h}*{a}|t
{n} has {a} {t} and {o} has {b}. How many more does {n} have?|{a}-{b}|t
{n} has {a} {t} and {o} has {b}. How many do they have together?|{a}+{b}|t
A ticket costs {m}. How much do {h} tickets cost?|{h}*{m}|
{h} {t} cost {m}. How much is one?|{m}/{h}|
One of the {t} costs {m}. What do {a} of them cost?|{a}*{m}|
I buy {h} {t} at {m} each and {b} {s} at {k} each. How much do I pay?|{h}*{m}+{b}*{k}|
I buy something for {m} and something for {k}. How much is that together?|{m}+{k}|
I pay {m} with a {c} note. How much change do I get?|{c}-{m}|
If I pay with {c} and it costs {m}, what is my change?|{c}-{m}|
{n} has {c} euros and spends {m} and {k}. How much is left?|{c}-{m}-{k}|
{n} earns {a} an hour and works {h} hours. How much is that?|{a}*{h}|
{n} earns {m} per hour. What does she get for {a} hours?|{a}*{m}|
{n} saves {a} every month. How much is that in a year?|12*{a}|
{n} saves {m} a week. How much is it after {a} weeks?|{a}*{m}|
Rent is {a} a month. What is it per year?|12*{a}|
My phone costs {m} a month. How much per year?|12*{m}|
A salary of {a} a year is how much per month?|{a}/12|
The bill is {m} and we are {h}. What does each pay?|{m}/{h}|
Split {m} between {h} people.|{m}/{h}|
split a bill of {m} {h} ways|{m}/{h}|
The bill is {m} and we add a tip of {k}. Divided among {h} people, what does each pay?|({m}+{k})/{h}|
Dinner was {m}. How much is it with a {p}% tip?|{m}+{m}*{p}/100|
A coat costs {m} and is {p}% off. What do I pay?|{m}-{m}*{p}/100|
A jacket of {a} is reduced by {p} percent. What does it cost now?|{a}-{a}*{p}/100|
The price is {m} plus {p}% tax. What is the total?|{m}+{m}*{p}/100|
How much is the {p}% tip on a bill of {m}?|{m}*{p}/100|
A class of {a} has {p}% girls. How many girls is that?|{a}*{p}/100|
A car drives {a} km in {h} hours. What is its average speed?|{a}/{h}|
A train goes {a} km per hour for {e} hours. How far does it get?|{a}*{e}|
I drive {d} km to work and back, {h} days a week. How many km a week?|2*{d}*{h}|
{n} runs {d} km a day. How far is that in {a} days?|{a}*{d}|
I walked {d} km in the morning and {e} km later. How far altogether?|{d}+{e}|
A car uses {d} litres per 100 km. How much for {a} km?|{a}*{d}/100|
{n} reads {a} pages a day. How many pages in {h} weeks?|{a}*7*{h}|pages
A book has {a} pages and I read {b} a day. How many days does it take?|{a}/{b}|days
A book has {a} pages. {n} has read {b}. How many are left?|{a}-{b}|pages
How many minutes are {h} hours?|{h}*60|minutes
How many minutes are in {h} hours and {u} minutes?|{h}*60+{u}|minutes
How many seconds are in {a} minutes?|{a}*60|seconds
How many hours are in {a} days?|{a}*24|hours
how many days is {a} weeks|{a}*7|days
How many weeks are {a} days?|{a}/7|weeks
How many hours are {a} minutes?|{a}/60|hours
How many months are {h} years?|{h}*12|months
How many eggs are in {a} dozen?|{a}*12|eggs
How many metres are {d} km?|{d}*1000|metres
How many grams are {d} kilos?|{d}*1000|grams
How many cm are {d} metres?|{d}*100|centimetres
One mile is 1.609 km. How many km are {a} miles?|{a}*1.609|
An inch is 2.54 cm. How many cm are {a} inches?|{a}*2.54|
One pound is 0.4536 kg. What is {a} pounds in kg?|{a}*0.4536|
If one dollar is {e} euros, how many euros are {a} dollars?|{a}*{e}|
A euro costs {e} dollars. What do I get for {m} euros?|{m}*{e}|
A room is {d} m by {e} m. What is its area?|{d}*{e}|square metres
What is the area of a rectangle {a} by {b}?|{a}*{b}|
What is the perimeter of a rectangle of {a} by {b}?|2*({a}+{b})|
What is the perimeter of a square with side {a}?|4*{a}|
What is the area of a square with a side of {a}?|{a}*{a}|
A box is {a} by {b} by {h}. What is its volume?|{a}*{b}*{h}|
A recipe for {h} people needs {a} g of flour. How much for {b} people?|{a}/{h}*{b}|
A theatre has {h} rows of {a} seats. {b} are taken. How many are free?|{h}*{a}-{b}|seats
A farmer has {a} sheep, buys {b} and sells {c}. How many are there now?|{a}+{b}-{c}|sheep
A bus has {a} passengers. {h} get off and {b} get on. How many are on it?|{a}-{h}+{b}|passengers
{n} is {a} years old. {o} is {h} years older. How old is {o}?|{a}+{h}|
{n} is {a} years old. How old was {n} {h} years ago?|{a}-{h}|
It is {d} degrees and gets {e} degrees warmer. How warm is it then?|{d}+{e}|
A tank holds {a} litres and {b} are used. How much is left?|{a}-{b}|litres
{n} bakes {a} {t} a day, {h} days a week. How many in a year of 52 weeks?|{a}*{h}*52|t
I have {a} {t} in the kitchen, {b} in the car and {c} at work. How many is that?|{a}+{b}+{c}|t
{n} sells {a} {t} at {m} each. How much money is that?|{a}*{m}|
My score was {a}, then {b}, then {c}. What is the total?|{a}+{b}+{c}|
{n} scores {a}, {b} and {c} points. What is the average?|({a}+{b}+{c})/3|
{a} people pay {m} each. How much comes in?|{a}*{m}|
{n} owes {o} {m} and pays back {k}. How much does {n} still owe?|{m}-{k}|
A pack of {h} {t} costs {m}. What does each cost?|{m}/{h}|
What is the price per item if {a} {t} cost {c}?|{c}/{a}|
A loan of {a} is paid back in {h} equal parts. How much is each?|{a}/{h}|
I slept {d} hours yesterday and {e} hours today. How much more is {d} than {e}?|{d}-{e}|"""
PREFIXES = ["", "", "", "", "", "", "My teacher asked: ", "Homework question. ", "Can you help me? ", "Hi! ", "hey, ", "I have a question: ", "Puzzle: ",
            "Please help: ", "My daughter asks this. ", "I am stuck. ", "Here is a problem. ", "Quick one: ", "Good morning. "]


def story(rng: random.Random):
    question, expression, unit = rng.choice(STORIES.splitlines()).split("|")
    small = rng.randint(2, 12)
    a, b, c = (whole(rng, rng.choice([2, 2, 3, 3, 4])) for _ in range(3))
    if "{a}-{b}" in expression or "{a}-{h}" in expression:
        a = max(a, b + small) + rng.randint(1, 40)
    if "{a}/{h}" in expression and rng.random() < 0.7:
        a = small * rng.randint(2, 60)
    n, o = rng.sample(NAMES, 2)
    t, s = rng.sample(THINGS, 2)
    values = {"a": str(a), "b": str(b), "c": str(c), "h": str(small), "m": money(rng), "k": money(rng, 30), "d": decimal(rng, 60),
              "e": decimal(rng, 10), "p": str(rng.choice([5, 8, 10, 12, 15, 18, 20, 25, 30, 35, 40, 50])), "u": str(rng.randint(1, 59)), "n": n, "o": o,
              "t": t, "s": s, "x": rng.choice(BOXES)}
    if "{c}-{m}" in expression:
        values["c"] = rng.choice(["20", "50", "100", "10", "200"])
        values["m"], values["k"] = money(rng, int(values["c"]) * 0.6), money(rng, int(values["c"]) * 0.35)
    if "{m}-{k}" in expression:
        values["k"] = money(rng, max(1, float(values["m"])))
    shown = dict(values)
    if rng.random() < 0.3:
        sign = rng.choice("$$€£")
        shown |= {name: sign + values[name] for name in "mk"}
    if rng.random() < 0.15:
        shown["h"] = spelled(small)
    if rng.random() < 0.1:
        shown |= {name: f"{int(values[name]):,}" for name in "abc"}
    text = rng.choice(PREFIXES) + question.format(**shown)
    return text, expression.format(**values), values["t"] if unit == "t" else unit or None
