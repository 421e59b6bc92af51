"""Wording of manuals, brief: template of a manual that tells its reader what to do.  `composing` says what its marks mean."""

KIND = "User Manual"
TEMPLATE = """
# Before you start
## How to use this manual
Please read this manual before you unpack your {unit}, and keep it for later. Chapters are in the order in which you will need them. If you pass the {unit} on, pass the manual on too.
This manual is for owners of the {n} and for the people who look after it. Pictures show one version; yours may look slightly different. Texts with a frame warn you of something that could hurt you or damage the {unit}.
## What it is for
Use the {n} for {use}, and for nothing else. Do not use it {misuse}. We are not responsible for what happens if you do.
## Who may do what
Anyone who has read this manual may use the {unit} and clean it. Wiring and repairs are jobs for an electrician. Never let children play near it, even when it is switched off, and do not leave the packing material within their reach.
## Staying safe
Most accidents happen because somebody was in a hurry. Watch out for {hazard}. Wear gloves and goggles when you work on the open {unit}, tie back long hair, and keep the floor around it dry.
! Never reach inside right after you have pulled the plug. Parts stay live for a while. Leave the cover shut for another {discharge}.
# Getting to know your {unit}
## How it works
{design}
@figure blocks: What is inside
## Buttons and lights
You control everything from the panel on the front. The lamp next to the screen tells you how things are going: {table:lights} shows what its colours mean.
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
Open the box where you want to set up the {unit}, because it is hard to carry without its packing. Did it arrive on a cold day? Then let it stand without its box for {acclimatise} before you plug it in. Moisture that forms inside would ruin the electronics.
## Moving it
Two people should carry the {n}. Hold it by its base, never by cables, hoses or the panel, and keep it upright. Check the box for damage when it arrives, and tell the carrier the same day.
## Putting it in storage
Choose a dry place without dust. It must not get colder there than {storage_low}. Have our service look at the {unit} if it has been in storage for more than {storage_months}. Take out what can spoil or leak first.
# Setting up
## Finding the right place
The {unit} needs air. Leave {clearance} free all around, and do not put anything on top. Choose firm ground that is flat to within {slope} per metre. Direct sun, frost, steam and dust shorten its life.
### Fixing it in place
1. Put the template on the base and mark the holes.
2. Place the rubber feet under the {unit}.
3. Fix the bolts with a torque of {mount_torque}.
4. Push gently against each side: nothing may rock.
## Wiring
### Mains
Give the {n} a line of its own. Its wires need a cross-section of {cable} or more. Fuse the line with {fuse}, and add a residual current breaker if there is none. Never use an extension lead.
### Connecting the wires
Follow {figure:terminals}. The clamping screws for the mains wires need {terminal_torque}. Keep thin signal wires away from thick mains wires and close the holes that you do not use.
@figure terminals: Where the wires go
### Network
You can read all values over the network. A new {unit} answers under the address {address}. The wires to your controller can be up to {cable_length} long if you use shielded cable. Put a terminating resistor at each end.
@own installation
# Using it for the first time
## Switching on
1. Turn the main switch to I. The lamp turns yellow.
2. Be patient: it takes {warmup} until everything is initialised.
3. Choose your language and set the clock.
4. Press the knob to save what you have chosen.
## Letting it check itself
Choose "Check" in the menu. The {n} then tries out all its parts, which takes {selftest}. You will hear clicks; they are normal. Write the result on the last page of this manual, so that our service can see it later.
## Settings for experts
Some settings are hidden, because wrong values can do harm. Type {code} to get to them. Please note down what you change, and change only one thing at a time.
# Every day
@own operation
## Saving energy
When you do not touch the {unit} for {standby_delay}, it goes to sleep. Asleep it takes only {standby_power}. Press any button to wake it up; a signal from the network wakes it up too.
## Switching off
1. Stop what the {unit} is doing.
2. Do not pull the plug yet: it cools down for {cooldown}.
3. When the fan is silent, turn the main switch to 0.
# Care
## Cleaning
Wipe the outside with a soft cloth. Mix {dilution} of mild cleaner into each litre of warm water. Do not use a pressure washer, steel wool or solvents; they leave marks and make seals brittle. Dry everything before you switch on.
## What to do when
Parts wear, and a little attention keeps the {n} running for years. {table:intervals} shows what has to be done and how often. Do it more often if the place is dusty or damp.
@table intervals: Care plan
Job | How often | Who
*intervals
@own maintenance
## How tight is tight
Loose screws rattle, and tight ones break. When you have taken something apart, use a torque wrench and the values of {table:torques}. Take new lock nuts each time.
@table torques: Torques
Screws | Size | Torque
*torques
# When something goes wrong
## What the {unit} does
It stops, blinks red and shows a code. After small problems it starts again by itself, but no more than {restarts} times in a row; then it waits for you. The last {log_entries} are kept in the event log and survive a power cut.
## Clearing a fault
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
We repair or replace your {n} free of charge if it fails within {warranty}. Wear is not a defect, and neither is a dent. The guarantee is void if somebody else has opened the {unit}.
## Ordering parts
Tell us the number on the plate, and the number of the part. We keep parts for {availability} after the last {unit} was made. Parts of other makers may fit, but you use them at your own risk.
@table parts: Parts that you can order
Part | Number | Price (EUR)
*parts
## Getting rid of it
Do not throw the {unit} into the dustbin. A battery keeps the clock running; it is good for about {battery_years}. Take it out first and bring both to your recycling centre. The box and its filling belong to waste paper.
"""
