"""A synthetic world small enough to grow in every test file that looks at one."""

from dataclasses import replace

from datamodules.world.world import WorldConfig

SMALL = WorldConfig(
    seed=3, questions=400, singles=200, open_singles=100, web_questions=30, manuals=3, rephrased=0, msrag=0
)
REPHRASED = replace(SMALL, rephrased=240)
