"""Wording of manuals, technical: template of a manual in the style of a data-sheet department.  `composing` says what its marks mean."""

KIND = "Technical Manual"
TEMPLATE = """
# Introduction
## Scope
This manual covers assembly, set-up, service and repair of the {n}. It addresses technicians and system integrators. Familiarity with low-voltage installations and with the applicable safety rules is assumed. Values without a tolerance are nominal values.
## Designated application
The {n} is designated for {use}. It shall not be used {misuse}. Modifications without written consent of the manufacturer void the declaration of conformity.
## Liability for defects
Defects of material or workmanship are remedied free of charge if they are reported within {warranty} of the date of shipment. Consumables and damage by overvoltage are excluded. The liability ceases when seals are broken.
# Safety precautions
## Qualification
Work on live parts is restricted to certified electricians. Work on mechanical parts is restricted to persons with training by the manufacturer. Tools and measuring instruments shall be insulated and inspected.
## Hazards
The following hazards cannot be eliminated by design: {hazard}. Personal protective equipment consists of gloves, goggles and safety footwear, and shall be worn whenever the housing is open.
! Internal capacitors hold a dangerous charge. The cover shall not be removed until {discharge} have passed since disconnection. Measure before touching.
# System overview
## Principle of operation
{design}
@figure blocks: Block diagram
@own description
## Human-machine interface
The interface consists of a display, a rotary encoder and a signal lamp. {table:lights} lists the signals of the lamp. Menus are left automatically after two minutes without input.
@table lights: Signals of the lamp
Signal | Mode | Status
Green | Continuous | Ready
Green | Pulsed | Sleep
Yellow | Continuous | Warning pending
Red | Pulsed | Tripped
# Logistics
## Handling
Lifting gear for the {n} shall engage at the marked points only. Shock above ten times the acceleration of gravity, shown by the indicator on the crate, shall be reported to the forwarder before the crate is opened.
## Warehousing
Warehouse temperature shall stay above {storage_low} at all times. Units that were warehoused for over {storage_months} shall be reformed and inspected prior to energising. Humidity shall be kept low by desiccant bags, which are replaced once a year.
## Acclimatisation
When a unit is moved from cold to warm surroundings, dew forms on its boards. Energising is permitted {acclimatise} after the crate has been opened. Forced heating is not permitted.
# Assembly
## Site requirements
Adequate air flow shall be ensured. The minimum spacing to adjacent objects is {clearance} in every direction. The mounting surface may deviate from the horizontal by {slope} per metre. The site shall be free of oil mist, salt and vibration.
### Anchoring
1. Drill the anchor holes according to the template.
2. Clean the holes and set the anchors.
3. Torque the anchor bolts to {mount_torque}.
4. Mark the bolts with sealing lacquer.
## Wiring
### Power input
The input of the {n} shall have its own circuit. Conductors of at least {cable} are required. Short-circuit protection is provided externally by a fuse rated {fuse}. An all-pole isolator shall be within sight of the {unit}.
### Terminal block
{figure:terminals} shows the assignment of the terminal block. Input terminals are torqued to {terminal_torque}. Ferrules shall be used on stranded wire; spring terminals shall not be loaded with two conductors.
@figure terminals: Terminal block
### Fieldbus
The fieldbus port is galvanically separated. The factory setting of the node address is {address}. Segment length is limited to {cable_length} without repeater. Biasing resistors are built in and can be switched off.
@own installation
# Set-up
## Power-up
1. Close the isolator. The lamp shows yellow.
2. Allow {warmup} for the boot sequence.
3. Set time zone and engineering units.
4. Store the configuration with a long press on the encoder.
## Built-in test
The built-in test of the {n} exercises actuators and sensors in sequence. Its run time is {selftest}. A report is written to the memory and can be read through the fieldbus. Failed steps are repeated once.
## Access levels
Three access levels are provided. The parameters of level three are unlocked by entering {code}. The level falls back to one when the {unit} is restarted.
# Functions
@own operation
## Sleep mode
Sleep mode is entered after {standby_delay} without activity. Consumption in sleep mode is {standby_power}. Wake-up is triggered by the encoder, by the digital input or by a telegram on the fieldbus.
## Shutdown
1. Issue a stop command and wait for standstill.
2. Do not isolate the supply during forced cooling, which lasts {cooldown}.
3. Open the isolator and lock it.
# Diagnostics
## Fault response
A tripped {n} retries {restarts} times before it locks out. Lock-out ends by acknowledgement only. The ring buffer of the event log stores {log_entries} with time stamps.
## Acknowledgement
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
The plan in {table:intervals} assumes continuous duty in clean air. Interval counters are kept in the memory and shown in the menu; they are set back by the technician. Harsh conditions halve all intervals.
@table intervals: Service plan
Task | Period | Responsible
*intervals
## Decontamination
The housing is wiped with a lint-free cloth. The solution contains {dilution} of detergent per litre of demineralised water. Alcohol and chlorine attack the coating. Connectors shall be kept dry.
@own maintenance
## Torque specification
Threads shall be clean and free of grease. The values of {table:torques} apply to property class 8.8. Joints are retightened after the first day of operation.
@table torques: Torque specification
Joint | Thread | Torque
*torques
## Replacement parts
Replacement parts remain available for {availability} after discontinuation of a model. Orders quote the number of {table:parts} and the serial number. Exchange units are invoiced at a reduced price when the old part is returned.
@table parts: Replacement parts
Item | Part number | Unit price (EUR)
*parts
## Battery and disposal
The real-time clock of the {n} is backed by a lithium cell with a service life of {battery_years}. The cell is exchanged by the service and disposed of as hazardous waste. Housings are sorted into aluminium, copper and plastics.
# Specifications
## General
The figures below characterise the {n} at nominal conditions. They are subject to change without notice.
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
