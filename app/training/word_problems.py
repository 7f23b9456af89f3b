"""Small stories that end in a sum: shopping, sharing, distances, time, measures.

This module must never answer.
"""

from __future__ import annotations

import random
import re

from app.training.numbers import as_written, decimal, money, spelled, whole

NAMES = ("Anna|Tom|Maria|Ben|Lena|Omar|Yuki|Priya|Carlos|Fatima|Noah|Emma|Ivan|Mei|Sara|Luca|Nina|Paul|Aisha|Jonas|Ruth|Leo|Clara|Max|my brother|my aunt|"
         "the baker|our teacher|the neighbour|my uncle|a farmer|a tailor").split("|")
THINGS = ("apples|pears|eggs|books|pens|pencils|marbles|stickers|cookies|tickets|chairs|bottles|oranges|cards|coins|stamps|candles|cups|plates|"
          "balloons|flowers|bricks|shirts|socks|lemons|muffins|sandwiches|toys|buttons|bananas|postcards|batteries|nails|tiles|bags of rice|pots|"
          "tulips|tomatoes|letters|photos|spoons|keys|lamps|seeds|fish|shells|ribbons|pillows|hats|drums").split("|")
BOXES = "boxes|bags|packs|crates|baskets|rows|shelves|trays|cartons|jars|buckets|sacks|drawers|piles".split("|")

