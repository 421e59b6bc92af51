"""Builds the package: all folders and programs lie in `lightning_rag/source` (lightning_rag/__init__.py says why)."""

from setuptools import find_packages, setup

SOURCE = "lightning_rag.source"
FOLDERS = ("common", "models", "datamodules", "trainers", "harness", "documents")

setup(
    packages=["lightning_rag", *(f"{SOURCE}.{name}" for name in find_packages() if name.split(".")[0] in FOLDERS)],
    package_dir={SOURCE: "."},
    py_modules=[f"{SOURCE}.train", f"{SOURCE}.infer"],
    package_data={
        "lightning_rag": ["py.typed"],
        f"{SOURCE}.datamodules.world": ["*.json"],
        f"{SOURCE}.documents.manuals": ["*.json", "*.txt"],
        f"{SOURCE}.documents.reading": ["*.json"],
        f"{SOURCE}.trainers": ["*_card.md"],
        f"{SOURCE}.trainers.run": ["help.txt"],
        f"{SOURCE}.harness.evaluation": ["page_template/*", "*.json"],
        f"{SOURCE}.harness.llm": ["prompts/*"],
        f"{SOURCE}.harness.serving": ["page.html", "*_card.md"],
    },
)
