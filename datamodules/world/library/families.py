"""The library's product families."""

from datamodules.world.library.family_centrifuges import CENTRIFUGES
from datamodules.world.library.family_coffee import COFFEE
from datamodules.world.library.family_drives import DRIVES
from datamodules.world.library.family_printers import PRINTERS
from datamodules.world.library.family_pumps import PUMPS
from datamodules.world.library.family_ventilation import VENTILATION

FAMILIES = (PUMPS, VENTILATION, COFFEE, PRINTERS, DRIVES, CENTRIFUGES)
