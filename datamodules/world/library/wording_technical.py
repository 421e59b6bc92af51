"""Wording of manuals, technical: template of a manual in the style of a data-sheet department.

`composing` says what its marks mean.
"""

KIND = "Technical Manual"
TEMPLATE = """
# Introduction
## Scope
This manual covers assembly, set-up, service and repair of the {n}. It addresses technicians and system integrators. \
Familiarity with low-voltage installations and with the applicable safety rules is assumed. Values without a tolerance \
are nominal values.
Editions are numbered consecutively, and the edition that corresponds to a serial number is listed in the portal. \
Dimensions are in millimetres unless another unit is given. Terms are used as defined in the relevant standards. \
Drawings are schematic and not to scale. Errors and omissions should be reported to the editorial office, whose \
address is on the last page of the catalogue.
## Designated application
The {n} is designated for {use}. It shall not be used {misuse}. Modifications without written consent of the \
manufacturer void the declaration of conformity.
Integration into a machine requires a risk assessment of the complete machine by its manufacturer. Operation is \
permitted only when the machine has been found to comply with the applicable directives. The limits of the \
specifications apply without exception, also for short periods and for tests. Any application in medical life support \
or in aviation is excluded.
## Liability for defects
Defects of material or workmanship are remedied free of charge if they are reported within {warranty} of the date of \
shipment. Consumables and damage by overvoltage are excluded. The liability ceases when seals are broken.
The claim shall contain the serial number, a description of the operating conditions and, if available, an export of \
the memory. Replaced parts become property of the manufacturer. Work at the place of use is charged by expenditure of \
time. No liability is accepted for loss of data, production or profit, as far as this is permitted by law.
# Safety precautions
## Qualification
Work on live parts is restricted to certified electricians. Work on mechanical parts is restricted to persons with \
training by the manufacturer. Tools and measuring instruments shall be insulated and inspected.
Proof of training is renewed every third year and presented on request. Contractors are instructed in writing about \
the dangers of the site and about the rules for permits. Remote operation is restricted to persons who know the \
situation on site or who are in contact with somebody there. Trainees work under constant supervision only.
## Hazards
The following hazards cannot be eliminated by design: {hazard}. Personal protective equipment consists of gloves, \
goggles and safety footwear, and shall be worn whenever the housing is open.
Emergency stop devices shall be tested before each period of use, and shall not be used for normal stopping. \
Protective covers are removed with tools only and shall be refitted completely. Extinguishers for electrical fires \
shall be available. After an electric shock, a physician shall be consulted even when the person feels well.
! Internal capacitors hold a dangerous charge. The cover shall not be removed until {discharge} have passed since \
disconnection. Measure before touching.
# System overview
## Principle of operation
{design}
@figure blocks: Block diagram
@own description
## Human-machine interface
The interface consists of a display, a rotary encoder and a signal lamp. {table:lights} lists the signals of the lamp. \
Menus are left automatically after two minutes without input.
Parameters are grouped by function and numbered. A parameter that differs from its factory setting is marked by an \
asterisk. Inputs are checked for plausibility; values outside the permitted range are rejected with a hint. Screens \
can be exported as images through the service port. Contrast, tone and language are stored for each user.
@table lights: Signals of the lamp
Signal | Mode | Status
Green | Continuous | Ready
Green | Pulsed | Sleep
Yellow | Continuous | Warning pending
Red | Pulsed | Tripped
# Logistics
## Handling
Lifting gear for the {n} shall engage at the marked points only. Shock above ten times the acceleration of gravity, \
shown by the indicator on the crate, shall be reported to the forwarder before the crate is opened.
The centre of gravity is marked on the crate. Slings shall form an angle of less than sixty degrees. The load is moved \
slowly and without jerks and is not left suspended. Supports of wood are placed beneath the frame before the slings \
are released. Handles and covers are not designed to take loads.
## Warehousing
Warehouse temperature shall stay above {storage_low} at all times. Units that were warehoused for over \
{storage_months} shall be reformed and inspected prior to energising. Humidity shall be kept low by desiccant bags, \
which are replaced once a year.
Crates are placed on pallets, not directly on the floor, and are kept away from chemicals. Direct sunlight is avoided \
because it makes foils brittle. First-in first-out order is kept by means of the date code. Transport locks remain \
fitted. An inventory of what is stored should include accessories, since these are often separated from their units.
## Acclimatisation
When a unit is moved from cold to warm surroundings, dew forms on its boards. Energising is permitted {acclimatise} \
after the crate has been opened. Forced heating is not permitted.
Doors and covers remain closed meanwhile, so that moist air does not enter. Drops of water on the outside are a \
reliable sign that more time is needed. Drying agents may be placed inside but must be removed before power is \
applied. In tropical climates, an air-conditioned room is preferable, and the foil should be removed last.
# Assembly
## Site requirements
Adequate air flow shall be ensured. The minimum spacing to adjacent objects is {clearance} in every direction. The \
mounting surface may deviate from the horizontal by {slope} per metre. The site shall be free of oil mist, salt and \
vibration.
Cable ducts, foundations and openings are prepared before delivery. Escape routes shall not be narrowed. Illumination \
of the working area is designed for reading drawings. Neighbouring sources of heat and of strong magnetic fields are \
taken into account. A drawing of the site with the positions of all connections should be added to the documentation.
### Anchoring
Concrete shall have cured completely. The minimum distance of a hole from an edge is given by the manufacturer of the \
anchor. Shims of stainless steel compensate for unevenness; wood and rubber are not suitable. After anchoring, the \
transport locks are removed and kept for later use.
1. Drill the anchor holes according to the template.
2. Clean the holes and set the anchors.
3. Torque the anchor bolts to {mount_torque}.
4. Mark the bolts with sealing lacquer.
## Wiring
### Power input
The input of the {n} shall have its own circuit. Conductors of at least {cable} are required. Short-circuit protection \
is provided externally by a fuse rated {fuse}. An all-pole isolator shall be within sight of the {unit}.
The prospective short-circuit current at the point of connection shall not exceed the rated value of the switchgear. \
Phases are connected in clockwise rotation where this applies. Surge arresters are recommended in buildings with \
overhead lines. The neutral conductor shall not be switched alone. Residual current devices shall be of a type that is \
sensitive to smooth direct currents.
### Terminal block
{figure:terminals} shows the assignment of the terminal block. Input terminals are torqued to {terminal_torque}. \
Ferrules shall be used on stranded wire; spring terminals shall not be loaded with two conductors.
Conductors of different circuits are separated by partitions. The permissible range of cross-sections is moulded into \
the housing. Screwdrivers with insulated shafts and the proper blade are used, since slipping tools damage adjacent \
components. Test sockets next to the terminals permit measurements without loosening a conductor. A drawing is \
attached to the inside of the cover.
@figure terminals: Terminal block
### Fieldbus
The fieldbus port is galvanically separated. The factory setting of the node address is {address}. Segment length is \
limited to {cable_length} without repeater. Biasing resistors are built in and can be switched off.
Device descriptions for common configuration tools are provided in the portal. Cycle times below ten milliseconds are \
supported for process data, while parameters are transferred acyclically. When communication is lost, outputs assume \
the state that was configured for this case. Addresses are assigned consecutively and documented in the network plan. \
Shields are earthed with a large surface.
@own installation
# Set-up
## Power-up
A visual inspection precedes every first power-up. Insulation resistance and continuity of the protective conductor \
are measured and recorded. Loads are disconnected as far as possible. Should the residual current device respond, the \
cause is determined before it is closed again. Firmware and device description shall match, which is shown in the menu \
under identification.
1. Close the isolator. The lamp shows yellow.
2. Allow {warmup} for the boot sequence.
3. Set time zone and engineering units.
4. Store the configuration with a long press on the encoder.
## Built-in test
The built-in test of the {n} exercises actuators and sensors in sequence. Its run time is {selftest}. A report is \
written to the memory and can be read through the fieldbus. Failed steps are repeated once.
The test may be requested at any time while no job is active. Its steps are independent, so that a failed one does not \
prevent those that follow. Limits can be narrowed by authorised users in order to detect drift at an early stage. The \
results of the factory acceptance are stored as a reference and cannot be overwritten.
## Access levels
Three access levels are provided. The parameters of level three are unlocked by entering {code}. The level falls back \
to one when the {unit} is restarted.
Level one permits reading, level two permits the adjustment of process values. Sessions are closed after a period \
without activity. Each change is logged with time, user and former value. Lost credentials can be restored by the \
manufacturer on presentation of proof of ownership, which takes several days. Shared accounts should not be created.
# Functions
@own operation
## Sleep mode
Sleep mode is entered after {standby_delay} without activity. Consumption in sleep mode is {standby_power}. Wake-up is \
triggered by the encoder, by the digital input or by a telegram on the fieldbus.
Outputs are held in their safe states meanwhile, and heating elements are disconnected. Communication remains \
available but answers more slowly. Where immediate readiness is essential, the mode can be disabled by a parameter at \
the expense of a higher loss. The number of transitions is counted, because very frequent ones indicate an \
unfavourable configuration of the controller.
## Shutdown
An uncontrolled shutdown by removal of the supply is permissible in an emergency only, as it stresses contacts and may \
leave data unsaved. Stored energy in springs, hydraulics or raised loads is to be released. The state is indicated by \
a symbol in the display. Before transport, all external connections are removed and closed.
1. Issue a stop command and wait for standstill.
2. Do not isolate the supply during forced cooling, which lasts {cooldown}.
3. Open the isolator and lock it.
# Diagnostics
## Fault response
A tripped {n} retries {restarts} times before it locks out. Lock-out ends by acknowledgement only. The ring buffer of \
the event log stores {log_entries} with time stamps.
Severe events open the output contactor at once, whereas minor ones lead to an orderly stop. The reaction to several \
events can be configured to warning only, provided that the risk assessment permits it. A snapshot of the most \
important signals is taken at the moment of the event and can be displayed as a chart in the service tool.
## Acknowledgement
Remote acknowledgement is disabled in the factory setting. It is advisable to export the memory before the cause is \
removed, as some entries are volatile. Events that were triggered by a sequence of others are suppressed in the \
summary, but are included in the export. Repeated events within a short time should be analysed by the service.
1. Identify the code in {table:errors} and eliminate its cause.
2. Keep the encoder pressed for {reset_hold}.
3. Verify that the lamp shows continuous green.
4. Replace the control board if the code persists.
## List of codes
@table errors: Diagnostic codes
Code | Event | Action
*errors
# Servicing
## Service plan
The plan in {table:intervals} assumes continuous duty in clean air. Interval counters are kept in the memory and shown \
in the menu; they are set back by the technician. Harsh conditions halve all intervals.
Planned downtime is used best when tasks with a common multiple are combined. Consumption of wear parts depends \
strongly on load cycles and is therefore recorded. Calibrated instruments with valid certificates are used for all \
measurements. After completion, a test run is carried out and the record is signed by both parties.
@table intervals: Service plan
Task | Period | Responsible
*intervals
## Decontamination
The housing is wiped with a lint-free cloth. The solution contains {dilution} of detergent per litre of demineralised \
water. Alcohol and chlorine attack the coating. Connectors shall be kept dry.
A certificate of decontamination accompanies every unit that is sent in; without it, the consignment is refused. \
Personal protective equipment is worn and disposed of afterwards. Nozzles and brushes are not used near sensors. \
Solutions are prepared freshly, and residues are wiped off with clear water in order to prevent streaks.
@own maintenance
## Torque specification
Threads shall be clean and free of grease. The values of {table:torques} apply to property class 8.8. Joints are \
retightened after the first day of operation.
Click-type wrenches are set back to zero after use. Lubricated threads would require lower values and are therefore \
excluded. Spring washers are replaced each time, while conical ones may be reused if they are not flattened. \
Inspectors mark verified joints in a second colour. Deviating values on drawings of the customer take precedence.
@table torques: Torque specification
Joint | Thread | Torque
*torques
## Replacement parts
Replacement parts remain available for {availability} after discontinuation of a model. Orders quote the number of \
{table:parts} and the serial number. Exchange units are invoiced at a reduced price when the old part is returned.
Compatibility of later revisions is indicated by the last letter of the number. Assemblies with firmware are delivered \
in the current version and may have to be matched to the rest of the system. Small quantities are sent by parcel \
service, larger ones by forwarder. Export of certain items requires a licence, which prolongs the delivery.
@table parts: Replacement parts
Item | Part number | Unit price (EUR)
*parts
## Battery and disposal
The real-time clock of the {n} is backed by a lithium cell with a service life of {battery_years}. The cell is \
exchanged by the service and disposed of as hazardous waste. Housings are sorted into aluminium, copper and plastics.
Transport regulations for lithium cells apply also to single ones. Short circuits are avoided by covering the contacts \
with tape. Substances that are subject to reporting are listed in the portal by item. Recycling companies are given \
the drawing of the assembly on request, in which materials and joints are identified.
# Specifications
## General
The figures below characterise the {n} at nominal conditions. They are subject to change without notice.
Measurements were made with calibrated instruments in the laboratory of the manufacturer. Typical values are averages \
of a production lot; guaranteed ones are marked as such in the contract. Curves apply to clean filters and new \
components. Derating for altitude and temperature is cumulative. Data of special versions are found in supplementary \
sheets.
@figure curve: {curve}
## Electrical
@table electrical: Electrical specifications
Parameter | Rating
Nominal voltage | {supply}
Nominal power | {power}
Earth leakage | {leakage}
*specifications
## Environmental
@table ambient: Environmental specifications
Parameter | Rating
Operating temperature, minimum | {ambient_low}
Operating temperature, maximum | {ambient_high}
Relative humidity, maximum | {humidity}
Installation altitude, maximum | {altitude}
Acoustic emission | {noise}
## Mechanical
@figure front: Housing
@table dimensions: Mechanical specifications
Parameter | Rating
Overall width | {width}
Overall height | {height}
Overall depth | {depth}
Net weight | {weight}
Gross weight | {packed}
"""
