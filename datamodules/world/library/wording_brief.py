"""Wording of manuals, brief: template of a manual that tells its reader what to do.

`composing` says what its marks mean.
"""

KIND = "User Manual"
TEMPLATE = """
# Before you start
## How to use this manual
Please read this manual before you unpack your {unit}, and keep it for later. Chapters are in the order in which you \
will need them. If you pass the {unit} on, pass the manual on too.
Words in quotation marks are what you see on the screen. Numbered lines are steps; do them one after the other. If \
something is not clear, ask your dealer before you try it out. You can also read all of this on our website, where you \
will find films that show the most important jobs, and answers to questions that many people have asked.
This manual is for owners of the {n} and for the people who look after it. Pictures show one version; yours may look \
slightly different. Texts with a frame warn you of something that could hurt you or damage the {unit}.
## What it is for
Use the {n} for {use}, and for nothing else. Do not use it {misuse}. We are not responsible for what happens if you do.
It has been made for people at work and not for homes with small children. If you want to do something with it that is \
not described here, write to us first. Changes to the housing, to the wiring or to the software are not allowed, even \
when they look harmless, because the safety tests were made with everything as it left our factory.
## Who may do what
Anyone who has read this manual may use the {unit} and clean it. Wiring and repairs are jobs for an electrician. Never \
let children play near it, even when it is switched off, and do not leave the packing material within their reach.
Show new colleagues how everything works before they use it alone. People who cannot read this manual, for whatever \
reason, need somebody who explains it to them. Whoever is tired or ill should leave repairs for another day. If you \
hire a company for a job, ask whether its people have done such a job before.
## Staying safe
Most accidents happen because somebody was in a hurry. Watch out for {hazard}. Wear gloves and goggles when you work \
on the open {unit}, tie back long hair, and keep the floor around it dry.
Keep the way to the plug free, so that you can pull it quickly. If you smell smoke or hear something unusual, switch \
off and ask for help. Do not put cups, vases or bags on top. Check the cord for cracks from time to time; a damaged \
cord has to be replaced by somebody who knows how to do it.
! Never reach inside right after you have pulled the plug. Parts stay live for a while. Leave the cover shut for \
another {discharge}.
# Getting to know your {unit}
## How it works
{design}
@figure blocks: What is inside
## Buttons and lights
You control everything from the panel on the front. The lamp next to the screen tells you how things are going: \
{table:lights} shows what its colours mean.
Turn the knob to move through the menu, press it to choose, and hold it to go back. After a minute without a touch, \
the screen shows the start page again. You can make the screen brighter or darker and turn off the beeps. If many \
people come by, lock the buttons in the menu, so that nobody changes your settings for fun.
@figure front: The front panel
@table lights: What the lamp tells you
Lamp | Pattern | What it means
Green | On | Working, everything is fine
Green | Blinking | Saving energy
Yellow | On | Needs attention soon
Red | Blinking | Stopped because of a problem
@own description
# Unpacking and storing
## Unpacking
Open the box where you want to set up the {unit}, because it is hard to carry without its packing. Did it arrive on a \
cold day? Then let it stand without its box for {acclimatise} before you plug it in. Moisture that forms inside would \
ruin the electronics.
Check that nothing is missing: the list is on the lid of the box. Small parts are in a bag between the layers of \
cardboard. Do not throw the box away at once, since you may need it if something has to go back. Pull the film off the \
screen and off the panels; what is left of the glue can be rubbed off with a finger.
## Moving it
Two people should carry the {n}. Hold it by its base, never by cables, hoses or the panel, and keep it upright. Check \
the box for damage when it arrives, and tell the carrier the same day.
Empty everything that can be spilled, and fix loose parts with tape that leaves no glue behind. Measure doors and \
lifts beforehand. Use a trolley for longer ways and avoid thresholds, because hard knocks shake screws loose. In a van \
it has to stand, not lie, with a blanket on each side and a belt around it.
## Putting it in storage
Choose a dry place without dust. It must not get colder there than {storage_low}. Have our service look at the {unit} \
if it has been in storage for more than {storage_months}. Take out what can spoil or leak first.
Clean and dry it thoroughly before, as what stays inside becomes hard or begins to smell. A cover of cloth is better \
than one of plastic, under which moisture collects. Write the date on a piece of paper and stick it to the front. Mice \
like warm housings, so close all openings with tape if there are any around.
# Setting up
## Finding the right place
The {unit} needs air. Leave {clearance} free all around, and do not put anything on top. Choose firm ground that is \
flat to within {slope} per metre. Direct sun, frost, steam and dust shorten its life.
Think about who will use it, and who will pass by. There should be light to see the screen and a socket within reach \
of the cord. Doors and drawers must open fully. Do not choose a corner above a bed or a desk at which somebody has to \
concentrate. Leave enough space for our service to reach the back without moving furniture.
### Fixing it in place
This protects you when somebody leans against it. Choose screws and plugs that suit the wall or the table; those in \
the bag are for wood and brick. If you do not want to drill, ask us for the stand with wheels that can be locked. Take \
care not to hit a pipe or a wire behind the surface.
1. Put the template on the base and mark the holes.
2. Place the rubber feet under the {unit}.
3. Fix the bolts with a torque of {mount_torque}.
4. Push gently against each side: nothing may rock.
## Wiring
### Mains
Give the {n} a line of its own. Its wires need a cross-section of {cable} or more. Fuse the line with {fuse}, and add \
a residual current breaker if there is none. Never use an extension lead.
Compare the plate on the back with what your socket delivers; the wrong voltage destroys the electronics in a moment. \
Ask an electrician if you are in doubt about the age or the quality of your wiring. The breaker should be easy to \
find, with a label on it. Do not share the socket with a heater or a microwave oven.
### Connecting the wires
Follow {figure:terminals}. The clamping screws for the mains wires need {terminal_torque}. Keep thin signal wires away \
from thick mains wires and close the holes that you do not use.
Take off only as much of the sheath as you need. Use sleeves on wires that consist of many strands, and check that no \
strand sticks out. Pull at each wire gently when you have finished. The clamp must hold the sheath, not the wires. \
Make a photograph before you close the lid; it will help whoever opens it next.
@figure terminals: Where the wires go
### Network
You can read all values over the network. A new {unit} answers under the address {address}. The wires to your \
controller can be up to {cable_length} long if you use shielded cable. Put a terminating resistor at each end.
Ask the people who look after your computers before you plug anything in. All settings can also be read in a browser, \
if your network gives out addresses by itself. Nothing is sent to us unless you switch on remote service. Lamps beside \
the socket blink when data come and go. Change the password on the first day.
@own installation
# Using it for the first time
## Switching on
Somebody should stay near for the first hour. It is normal that you smell something new, or hear a click now and then, \
while everything gets warm for the first time. If the screen stays dark, look at the breaker first. If the wrong \
language appears, the flag in the upper corner brings you to the right menu.
1. Turn the main switch to I. The lamp turns yellow.
2. Be patient: it takes {warmup} until everything is initialised.
3. Choose your language and set the clock.
4. Press the knob to save what you have chosen.
## Letting it check itself
Choose "Check" in the menu. The {n} then tries out all its parts, which takes {selftest}. You will hear clicks; they \
are normal. Write the result on the last page of this manual, so that our service can see it later.
Do this after you have moved it, and whenever you have a feeling that something is not as it was. Do not open any \
doors meanwhile. A green tick stands for a part that is fine, a red cross for one that is not. If there is a cross, do \
the check once more; a second cross means that you should call us.
## Settings for experts
Some settings are hidden, because wrong values can do harm. Type {code} to get to them. Please note down what you \
change, and change only one thing at a time.
Among them are limits, delays and what the inputs and outputs do. Our service uses them to fit everything to your \
place, and you will rarely need them. If you got lost, the last entry of the list brings back what was set at the \
factory, but it also deletes names and times that you have entered.
# Every day
@own operation
## Saving energy
When you do not touch the {unit} for {standby_delay}, it goes to sleep. Asleep it takes only {standby_power}. Press \
any button to wake it up; a signal from the network wakes it up too.
The clock goes on, and so do timers that you have set. If you find the pause too short or too long, you can choose \
another one in the menu, or turn the function off for busy days. At night and on holidays you save most if you use the \
main switch instead, once everything has been emptied and cleaned.
## Switching off
There is no need to do this after each use, but you should do it in the evening, before you clean, and before anybody \
works on wires. Nothing is forgotten when the power is gone: settings and counters stay as they are. Lock the switch \
with a small padlock if others could turn it on again.
1. Stop what the {unit} is doing.
2. Do not pull the plug yet: it cools down for {cooldown}.
3. When the fan is silent, turn the main switch to 0.
# Care
## Cleaning
Wipe the outside with a soft cloth. Mix {dilution} of mild cleaner into each litre of warm water. Do not use a \
pressure washer, steel wool or solvents; they leave marks and make seals brittle. Dry everything before you switch on.
Do it once a week, or when you see stains. Crumbs and dust in the slots can be sucked off with the small nozzle of a \
vacuum cleaner. Do not spray anything directly onto the screen. Stickers with warnings should stay where they are; we \
send you new ones for free. Old grease becomes soft when you leave a warm wet cloth on it.
## What to do when
Parts wear, and a little attention keeps the {n} running for years. {table:intervals} shows what has to be done and \
how often. Do it more often if the place is dusty or damp.
Keep a list of what was done and who did it; our service will ask for it. Before each job, pull the plug and wait \
until nothing is hot or moving. Put old parts aside until the new ones work. Some jobs look easy on film but need \
special tools, so leave them to our service where the table says so.
@table intervals: Care plan
Job | How often | Who
*intervals
@own maintenance
## How tight is tight
Loose screws rattle, and tight ones break. When you have taken something apart, use a torque wrench and the values of \
{table:torques}. Take new lock nuts each time.
A torque wrench costs less than a broken thread. Put a drop of oil on screws that have rusted, and replace those with \
worn heads. Begin by hand, so that no screw goes in at an angle, and tighten opposite ones in turn. If a screw keeps \
coming loose, something behind it is bent or missing.
@table torques: Torques
Screws | Size | Torque
*torques
# When something goes wrong
## What the {unit} does
It stops, blinks red and shows a code. After small problems it starts again by itself, but no more than {restarts} \
times in a row; then it waits for you. The last {log_entries} are kept in the event log and survive a power cut.
Big problems stop it at once and for good, until somebody has had a look. If there are several messages, turn the knob \
to see them all. A message that disappears by itself is kept in the list with day and time. You can have messages sent \
to your telephone if the network is connected and you have entered a number.
## Clearing a fault
Never just press the button and hope for the best: the same fault will come back and may do more harm than before. \
Write down what you were doing when it happened. If there was a storm or a power cut, mention it when you call, since \
many strange faults have their cause in the mains.
1. Look up the code in {table:errors} and do what it says.
2. Press the acknowledge button for {reset_hold}.
3. Wait for the lamp to turn green.
4. Call us if the same code comes back.
## Codes
@table errors: Codes on the screen
Code | What is wrong | What to do
*errors
# Facts and figures
## Electricity
The plate on the back repeats the most important figures of the {n}. Please have them at hand when you call us.
@table electrical: Electricity
What | Figure
Mains voltage | {supply}
Full load | {power}
Current to earth | {leakage}
*specifications
@figure curve: {curve}
## Surroundings
@table ambient: Surroundings
What | Figure
Room temperature, from | {ambient_low}
Room temperature, up to | {ambient_high}
Humidity of the air, up to | {humidity}
Height above the sea, up to | {altitude}
Loudness one metre away | {noise}
## Size and weight
@table dimensions: Size and weight
What | Figure
Left to right | {width}
Bottom to top | {height}
Front to back | {depth}
Weight | {weight}
Weight in its box | {packed}
# Parts and service
## Guarantee
We repair or replace your {n} free of charge if it fails within {warranty}. Wear is not a defect, and neither is a \
dent. The guarantee is void if somebody else has opened the {unit}.
Keep the bill, as we need it to see when you bought it. Send us a short description and a picture before you send \
anything else. Carriage is paid by us if the fault was ours. Things that we did not make, such as cups, rolls or \
cards, are covered by their own makers. Nothing in this text takes away rights that the law gives you.
## Ordering parts
Tell us the number on the plate, and the number of the part. We keep parts for {availability} after the last {unit} \
was made. Parts of other makers may fit, but you use them at your own risk.
You can order by telephone, by mail or in our shop. What is in stock leaves us on the same day. If you are not sure \
which part you need, send us a picture with a ruler beside it. Parts that were not used can be sent back within a \
month. Some parts come as a set, because the others beside them wear at the same rate.
@table parts: Parts that you can order
Part | Number | Price (EUR)
*parts
## Getting rid of it
Do not throw the {unit} into the dustbin. A battery keeps the clock running; it is good for about {battery_years}. \
Take it out first and bring both to your recycling centre. The box and its filling belong to waste paper.
Perhaps somebody else still wants it: we buy back old ones that work, and give parts of them a second life. Delete \
names and passwords before it leaves your house. Your town has a place where electrical things are collected; most \
dealers take them as well. Do not take it apart yourself, as there are springs and sharp edges inside.
"""