# {a} {b} {c} are whole numbers, {h} {g} small ones, {m} {k} {l} money, {d} {e} decimals, {p} a percentage, {y} {z} years;
# {n} and {o} are names, {t} and {s} things, {x} boxes. Of [one/another] one is taken.
STORIES = """{n} [has/owns/keeps] {a} {t} and [buys/gets/finds] {b} more. [How many {t} are there now?/How many does {n} have now?/How many is that?]|{a}+{b}|t
{n} has {a} {t} and [gives {b} to {o}/gives {b} away/loses {b}/sells {b} of them]. How many are [left/left over/still there]?|{a}-{b}|t
[Of/Out of] {a} {t}, {b} are [broken/gone/sold/red]. How many are [not/left]?|{a}-{b}|t
{n} had {a} {t}, [lost/sold/ate] {b} and [found/bought/got] {c}. How many [are there now/does {n} have now]?|{a}-{b}+{c}|t
{n} had {a} {t}, got {b} more and then [gave away/lost/sold] {c}. How many are left?|{a}+{b}-{c}|t
There are {h} {x} [with/of/holding] {a} {t} each. How many {t} are [there/there in all/that]?|{h}*{a}|t
[Each of/In each of] the {h} {x} [holds/there are] {a} {t}. How many [is that/are there altogether]?|{h}*{a}|t
{h} {x} of {a} {t} and {b} loose ones. How many {t} altogether?|{h}*{a}+{b}|t
{h} {x} of {a} {t}, [but {b} are missing/of which {b} are broken/and {b} are taken out]. How many are left?|{h}*{a}-{b}|t
{n} [packs/puts/sorts] {f} {t} into {h} {x} [equally/evenly]. How many are in each?|{f}/{h}|t
How many {x} [are needed/does one need] for {f} {t} with {h} in each?|{f}/{h}|
{h} [friends/children/people] share {f} {t} [equally/evenly/fairly]. How many does each [get/have]?|{f}/{h}|t
{n} and {o} share {f} {t} [equally/evenly/half and half]. How many does each get?|{f}/2|t
{n} has {a} {t}. {o} has {h} times as many. How many does {o} have?|{h}*{a}|t
{n} has {a} {t} and {o} has {h} times as many. How many [do they have together/is that together]?|{a}+{h}*{a}|t
{n} has {a} {t} and {o} has {b}. How many [more does {n} have/is the difference]?|{a}-{b}|t
{n} has {a} {t}, {o} has {b} [more/more than that]. How many does {o} have?|{a}+{b}|t
{n} has {a} {t}, {o} has {b} fewer. How many does {o} have?|{a}-{b}|t
{n} has {a} {t} and {o} has {b}. How many [do they have together/is that in all]?|{a}+{b}|t
{n} [wants/needs] {a} {t} and has {b}. How many [are missing/more does {n} need/are still to come]?|{a}-{b}|t
{n} [has read/has done/has walked] {b} of {a} [pages/tasks/km]. How [many/much] [is left/remains]?|{a}-{b}|
{h} [hens/machines/workers] [lay/make/bring] {g} {t} a [day/week] each. How many in {b} [days/weeks]?|{h}*{g}*{b}|t
{n} bakes {a} {t} a day, {h} days a week. How many [a week/in a week]?|{a}*{h}|t
One [ticket/lamp/book/shirt] costs {m}. [How much do {h} cost?/What do {h} of them cost?/How much is it for {h}?]|{h}*{m}|
A [ticket/coffee/stamp/cake] is {m}. How much do I pay for {a}?|{a}*{m}|
{h} {t} cost {m}. [How much is one?/What does one cost?/What is the price of one?/How much is it for each?]|{m}/{h}|
A pack of {h} {t} is {m}. What does each [cost/come to]?|{m}/{h}|
{a} [metres/kilos/litres] cost {m}. What does one [metre/kilo/litre] cost?|{m}/{a}|
What is the price [per item/of each] if {a} {t} cost {c}?|{c}/{a}|
I buy {h} {t} at {m} each and {g} {s} at {k} each. [How much do I pay?/What is the total?]|{h}*{m}+{g}*{k}|
I buy {h} {t} [at/for] {m} each and one [bag/hat/lamp] [at/for] {k}. What [is the total/do I pay]?|{h}*{m}+{k}|
I buy something for {m} and something for {k}. How much is that [together/in all]?|{m}+{k}|
I buy things for {m}, {k} and {l}. What do I pay?|{m}+{k}+{l}|
I pay [with {c}/with a {c} note] and it costs {m}. [How much change do I get?/What is my change?/How much do I get back?]|{c}-{m}|
{n} has {c} and spends {m} and {k}. How much is left?|{c}-{m}-{k}|
{n} has {c} and spends {m}, {k} and {l}. [How much is left?/What remains?]|{c}-{m}-{k}-{l}|
I have {c} and buy {h} {t} at {k}. How much [money is left/is left/remains]?|{c}-{h}*{k}|
I have {k}. A [game/book/ticket] costs {m}. How much more do I need?|{m}-{k}|
{n} earns {m} [an hour/per hour] and works {a} hours. How much is that?|{a}*{m}|
{n} saves {a} every [month/week]. How much is that after {h} [months/weeks]?|{h}*{a}|
{n} saves {m} a week. How much is it [after {a} weeks/in {a} weeks]?|{a}*{m}|
[Rent/A room/A course] is {a} a month. What is it [per year/in a year/for 12 months]?|12*{a}|
My [phone/internet/gym] costs {m} a month. How much [per year/in a year]?|12*{m}|
A salary of {a} a year is how much [per month/a month]?|{a}/12|
[The bill is/Lunch was/The taxi cost] {m} and we are {h}. What does each pay?|{m}/{h}|
[Split/Share/Divide] {m} [between/among] {h} people.|{m}/{h}|
split a bill of {m} {h} ways|{m}/{h}|
The bill is {m} and we add a tip of {k}. [Divided among {h}, what does each pay?/We are {h}: how much each?]|({m}+{k})/{h}|
A [plumber/painter/taxi] charges {a} to come and {h} [for every hour/an hour/per km]. What do {b} [hours/km] cost?|{a}+{h}*{b}|
[Dinner was/The bill is/Lunch cost] {m}. How much is it with a {p}% tip?|{m}+{m}*{p}/100|
[Dinner was/The bill is/Lunch cost] {m}. How much is [the {p}% tip/a tip of {p}%/a {p} percent tip]?|{m}*{p}/100|
A [coat/lamp/bike/sofa] [costs {m} and is {p}% off/of {m} is {p}% off/at {m} is reduced by {p}%]. What [do I pay/does it cost now/is the new price]?|{m}-{m}*{p}/100|
A [coat/lamp/bike/sofa] of {a} is {p}% off. [How large is the discount?/How much do I save?/How much is taken off?]|{a}*{p}/100|
The price is {m} plus {p}% tax. [What is the total?/What do I pay?]|{m}+{m}*{p}/100|
[A table costs/The price is] {m} [before tax/without tax]. The tax is {p}%. How much is the tax?|{m}*{p}/100|
A [laptop/phone/chair] costs {a} before {p}% tax. What does it cost [with tax/in the end]?|{a}+{a}*{p}/100|
[A house/A car/A painting] is sold for {a} and the [agent/seller/bank] takes {p}%. How much is that?|{a}*{p}/100|
{n} [earns/makes/gets] {a} and [saves/puts aside/gives away] {p}%. How much is that?|{a}*{p}/100|
{n} earns {a} and gets a raise of {p}%. What does {n} earn then?|{a}+{a}*{p}/100|
A [class/village/club] of {a} has {p}% [girls/children/members over fifty]. How many is that?|{a}*{p}/100|
A [town/club/village] of {a} people [grows/shrinks] by {p}%. By how many people?|{a}*{p}/100|
A [town/club/village] of {a} people grows by {p}%. How many [people are there/live there] then?|{a}+{a}*{p}/100|
On a test with {a} questions {n} got {p}% right. How many [is that/questions]?|{a}*{p}/100|
[The battery/The tank/The disk] holds {a} and shows {p}%. How much is [left/in it]?|{a}*{p}/100|
I [invest/put] {a} [at {p}%/for a year at {p} percent]. How much [do I gain/interest is that]?|{a}*{p}/100|
I [invest/put] {a} at {p}%. How much do I have after a year?|{a}+{a}*{p}/100|
A car drives {f} km in {h} hours. What is its [average speed/speed]?|{f}/{h}|
A train goes {a} km per hour for {e} hours. How far [does it get/is that]?|{a}*{e}|
How [long/many hours] does it take for {f} km at {h} km per hour?|{f}/{h}|hours
A [machine/printer/pump] does {h} [pages/litres/pieces] a minute. How many minutes for {f}?|{f}/{h}|minutes
A [machine/printer/pump] does {h} [pages/litres/pieces] a minute. How many in {b} minutes?|{h}*{b}|
A [snail/turtle/plant] [moves/grows] {d} cm [a minute/a day]. How far in {a} [minutes/days]?|{a}*{d}|
I drive {d} km to work and back, {h} days a week. How many km a week?|2*{d}*{h}|
{n} runs {d} km a day. How far is that in {a} days?|{a}*{d}|
I walked {d} km in the morning and {e} km later. How far altogether?|{d}+{e}|
A car uses {h} litres [per/for/on] 100 km. How [much/many litres] for {a} km?|{h}*{a}/100|litres
{n} reads {a} pages a day. How many pages in {h} weeks?|{a}*7*{h}|pages
A book has {f} pages and I read {h} a day. How many days does it take?|{f}/{h}|days
How many minutes are {h} hours?|{h}*60|minutes
How many minutes are in {h} hours and {u} minutes?|{h}*60+{u}|minutes
How many seconds are in {a} minutes?|{a}*60|seconds
How many hours are in {a} days?|{a}*24|hours
how many days is {a} weeks|{a}*7|days
How many weeks are {a} days?|{a}/7|weeks
How many hours are {a} minutes?|{a}/60|hours
How many months are {h} years?|{h}*12|months
How many {t} are in {a} dozen?|{a}*12|t
How many metres are {d} km?|{d}*1000|metres
How many grams are {d} kilos?|{d}*1000|grams
How many cm are {d} metres?|{d}*100|centimetres
One mile is 1.609 km. How many km are {a} miles?|{a}*1.609|
An inch is 2.54 cm. How many cm are {a} inches?|{a}*2.54|
[A yard has 3 feet/A yard is 3 feet]. How many feet are {a} yards?|{a}*3|feet
[A yard has 3 feet/A yard is 3 feet]. How many yards are {a} feet?|{a}/3|yards
A [gallon/bucket/barrel] is {h} litres. How many litres are {a} [gallons/buckets/barrels]?|{a}*{h}|litres
A [gallon/bucket/barrel] is {h} litres. How many [gallons/buckets/barrels] are {f} litres?|{f}/{h}|
One pound is 0.4536 kg. What is {a} pounds in kg?|{a}*0.4536|
If one dollar is {e} euros, how many euros are {a} dollars?|{a}*{e}|
A euro costs {e} dollars. What do I get for {m} euros?|{m}*{e}|
A room is {d} m by {e} m. What is its area?|{d}*{e}|square metres
A [floor/wall/garden] is {h} by {g} metres and [carpet/paint/grass] costs {a} a square metre. What does it cost [in all/to cover it]?|{h}*{g}*{a}|
What is the area of a rectangle {a} by {b}?|{a}*{b}|
What is the perimeter of a [rectangle/garden/field] of {a} by {b}?|2*({a}+{b})|
What is the [perimeter of a square with side {a}/distance around a square with sides of {a}]?|4*{a}|
What is the area of a square with a side of {a}?|{a}*{a}|
A box is {a} by {b} by {h}. What is its volume?|{a}*{b}*{h}|
A recipe for {h} people [needs/takes] {a} g of [flour/sugar/rice]. How [much/many grams] for {g} people?|{a}/{h}*{g}|grams
{a} g of [rice/flour/sugar] are enough for one. How many grams for {h}?|{a}*{h}|grams
A theatre has {h} rows of {a} seats. {b} are taken. How many are free?|{h}*{a}-{b}|seats
{b} [guests/children/students] pay {h} each and the [bus/hall/band] costs {c}. How much is left over?|{b}*{h}-{c}|
A bus has {a} passengers. {h} get off and {b} get on. How many are on it?|{a}-{h}+{b}|passengers
{n} is {h} years old. {o} is {g} times as old. How old is {o}?|{h}*{g}|
{n} is {a} years old. {o} is {h} years [older/younger]. What is the difference in age doubled?|2*{h}|
{n} is {a} years old. {o} is {h} years older. How old is {o}?|{a}+{h}|
{n} is {a} years old. How old was {n} {h} years ago?|{a}-{h}|
{n} was {h} in {y}. How old was {n} in {z}?|{h}+{z}-{y}|
[A tree was planted/A school was founded/A clock was made] in {y}. How old [was it/is it] in {z}?|{z}-{y}|years
It is {d} degrees and gets {e} degrees warmer. How warm is it then?|{d}+{e}|
It was -{h} degrees at night and {g} at noon. By how [much/many degrees] did it get warmer?|{g}+{h}|
A [mountain/tower] is {a} metres high and we stand at {b}. How many metres [are left/is it to the top]?|{a}-{b}|metres
How much [more/larger/bigger] is {a} than {b}?|{a}-{b}|
How much [less/smaller] is {b} than {a}?|{a}-{b}|
The [rent/price/salary] was {b} and is now {a}. By how much did it rise?|{a}-{b}|
A tank holds {a} litres and {b} are used. How much is left?|{a}-{b}|litres
I have {a} {t} in the kitchen, {b} in the car and {c} at work. How many is that?|{a}+{b}+{c}|t
{n} has {h} coins of [2/5/10] and {g} coins of 0.50. How many coins is that?|{h}+{g}|coins
{h} coins of {g} and {b} coins of 0.50: how much money is that?|{h}*{g}+{b}*0.50|
My score was {a}, then {b}, then {c}. What is the total?|{a}+{b}+{c}|
{n} scores {a}, {b} and {c} points. What is the average?|({a}+{b}+{c})/3|
My marks are {a}, {b}, {c} and {h}. What is my average?|({a}+{b}+{c}+{h})/4|
{n} owes {o} {m} and pays back {k}. How much does {n} still owe?|{m}-{k}|
A loan of {f} is paid back in {h} equal parts. How much is each?|{f}/{h}|"""
PREFIXES = ["", "", "", "", "", "", "My teacher asked: ", "Homework question. ", "Can you help me? ", "Hi! ", "hey, ", "I have a question: ", "Puzzle: ",
            "Please help: ", "My daughter asks this. ", "I am stuck. ", "Here is a problem. ", "Quick one: ", "Good morning. "]


