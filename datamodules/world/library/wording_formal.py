"""Wording of manuals, formal: template of a manual in an engineering company's style.  `composing` says what its marks mean."""

KIND = "Installation and Operating Instructions"
TEMPLATE = """
# General information
## About these instructions
These instructions are part of the product. They describe its installation, operation, maintenance and disposal. Keep them near the {unit} as long as it is in use, and hand them over to every later owner. The original language of these instructions is English; all other languages are translations.
The instructions apply to the {n}. Read them completely before any work is begun. The manufacturer accepts no liability for damage that results from disregard of these instructions or of the regulations that apply at the place of installation.
## Symbols
Hazards are marked by a signal word. Danger stands for a hazard that leads to death or severe injury, warning for one that can lead to them, and caution for one that can lead to slight injuries or to damage of property. A note gives information that makes the work easier.
## Warranty
The warranty of the {n} ends {warranty} after delivery. It does not cover parts that wear in normal use, such as seals, filters and bearings. Claims expire if the {unit} was opened by persons who were not authorised to do so.
# Safety
## Intended use
The {n} is intended for {use}. Any other use is improper. In particular, it must not be used {misuse}. Observance of these instructions, and of the intervals for inspection and maintenance, is part of the intended use.
## Personnel
Installation, electrical connection and repair are reserved to qualified electricians or to trained fitters who know the relevant standards. Operators must have been instructed in the hazards of the {unit}. Children and persons who cannot assess these hazards must be kept away from it.
## Residual hazards
The {unit} was built according to the state of the art. Hazards remain nevertheless: {hazard}. Wear protective gloves and eye protection during all work on the open {unit}.
! Danger of electric shock. Stored charge remains inside after the supply has been cut off. Wait at least {discharge} before the cover is opened. Then verify that no voltage is present.
# Description
## Design and function
{design}
@figure blocks: Principal components
## Operating elements
All functions are set at the control panel on the front. A light above the display shows the state. Its colours are explained in {table:lights}.
@table lights: States of the indicator light
Colour | State | Meaning
Green | Steady | In operation, no message
Green | Flashing | Standby
Yellow | Steady | Warning, operation continues
Red | Flashing | Fault, operation was stopped
@figure front: Front view with control panel
@own description
# Transport and storage
## Transport
Transport the {n} upright and secured against slipping. Do not lift it at pipes, cables or the control panel. Inspect the packaging on receipt and report any damage to the carrier at once; later claims cannot be considered.
## Storage
Store the {unit} in its original packaging in a dry room free of dust and vibration. The temperature must not fall below {storage_low}. If the storage time exceeds {storage_months}, an inspection by the customer service is required before commissioning.
## Unpacking
Remove the packaging only at the place of installation. After transport in cold surroundings leave the unpacked {unit} standing for {acclimatise} before the supply is connected, otherwise condensation can destroy the electronics. Check the scope of delivery against the delivery note.
# Installation
## Place of installation
The place of installation must be dry, well ventilated and protected from frost and from direct sunlight. Keep a distance of at least {clearance} from walls and other equipment on all sides. The floor must be level; a slope of up to {slope} per metre is permitted. Corrosive vapours and conductive dust must be excluded.
### Fastening
1. Mark the bore holes with the template supplied.
2. Insert the vibration dampers between the feet and the base.
3. Tighten the fastening bolts crosswise with {mount_torque}.
4. Check with a spirit level that the {unit} stands upright.
## Electrical connection
### Supply line
Lay a separate line for the {n}. The conductors of the supply cable must have a cross-section of at least {cable}. Protect the line with a back-up fuse of {fuse}, slow-blow, and with a residual current device. The protective conductor must be longer than the live conductors.
### Terminals
Connect the conductors as shown in {figure:terminals}. Tighten the screws of the supply terminals with {terminal_torque}. Route signal lines separately from power lines, and seal unused cable entries with blanking plugs.
@figure terminals: Terminal assignment
### Data interface
The interface is electrically isolated. The {unit} is delivered with the bus address {address}. The data line to the controller must not be longer than {cable_length}. It must be shielded, with the shield earthed at one end, and terminated at both ends of the bus.
@own installation
# Commissioning
## Initial start
Make sure that all installation work has been completed and that nobody is in the danger zone.
1. Switch on the main switch. The indicator light turns yellow.
2. Wait until initialisation has been completed. It takes {warmup}.
3. Select language, date and time at the control panel.
4. Confirm the settings with the rotary knob.
## Function check
The function check is started in the menu under diagnosis. It takes {selftest}, during which all outputs are switched on one after the other. Enter the result in the commissioning record. If the check is aborted, repeat it after the cause has been remedied.
## Protected settings
Settings that influence safety can be changed in the service menu only. The service menu is opened with the code {code}. Changes are to be documented, and the code must not be passed on to operators.
# Operation
## Standby
If no demand is present and no key has been pressed for {standby_delay}, standby is activated. The power drawn in standby is {standby_power}. Any key, or a demand signal at the data interface, ends standby.
@own operation
## Switching off
1. End the current process at the control panel.
2. Leave the supply switched on: the fan runs on for {cooldown}.
3. Set the main switch to 0 and secure it against being switched on again.
# Maintenance
## Maintenance schedule
Regular maintenance preserves the operational safety of the {n} and is a condition of the warranty. The intervals in {table:intervals} apply to single-shift operation under normal ambient conditions; they must be shortened where there is much dust or moisture.
@table intervals: Maintenance intervals
Work | Interval | Performed by
*intervals
## Cleaning
Clean the outside with a damp cloth. Add {dilution} of neutral cleaning agent to each litre of water. Solvents, abrasive agents and pressure washers damage the surface and the seals. Let the surface dry before the supply is switched on again.
@own maintenance
## Tightening torques
After each repair the screw connections must be tightened with the torques of {table:torques}. Use a calibrated torque wrench. Self-locking nuts must be used only once.
@table torques: Tightening torques
Screw connection | Thread | Torque
*torques
# Faults
## Behaviour in the event of a fault
A fault stops the {n} and is shown with its code. As long as it is a minor one, the {unit} restarts automatically, at most {restarts} times in succession; after that it remains switched off until it is acknowledged. The event log has room for {log_entries}; the oldest one is overwritten first.
## Acknowledging faults
1. Remedy the cause of the fault as described in {table:errors}.
2. Hold the acknowledge button down for {reset_hold}.
3. Observe the indicator light: it must turn green.
4. Inform the customer service if the fault occurs again.
## Fault codes
@table errors: Fault codes
Code | Fault | Remedy
*errors
# Technical data
All data apply to the {n} at rated voltage and an ambient temperature of 20 degrees, unless stated otherwise. Deviations of five per cent are possible because of production tolerances.
## Electrical data
@table electrical: Electrical data
Quantity | Value
Rated voltage | {supply}
Rated power | {power}
Leakage current | {leakage}
*specifications
## Ambient conditions
@table ambient: Ambient conditions
Quantity | Value
Lowest ambient temperature | {ambient_low}
Highest ambient temperature | {ambient_high}
Relative humidity, not condensing | {humidity}
Altitude above sea level | {altitude}
Sound pressure level at 1 m | {noise}
## Dimensions and weights
@table dimensions: Dimensions and weights
Quantity | Value
Width | {width}
Height | {height}
Depth | {depth}
Weight | {weight}
Shipping weight | {packed}
@figure curve: {curve}
# Spare parts
## Ordering
State model and serial number with every order; both are on the rating plate. Spare parts are supplied for {availability} after the end of production. Only original parts ensure that the {unit} remains safe. Prices are net, without transport.
## List of spare parts
@table parts: Spare parts
Part | Order number | Price in EUR
*parts
# Decommissioning and disposal
## Decommissioning
Disconnect the {unit} from the supply and drain or remove all operating media. Close open connections with caps. Before the {unit} is put out of operation for more than a month, it must be cleaned, dried and protected from corrosion.
## Disposal
The packaging consists of recyclable material. Electronic components must not be disposed of with domestic waste. The buffer battery of the clock lasts about {battery_years} and must be removed before the {unit} is scrapped. Hand in the battery at a collection point.
"""
