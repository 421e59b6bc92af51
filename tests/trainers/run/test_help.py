"""The classes that the quick help of train.py lists are those that can be trained, and their data."""

from importlib import import_module
from inspect import isabstract, isclass
from pathlib import Path

import pytest
import pytorch_lightning as pl

from datamodules.examples.step_loader import StepData
from trainers.run.help import CLASSES, classes
from trainers.run.module import RunModule


@pytest.mark.parametrize(("key", "base"), [("model", RunModule), ("data", StepData)])
def test_every_class_that_is_not_abstract_is_listed(key: str, base: type) -> None:
    folder, method = CLASSES[key]
    modules = [import_module(f"{folder}.{file.stem}") for file in Path(folder).glob("*.py") if file.stem != "__init__"]
    found = {
        f"{each.__module__}.{each.__name__}"
        for module in modules
        for each in vars(module).values()
        if isclass(each) and issubclass(each, base) and not isabstract(each) and each.__module__ == module.__name__
        and getattr(each, method) not in (getattr(pl.LightningModule, method, None), getattr(base, method, None))
    }  # fmt: skip
    assert classes(key).keys() == found
