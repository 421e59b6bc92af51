"""The sha256 of a language model's weights, by which figures name it.

    python -m scripts.reproduce_lm.weights FOLDER_OR_HUB_ID

The model is a folder or in the Hugging Face cache.  Several files of weights have one digest: of their names and
digests.
"""

import argparse
import hashlib

from common.errors import MissingInputError, exit_code
from common.files import sha256
from models.pretrained import resolve

COMMAND = "python -m scripts.reproduce_lm.weights"


def main() -> None:
    """Print the digest.

    Raises:
        MissingInputError: If the model is not on this machine or has no weights as safetensors.
    """
    options = argparse.ArgumentParser(description=__doc__, prog=COMMAND)
    options.add_argument("model")
    folder = resolve(options.parse_args().model)
    digests = {file.name: sha256(file) for file in sorted(folder.glob("*.safetensors"))}
    if not digests:
        raise MissingInputError(f"{folder} holds no *.safetensors: give a language model as save_pretrained writes it.")
    print(*digests.values() if len(digests) == 1 else [hashlib.sha256(repr(digests).encode()).hexdigest()])


if __name__ == "__main__":
    raise SystemExit(exit_code(COMMAND, main))
