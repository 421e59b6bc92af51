"""Wording of manuals, formal: template of a manual in an engineering company's style.

`composing` says what its marks mean.
"""

KIND = "Installation and Operating Instructions"
TEMPLATE = """
# General information
## About these instructions
These instructions are part of the product. They describe its installation, operation, maintenance and disposal. Keep \
them near the {unit} as long as it is in use, and hand them over to every later owner. The original language of these \
instructions is English; all other languages are translations.
Figures show the standard version and may differ in details from the product supplied. Technical changes that serve \
progress remain reserved. Additional instructions that are enclosed for accessories take precedence over this text \
where they deviate from it. A current edition can be downloaded from the website of the manufacturer free of charge.
The instructions apply to the {n}. Read them completely before any work is begun. The manufacturer accepts no \
liability for damage that results from disregard of these instructions or of the regulations that apply at the place \
of installation.
## Symbols
Hazards are marked by a signal word. Danger stands for a hazard that leads to death or severe injury, warning for one \
that can lead to them, and caution for one that can lead to slight injuries or to damage of property. A note gives \
information that makes the work easier.
Signal words stand in front of every safety instruction, followed by the kind of hazard, its consequences and the \
measures by which it is avoided. Instructions that must be carried out in a fixed order are numbered. References to \
other sections, tables and figures are given by their numbers, so that they can be found quickly in the printed \
edition as well as on a screen.
## Warranty
The warranty of the {n} ends {warranty} after delivery. It does not cover parts that wear in normal use, such as \
seals, filters and bearings. Claims expire if the {unit} was opened by persons who were not authorised to do so.
Claims must be made in writing, with a copy of the invoice and with the serial number from the rating plate. The \
manufacturer decides whether a defective part is repaired or replaced. Costs of dismantling, of scaffolding and of \
journeys to places that are difficult to reach are not covered, and neither is consequential damage such as loss of \
production or of heating.
# Safety
## Intended use
The {n} is intended for {use}. Any other use is improper. In particular, it must not be used {misuse}. Observance of \
these instructions, and of the intervals for inspection and maintenance, is part of the intended use.
Operation outside the limits that are stated in the technical data is improper as well, even if no damage is visible \
afterwards. Conversions, the removal of safety devices and the use of parts that were not released by the manufacturer \
void the declaration of conformity. The operator alone is liable for damage that results from this.
## Personnel
Installation, electrical connection and repair are reserved to qualified electricians or to trained fitters who know \
the relevant standards. Operators must have been instructed in the hazards of the {unit}. Children and persons who \
cannot assess these hazards must be kept away from it.
The operating company has to make sure that the staff has read and understood these instructions, and it should repeat \
the instruction once a year. Persons under the influence of alcohol, drugs or strong medicines are not permitted to \
work here. Apprentices may only work under the supervision of an experienced person who is present all the time.
## Residual hazards
The {unit} was built according to the state of the art. Hazards remain nevertheless: {hazard}. Wear protective gloves \
and eye protection during all work on the open {unit}.
Unauthorised persons must be kept away while covers are open. Tools have to be counted before the covers are closed \
again, and the working area has to be left clean. If smoke, a smell of burning or an unusual noise is noticed, \
disconnect the supply at once and inform the responsible electrician before anything else is done.
! Danger of electric shock. Stored charge remains inside after the supply has been cut off. Wait at least {discharge} \
before the cover is opened. Then verify that no voltage is present.
# Description
## Design and function
{design}
@figure blocks: Principal components
## Operating elements
All functions are set at the control panel on the front. A light above the display shows the state. Its colours are \
explained in {table:lights}.
The display returns to the main screen when no key has been pressed for a while. Values that can be changed are shown \
in a frame; they are selected by turning the knob and confirmed by pressing it. A changed value that was not confirmed \
is discarded. Keys can be locked in the menu, so that visitors do not change anything by mistake.
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
Transport the {n} upright and secured against slipping. Do not lift it at pipes, cables or the control panel. Inspect \
the packaging on receipt and report any damage to the carrier at once; later claims cannot be considered.
Suitable lifting gear, such as straps or a pallet truck with long forks, must be used whenever the permitted load of a \
person is exceeded. Nobody may stand below a suspended load. Put the load down gently, because hard shocks can \
displace bearings and break soldered joints without leaving a trace on the outside of the packaging.
## Storage
Store the {unit} in its original packaging in a dry room free of dust and vibration. The temperature must not fall \
below {storage_low}. If the storage time exceeds {storage_months}, an inspection by the customer service is required \
before commissioning.
Stacking is permitted only if the symbol on the carton allows it. Close all openings with the plugs supplied to keep \
insects and dust out. A label with the date on which storage began should be fixed to the carton in a visible place. \
Rotating parts should be turned by hand every few months, which prevents the bearings from sticking.
## Unpacking
Remove the packaging only at the place of installation. After transport in cold surroundings leave the unpacked {unit} \
standing for {acclimatise} before the supply is connected, otherwise condensation can destroy the electronics. Check \
the scope of delivery against the delivery note.
Cut straps and film carefully and do not use long blades, since these could scratch the surface below. Keep the \
packaging until commissioning has been completed successfully, in case the goods have to be returned. Missing parts \
must be reported within one week. Small parts are often found in a bag that is attached to the inside of the carton.
# Installation
## Place of installation
The place of installation must be dry, well ventilated and protected from frost and from direct sunlight. Keep a \
distance of at least {clearance} from walls and other equipment on all sides. The floor must be level; a slope of up \
to {slope} per metre is permitted. Corrosive vapours and conductive dust must be excluded.
Sufficient lighting and a socket for tools should be available nearby. Access for maintenance must remain possible at \
all times, also after furniture, pipes or other equipment have been installed later on. The transmission of vibration \
to bedrooms and offices should be considered when the place is chosen, as should the way to the nearest drain.
### Fastening
The base must be able to carry the weight permanently. Lightweight walls and hollow blocks need special anchors, which \
are not included in the scope of delivery. If the template has been lost, the distances of the holes can be taken from \
the dimensional data. Remove drilling dust before the anchors are set.
1. Mark the bore holes with the template supplied.
2. Insert the vibration dampers between the feet and the base.
3. Tighten the fastening bolts crosswise with {mount_torque}.
4. Check with a spirit level that the {unit} stands upright.
## Electrical connection
### Supply line
Lay a separate line for the {n}. The conductors of the supply cable must have a cross-section of at least {cable}. \
Protect the line with a back-up fuse of {fuse}, slow-blow, and with a residual current device. The protective \
conductor must be longer than the live conductors.
The voltage on the rating plate must agree with that of the supply. Connection is reserved to electricians who are \
registered with the local utility where this is required. A main switch with a contact gap in all poles has to be \
installed at a visible place. Extension cables and multiple sockets are not permitted, and aluminium conductors must \
not be used.
### Terminals
Connect the conductors as shown in {figure:terminals}. Tighten the screws of the supply terminals with \
{terminal_torque}. Route signal lines separately from power lines, and seal unused cable entries with blanking plugs.
Strip the conductors only as far as necessary, and fit ferrules if they are stranded. No bare wire may be visible \
outside a terminal. Pull at each conductor after it has been tightened to check that it is held. Cable glands must \
enclose the sheath of the cable fully, otherwise moisture can get into the housing along the conductors.
@figure terminals: Terminal assignment
### Data interface
The interface is electrically isolated. The {unit} is delivered with the bus address {address}. The data line to the \
controller must not be longer than {cable_length}. It must be shielded, with the shield earthed at one end, and \
terminated at both ends of the bus.
Only one master is permitted on the bus. Spurs should be kept as short as possible, and a star-shaped layout should be \
avoided altogether. If several devices do not answer, check first whether two of them have been given the same number, \
and whether the two wires of the line were interchanged somewhere. A list of the registers can be requested from the \
manufacturer.
@own installation
# Commissioning
## Initial start
Make sure that all installation work has been completed and that nobody is in the danger zone.
The person who carries out the commissioning should be present for the whole time and should have these instructions \
at hand. Covers that were removed for the installation must be back in place. Record the settings that were chosen in \
the commissioning record, which remains with the operator, and instruct the operator afterwards.
1. Switch on the main switch. The indicator light turns yellow.
2. Wait until initialisation has been completed. It takes {warmup}.
3. Select language, date and time at the control panel.
4. Confirm the settings with the rotary knob.
## Function check
The function check is started in the menu under diagnosis. It takes {selftest}, during which all outputs are switched \
on one after the other. Enter the result in the commissioning record. If the check is aborted, repeat it after the \
cause has been remedied.
No persons may touch moving or hot parts meanwhile. Short clicks and changes of speed are normal. Sections of the \
plant that must not be started should be shut off beforehand. The result of each step is shown in the display by a \
tick or by a cross, and the last three results are kept in the memory.
## Protected settings
Settings that influence safety can be changed in the service menu only. The service menu is opened with the code \
{code}. Changes are to be documented, and the code must not be passed on to operators.
Among these settings are limits for temperatures, assignments of inputs and outputs, and the choice of language for \
messages that are sent. A wrong value may lead to malfunctions that are difficult to find later. For this reason, it \
is recommended to save the original values on a memory card before the first change is made.
# Operation
## Standby
If no demand is present and no key has been pressed for {standby_delay}, standby is activated. The power drawn in \
standby is {standby_power}. Any key, or a demand signal at the data interface, ends standby.
Protective functions remain active meanwhile, and so does the clock. The display is switched off, which also extends \
its life. If a particular plant requires immediate reaction at any time, the function can be deactivated in the menu; \
the energy label then no longer applies. Remote access is possible without restriction in this condition.
@own operation
## Switching off
For short breaks, it is sufficient to end the process; switching off at the main switch is intended for maintenance \
and for longer breaks. Programmes that are controlled by time do not start when the main switch is off. Connected \
equipment may remain live, and must be disconnected separately if work is to be done on it.
1. End the current process at the control panel.
2. Leave the supply switched on: the fan runs on for {cooldown}.
3. Set the main switch to 0 and secure it against being switched on again.
# Maintenance
## Maintenance schedule
Regular maintenance preserves the operational safety of the {n} and is a condition of the warranty. The intervals in \
{table:intervals} apply to single-shift operation under normal ambient conditions; they must be shortened where there \
is much dust or moisture.
A maintenance contract with the customer service or with a specialist company is recommended. All work that was \
carried out, and all parts that were replaced, should be entered in the log book with date and signature. Worn parts \
must be disposed of correctly. Before any work, disconnect the supply and secure it against being switched on again.
@table intervals: Maintenance intervals
Work | Interval | Performed by
*intervals
## Cleaning
Clean the outside with a damp cloth. Add {dilution} of neutral cleaning agent to each litre of water. Solvents, \
abrasive agents and pressure washers damage the surface and the seals. Let the surface dry before the supply is \
switched on again.
Dust on ventilation openings is removed with a vacuum cleaner and a soft brush. Labels and warning signs must remain \
legible, and have to be replaced when they are damaged. Do not let liquid enter the control panel, the plugs or the \
rating plate. Fingerprints on steel can be removed with a little oil of the kind that is used in kitchens.
@own maintenance
## Tightening torques
After each repair the screw connections must be tightened with the torques of {table:torques}. Use a calibrated torque \
wrench. Self-locking nuts must be used only once.
Threads must be clean, dry and undamaged. Replace washers that are bent, and bolts that have been stretched. If no \
value is given for a connection, the general values for its property class apply. Mark tightened connections with a \
line of paint, so that a later inspection shows at once whether one of them has moved.
@table torques: Tightening torques
Screw connection | Thread | Torque
*torques
# Faults
## Behaviour in the event of a fault
A fault stops the {n} and is shown with its code. As long as it is a minor one, the {unit} restarts automatically, at \
most {restarts} times in succession; after that it remains switched off until it is acknowledged. The event log has \
room for {log_entries}; the oldest one is overwritten first.
Serious faults are locked immediately and are not followed by an attempt to continue. Several messages can be present \
at a time; in this case, the most recent one is shown first and the others can be reached by turning the knob. \
Messages are also sent through the data interface, with the time at which they began and ended.
## Acknowledging faults
Faults must never be acknowledged without knowledge of their cause, because repeated restarts can destroy components \
that were still intact. Write down the code and the circumstances under which it appeared. Take a photograph of the \
display if it shows further values; it helps the customer service to find the cause on the telephone.
1. Remedy the cause of the fault as described in {table:errors}.
2. Hold the acknowledge button down for {reset_hold}.
3. Observe the indicator light: it must turn green.
4. Inform the customer service if the fault occurs again.
## Fault codes
@table errors: Fault codes
Code | Fault | Remedy
*errors
# Technical data
All data apply to the {n} at rated voltage and an ambient temperature of 20 degrees, unless stated otherwise. \
Deviations of five per cent are possible because of production tolerances.
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
State model and serial number with every order; both are on the rating plate. Spare parts are supplied for \
{availability} after the end of production. Only original parts ensure that the {unit} remains safe. Prices are net, \
without transport.
Orders can be placed by telephone, by mail or in the portal for registered customers. Parts that are in stock leave \
the warehouse on the same day if the order arrives before noon. Returned parts are credited only if they are in their \
original packaging. Repairs at the factory need a return number, which is issued by the customer service.
## List of spare parts
@table parts: Spare parts
Part | Order number | Price in EUR
*parts
# Decommissioning and disposal
## Decommissioning
Disconnect the {unit} from the supply and drain or remove all operating media. Close open connections with caps. \
Before the {unit} is put out of operation for more than a month, it must be cleaned, dried and protected from corrosion.
A plan should be made for larger plants, so that neighbouring parts can continue to work. Residues of operating media \
must be collected in suitable vessels and labelled. When the product is to be used again later, keep all parts \
together, including small parts, keys and these instructions, and note the reason for the decommissioning.
## Disposal
The packaging consists of recyclable material. Electronic components must not be disposed of with domestic waste. The \
buffer battery of the clock lasts about {battery_years} and must be removed before the {unit} is scrapped. Hand in the \
battery at a collection point.
The local authority provides information about collection points and dates. Dealers take back old appliances under the \
conditions of the law. Metals, plastics and circuit boards should be separated as far as possible. Personal data, such \
as names in the address list, have to be deleted beforehand by the owner.
"""
