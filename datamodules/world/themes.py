"""Themes: topic words of a cluster of entities.  Linked entities mostly share a theme, so that their passages are
similar in retrieval, but the theme does not reveal how they are related."""

THEMES = tuple(
    tuple(line.split(", "))
    for line in """
sailing ships, harbour pilots, storms at sea, lighthouses, sea charts
coal mining, deep shafts, pit ponies, miners' lamps, iron ore
beekeeping, honey, hives, wild flowers, wax candles
steam trains, railway signals, engine drivers, tunnels, timetables
astronomy, telescopes, comets, distant planets, star charts
chess, grandmasters, openings, endgames, tournaments
opera, sopranos, choirs, velvet curtains, overtures
wine growing, vineyards, barrels, grape harvests, cellars
mountaineering, glaciers, rope teams, avalanches, summit huts
horse racing, jockeys, stables, saddles, betting
bread baking, flour mills, ovens, sourdough, pastry
glass blowing, stained windows, mirrors, furnaces, crystal
ice hockey, skating, frozen lakes, goalkeepers, pucks
circus life, acrobats, clowns, tents, trained lions
medicine, hospitals, vaccines, surgeons, nurses
law courts, judges, trials, witnesses, prisons
fishing, trawlers, herring, nets, fish markets
aviation, gliders, airfields, propellers, test pilots
dinosaurs, fossils, excavations, skeletons, museums
spying, secret codes, double agents, hidden cameras, embassies
tea trade, plantations, porcelain, caravans, spices
cycling, steep climbs, sprinters, bicycle races, velodromes
volcanoes, lava, hot springs, ash clouds, earthquakes
printing, woodcuts, typefaces, old presses, bookbinding
forestry, timber, sawmills, oak woods, lumberjacks
clock making, pendulums, gears, sundials, pocket watches
football, referees, penalties, stadiums, league titles
tailoring, silk, looms, embroidery, fashion shows
wolves, bears, hunters, snow tracks, wild forests
photography, darkrooms, portraits, lenses, negatives
robots, artificial minds, circuits, automation, microchips
medieval knights, castles, sieges, tournaments of arms, swords
ballet, dancers, choreography, rehearsals, swans
desert travel, camels, oases, nomads, sand dunes
cheese making, dairies, goats, alpine pastures, butter
banking, loans, gold reserves, stock markets, bankruptcies
gardening, roses, greenhouses, tulip bulbs, botanical parks
polar exploration, sledges, huskies, icebergs, penguins
ghosts, haunted houses, seances, graveyards, vampires
jazz, saxophones, trumpets, night clubs, improvisation
pottery, clay, kilns, glazes, vases
politics, elections, parliaments, treaties, diplomats
diving, coral reefs, submarines, pearls, shipwrecks
mathematics, theorems, prime numbers, geometry, equations
motor racing, mechanics, pit stops, tyres, rally cars
birds, ornithology, nesting sites, falcons, migration
monasteries, monks, pilgrims, chapels, church bells
chemistry, dyes, laboratories, explosives, acids
cooking, soups, recipes, restaurants, chefs
boxing, heavyweight fights, gyms, gloves, knockouts
radio, broadcasts, antennas, amateur stations, announcers
revolutions, barricades, exiles, pamphlets, uprisings
perfume, lavender, fragrances, essential oils, flacons
carpentry, cabinets, veneers, carved doors, joinery
schools, teachers, blackboards, examinations, boarding houses
salt trade, salt mines, brine, barges, tolls
puppetry, marionettes, masks, shadow plays, toy theatres
archaeology, tombs, pharaohs, clay tablets, temples
swimming, pools, medals, relay races, divers
weather, hurricanes, droughts, floods, barometers
""".strip().splitlines()
)