def story(rng: random.Random):
    """(question, expression, a word for what comes out or None)."""
    line = re.sub(r"\[([^]]*)\]", lambda choice: rng.choice(choice[1].split("/")), rng.choice(STORIES.splitlines()))
    question, expression, unit = line.split("|")
    values = _values(rng, expression)
    shown = dict(values)
    for name in "abcf":
        values[name], shown[name] = as_written(rng, int(values[name]))
    if rng.random() < 0.3:
        sign = rng.choice("$$€£")
        shown |= {name: sign + values[name] for name in "mkl"}
    for name in "hg":
        if rng.random() < 0.2:
            shown[name] = spelled(int(values[name]))
    text = question.format(**shown)
    return rng.choice(PREFIXES) + text[:1].upper() + text[1:], expression.format(**values), values["t"] if unit == "t" else unit or None


def _values(rng: random.Random, expression: str) -> dict[str, str]:
    h, g = rng.randint(2, 12), rng.randint(2, 20)
    a, b, c = (whole(rng, rng.choice([2, 2, 3, 3, 4])) for _ in range(3))
    if re.search(r"\{a\}(\+\{b\})?-", expression) or "{h}*{a}-{b}" in expression or "{b}*{h}-{c}" in expression:
        a, b, c = sorted((a + 20, b, c), reverse=True)
        a += b
        if "{b}*{h}" in expression:
            c = min(c, b * h)
    y, z = sorted(rng.sample(range(1500, 2030), 2))
    cash = int(rng.choice(["20", "50", "100", "10", "200", "35", "500"]))
    prices = [money(rng, cash * 0.3) if "{c}-" in expression else money(rng, most) for most in (100, 30, 30)]
    if "{m}-{k}" in expression and float(prices[0]) < float(prices[1]):
        prices[:2] = prices[1::-1]
    (n, o), (t, s) = rng.sample(NAMES, 2), rng.sample(THINGS, 2)
    return {"a": str(a), "b": str(b), "c": str(cash if "{c}-" in expression or "{c}/" in expression else c), "f": str(h * rng.randint(2, 90)), "h": str(h), "g": str(g),
            "m": prices[0], "k": prices[1], "l": prices[2], "d": decimal(rng, 60), "e": decimal(rng, 10), "u": str(rng.randint(1, 59)),
            "p": rng.choice([*"5 8 10 12 15 18 20 25 30 35 40 50 3 7 12.5".split(), str(rng.randint(1, 99))]), "y": str(y), "z": str(z),
            "n": n, "o": o, "t": t, "s": s, "x": rng.choice(BOXES)}
