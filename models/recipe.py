"""What the generators of text share: the recipe, and files whose hashes it has."""
import hashlib
import json
import os


def read(folder):
    """The numbers of a model's recipe.json."""
    with open(os.path.join(folder, "recipe.json"), encoding="utf-8") as stream:
        return json.load(stream)


def write(out, contents, hashes):
    """Writes (name, lines) to files in the folder `out`. Prints each hash, and whether it
    is not the one in `hashes`; a file of which that has none may be anything."""
    os.makedirs(out, exist_ok=True)
    for name, lines in contents:
        data = "".join(line + "\n" for line in lines).encode()
        with open(os.path.join(out, name), "wb") as stream:
            stream.write(data)
        digest = hashlib.sha256(data).hexdigest()
        note = "" if digest == hashes.get(name, digest) else "  NOT THE RECIPE'S"
        print(f"{digest}  {len(data):9}  {name}{note}")


def hashes(numbers, whole):
    """The recipe's, without those of a training text that is not the whole."""
    return {name: digest for name, digest in numbers["sha256"].items()
            if whole or not name.startswith("train.")}
