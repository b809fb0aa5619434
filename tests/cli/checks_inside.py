"""Checks of the views into a model: trace, heads, lens, dla, look, explain; see checks.py."""
import csv
import glob
import json
import math
import os
import struct
import subprocess
import tempfile
import xml.etree.ElementTree
import zipfile

from checks_tools import HOSTILE, MODEL, TINY, explain_is_consistent, far, flat, read_json, run


def check_explain_json_of_builtin(program):
    """attend explain --json of the model set by hand is consistent"""
    row = read_json(program, "explain", "-m", "hand")
    if row["next"][0]["token"] != "Lovelace" or row["next"][0]["probability"] <= 0.9:
        return f"next is {row['next'][0]}"
    if row["keys"][row["key"]]["token"] != "Lovelace":
        return f"the strongest key is {row['keys'][row['key']]}"
    return explain_is_consistent(row)


def check_explain_chooses_who_speaks(program):
    """explain takes the head of the last layer that dla finds to speak most (published model)"""
    for prompt, position in (("Once upon a", 3), ("Lily was a girl. Lily was", 9),
                             ("There was a dog. The", 8), ("There was a dog. The", 4)):
        heads = read_json(program, "dla", "-m", MODEL, "--position", str(position), prompt)["parts"]
        heads = [part for part in heads if part["name"].startswith("L4.H")]
        loudest = max(heads, key=lambda part: part["share"])["head"]
        row = read_json(program, "explain", "-m", MODEL, "--query", str(position), prompt)
        if [row["layer"], row["head"]] != [4, loudest] or len(heads) != 8:
            return f"{prompt}, {position}: head {row['head']}, not {loudest} of {heads}"
    return None


def check_look_json_is_explain_json(program):
    """look and explain agree on weights and scores"""
    row = read_json(program, "explain", "-m", "hand", "-L", "1")
    for stage, key in (("weights", "weight"), ("raw", "raw"), ("scaled", "scaled"),
                       ("mask", "score")):
        heads = read_json(program, "look", "-m", "hand", "--stage", stage)["heads"]
        values = [head for head in heads if head["layer"] == 1][0]["values"][row["query"]]
        if values != [k[key] for k in row["keys"]]:
            return f"{stage}: {values}"
    return None


def check_trace_files_are_what_json_says(program):
    """trace writes the same numbers as npz (read by another zip reader), csv and JSON"""
    select = ["trace", "--quiet", "-s", "blocks.1.attn.hook_pattern,blocks.0.attn.hook_z"]
    tensors = {t["name"]: t["values"] for t in read_json(program, *select)["tensors"]}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "t.npz")
        subprocess.run([program, *select, "-o", path], check=True, stdout=subprocess.DEVNULL)
        archive = zipfile.ZipFile(path)
        named = sorted(n + ".npy" for n in [*tensors, "tokens"])
        if archive.testzip() or sorted(archive.namelist()) != named:
            return f"npz: {archive.namelist()}"
        for name, values in tensors.items():
            data = archive.read(name + ".npy")
            begin = 10 + struct.unpack("<H", data[8:10])[0]
            if list(struct.unpack(f"<{(len(data) - begin) // 4}f", data[begin:])) != flat(values):
                return f"npz: {name} differs"
    lines = subprocess.run([program, *select, "-o", "-"], check=True, capture_output=True,
                           text=True)
    rows = list(csv.DictReader(lines.stdout.splitlines()))
    for name, values in tensors.items():
        written = [struct.unpack("<f", struct.pack("<f", float(r["value"])))[0] for r in rows
                   if r["name"] == name]
        if written != flat(values):
            return f"csv: {name} differs"
    return None


def check_heads_measure_what_trace_keeps(program):
    """heads gives previous, first and self of the weights that trace prints (published model)"""
    prompt = ["-m", MODEL, "--quiet", "Lily was a girl. Lily was"]
    traced = read_json(program, "trace", "-s", "*.hook_pattern", *prompt)["tensors"]
    for row in read_json(program, "heads", *prompt)["heads"]:
        a = traced[row["layer"]]["values"][row["head"]]
        rows = range(1, len(a))
        for name, want in (("previous", sum(a[i][i - 1] for i in rows) / len(rows)),
                           ("first", sum(a[i][0] for i in rows) / len(rows)),
                           ("self", sum(a[i][i] for i in rows) / len(rows)),
                           ("entropy", sum(-x * math.log(x) for i in rows for x in a[i] if x)
                            / len(rows))):
            if far(row[name], want, 1e-6):
                return f"{name}: {row[name]}, not {want}"
    return None


def check_shares_sum_to_logits(program):
    """dla's parts sum to the difference of two logits (published model)"""
    said = read_json(program, "dla", "-m", MODEL, "--target", " g", "--vs", " b", "Once upon a")
    total = sum(part["share"] for part in said["parts"]) + said["constant"]
    logits = read_json(program, "trace", "-m", MODEL, "-s", "logits", "--quiet", "Once upon a")
    last = logits["tensors"][0]["values"][-1]
    wanted = last[said["target"]] - last[said["vs"]]
    return f"{total}, not {wanted}" if far(total, wanted, 1e-4) else None


def check_identities_of_every_decoder(program):
    """parts sum to logits, last lens row is the answer, a copied run is itself (published models)"""
    with tempfile.TemporaryDirectory() as scratch:
        for config in sorted(glob.glob(os.path.join(TINY, "*", "config.json"))):
            model = ["-m", os.path.dirname(config), "--ids", "3,4,5,6,7", "--quiet"]
            info = read_json(program, "info", *model[:2])
            if info["encoder_layers"] or not info["cache_bytes"]:
                continue  # an encoder
            shares = read_json(program, "dla", *model)
            if "gemma2" not in config and far(shares["sum"], shares["logits"], 1e-4):
                return f"{config}: parts sum to {shares['sum']}, not {shares['logits']}"
            answer = read_json(program, "run", *model, "-t", "0", "-n", "1", "--logprobs", "1")
            last = read_json(program, "lens", *model)["rows"][-1]
            if [last["top"][0]["id"]] != answer["tokens"] or last["kl"] != 0:
                return f"{config}: the last lens row is not the answer"
            trace = os.path.join(scratch, "run.safetensors")
            sites = "*.hook_resid_pre,*.attn.hook_z,*.hook_attn_scores,*.hook_pattern"
            read_json(program, "trace", *model, "-s", sites, "-o", trace)
            logits = [read_json(program, "trace", *model, "-s", "logits")["tensors"]]
            for site in sites.split(","):
                logits.append(read_json(program, "trace", *model, "-s", "logits", "--edit",
                                        f"copy {site}", "--source", trace)["tensors"])
            if any(other != logits[0] for other in logits):
                return f"{config}: a run copied into itself changes it"
    return None


def row_of(program, model, prompt, site, row):
    """Row `row` of a site, as trace prints it."""
    tensors = read_json(program, "trace", *model, "--quiet", "-s", site, prompt)["tensors"]
    return [tensor["values"][row] for tensor in tensors]


def check_diff_is_the_geometry_of_traces(program):
    """diff gives cosines, distances and shares of the vectors that trace prints (published model)"""
    model = ["-m", MODEL]
    prompts = ["Once upon a time", "There was a big dog, once upon a time"]
    said = read_json(program, "diff", *model, "--token", " upon", "--top", "1000", *prompts)
    at = [said["a"]["position"], said["b"]["position"]]
    ends = [row_of(program, model, p, "*.hook_resid_post", i) for p, i in zip(prompts, at)]
    for row, a, b in zip(said["rows"][1:], *ends):
        dot = sum(x * y for x, y in zip(a, b))
        apart = math.dist(a, b)
        if far([row["cosine"], row["distance"]], [dot / math.hypot(*a) / math.hypot(*b), apart],
               1e-6 * math.hypot(*a)):
            return f"{row}, not {dot} and {apart}"
    if said["rows"][0]["distance"] != 0:
        return f"the embedding is apart: {said['rows'][0]}"
    way = [x - y for x, y in zip(ends[0][-1], ends[1][-1])]
    heads = [row_of(program, model, p, "*.hook_result", i) for p, i in zip(prompts, at)]
    for part in (p for p in said["parts"] if p["head"] >= 0):
        own = [x - y for x, y in zip(*(h[part["layer"]][part["head"]] for h in heads))]
        share = sum(x * y for x, y in zip(own, way)) / sum(x * x for x in way)
        if far([part["share"], part["distance"]], [share, math.hypot(*own)], 1e-6):
            return f"{part}, not {share} and {math.hypot(*own)}"
    return None if len(said["parts"]) == 46 else f"{len(said['parts'])} parts"


def check_shares_of_a_distance_sum_to_one(program):
    """what sets two words apart sums to all of it in every decoder (published models)"""
    seen = 0
    for config in sorted(glob.glob(os.path.join(TINY, "*", "config.json"))):
        model = ["-m", os.path.dirname(config)]
        info = read_json(program, "info", *model)
        if info["encoder_layers"] or not info["cache_bytes"]:
            continue  # an encoder
        total = read_json(program, "diff", *model, "--ids-a", "3,4,5,9", "--ids-b",
                          "6,7,9")["parts_sum"]
        if far(total, 1, 1e-4):
            return f"{config}: {total}"
        seen += 1
    return None if seen >= 5 else f"only {seen} models"


def check_attribution_is_near_patching(program):
    """attribution agrees with patching where a head moves little (published model)"""
    prompts = ["There was a dog. The", "There was a man. The"]
    for at, grid in (("z", "layer-head"), ("z", "head-position"), ("pattern", "layer-head")):
        view = ["-m", MODEL, "--at", at, "--grid", grid, "--target", " d", "--vs", " m", *prompts]
        real = flat(read_json(program, "patch", *view)["scores"])
        said = read_json(program, "patch", "--attribution", *view)
        guessed = flat(said["scores"])
        if said["method"] != "attribution" or len(real) != len(guessed):
            return f"{said['method']}, {len(real)} and {len(guessed)} cells"
        pairs = list(zip(real, guessed))
        small = max((abs(x - y) for x, y in pairs if abs(x) < 0.02), default=1)
        dot = sum(x * y for x, y in pairs)
        cosine = dot / math.hypot(*real) / math.hypot(*guessed)
        if cosine < 0.9 or small > 0.03:
            return f"{at} {grid}: cosine {cosine}, small cells off by up to {small}"
    return None


def check_patch_is_a_run_with_an_edit(program):
    """a cell of patch is what an edited run by hand says (published model)"""
    prompts = ["There was a dog. The", "There was a man. The"]
    said = read_json(program, "patch", "-m", MODEL, "--at", "v", "--grid", "head-position",
                     "--target", " d", "--vs", " m", *prompts)
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "a.safetensors")
        read_json(program, "trace", "-m", MODEL, "-s", "blocks.*.attn.hook_v", "-o", source,
                  prompts[0])
        for layer, head, position in ((0, 1, 5), (2, 3, 6), (4, 0, 8)):
            logits = read_json(program, "trace", "-m", MODEL, "-s", "logits", "--quiet", "--source",
                               source, "--edit", f"copy blocks.{layer}.attn.hook_v head={head} "
                               f"pos={position}", prompts[1])["tensors"][0]["values"][-1]
            moved = logits[said["target"]] - logits[said["vs"]] - said["difference_b"]
            wanted = moved / (said["difference_a"] - said["difference_b"])
            row = said["scores"][layer * said["rows_of_a_layer"] + head]
            if far(row[position], wanted, 1e-5):
                return f"L{layer}.H{head} position {position}: {row[position]}, not {wanted}"
    return None


def rolled(layers, join, residual, discard):
    """Rollout of weights [L][H][T][T], as docs/math/patterns.md has it."""
    last = None
    for heads in layers:
        n = len(heads[0])
        m = [[join([h[i][j] for h in heads]) for j in range(n)] for i in range(n)]
        live = sorted(x for row in m for x in row if x > 0)
        least = live[int(discard * len(live))]
        m = [[(1 - residual) * (x if x >= least else 0) + residual * (i == j)
              for j, x in enumerate(row)] for i, row in enumerate(m)]
        m = [[x / sum(row) for x in row] for row in m]
        last = m if last is None else [[sum(row[k] * last[k][j] for k in range(n))
                                        for j in range(n)] for row in m]
    return last


def check_rollout_is_the_product_of_traces(program):
    """look --rollout multiplies the weights that trace prints (published model)"""
    prompt = ["-m", MODEL, "Lily was a girl. Lily was"]
    traced = read_json(program, "trace", "--quiet", "-s", "*.hook_pattern", *prompt)["tensors"]
    layers = [tensor["values"] for tensor in traced]
    ways = {"mean": lambda x: sum(x) / len(x), "max": max, "min": min}
    for name, join in ways.items():
        for residual, discard in ((0.5, 0), (0.2, 0.6)):
            said = read_json(program, "look", "--rollout", name, "--residual", str(residual),
                             "--discard", str(discard), *prompt)
            wanted = rolled(layers, join, residual, discard)
            problem = far(said["heads"][0]["values"], wanted, 1e-6)
            if problem or said["rollout"]["heads"] != name:
                return f"{name} {residual} {discard}: {problem}"
    return None


def check_packed_npz_is_read(program):
    """a deflated .npz gives edits the numbers of the safetensors of one run (published model)"""
    view, site = ["-m", MODEL, "--quiet"], "blocks.2.attn.hook_z"
    with tempfile.TemporaryDirectory() as folder:
        plain, stored, packed = (os.path.join(folder, name) for name in ("a.safetensors", "a.npz",
                                                                         "b.npz"))
        for path in (plain, stored):
            read_json(program, "trace", *view, "-s", site, "-o", path, "There was a dog. The")
        with zipfile.ZipFile(stored) as old, zipfile.ZipFile(packed, "w",
                                                             zipfile.ZIP_DEFLATED) as new:
            for name in old.namelist():
                new.writestr(name, old.read(name))
        logits = [read_json(program, "trace", *view, "-s", "logits", "--edit", f"copy {site}",
                            "--source", path, "There was a man. The")["tensors"]
                  for path in (plain, stored, packed)]
        if os.path.getsize(packed) >= os.path.getsize(stored):
            return "nothing was packed"
    return None if logits[0] == logits[1] == logits[2] else "other numbers"


def check_dump_is_the_run_it_was_made_of(program):
    """heads and look of a dump give the numbers of the run (published model)"""
    prompt = ["-m", MODEL, "--quiet", "Lily was a girl. Lily was"]
    want = read_json(program, "heads", *prompt)
    with tempfile.TemporaryDirectory() as folder:
        texts = os.path.join(folder, "tokens.txt")
        with open(texts, "w", encoding="utf-8") as file:
            file.write("".join(f"<{token}>\n" for token in want["query_tokens"]))
        for ending in (".npz", ".safetensors"):
            path = os.path.join(folder, "run" + ending)
            read_json(program, "trace", "-s", "*.hook_pattern", "-o", path, *prompt)
            said = read_json(program, "heads", "--dump", path, "--tokens", texts)
            for a, b in zip(said["heads"], want["heads"], strict=True):
                if any(a[key] != b[key] for key in a if key != "norm"):
                    return f"{ending}: {a}, not {b}"
            maps = [read_json(program, "look", *way)["heads"]
                    for way in (["--dump", path], prompt)]
            if maps[0] != maps[1]:
                return f"{ending}: look shows other numbers"
            picture = os.path.join(folder, "x.svg")
            done = run(program, "look", "--dump", path, "--tokens", texts, "-H", "1", "-o", picture)
            drawn = numbers_of_svg(picture)
            if done.returncode or drawn.count(None) != len(drawn) - sum(range(
                    len(want["query_tokens"]) + 1)):
                return f"{ending}: {done.stderr} {len(drawn)} cells"
    return None


def check_damaged_dumps_are_refused(program):
    """a dump that is cut off or damaged is refused in one line"""
    with tempfile.TemporaryDirectory() as folder:
        for ending in (".npz", ".safetensors"):
            whole, part = (os.path.join(folder, name + ending) for name in ("a", "b"))
            read_json(program, "trace", "--quiet", "-o", whole, "Ada Lovelace met Alan Turing")
            with open(whole, "rb") as file:
                data = file.read()
            for n in range(0, len(data), len(data) // 30):
                with open(part, "wb") as file:
                    file.write(data[:n])
                done = run(program, "look", "--dump", part)
                if done.returncode != 1 or done.stdout or done.stderr.count(b"\n") != 1:
                    return f"{ending} cut at {n}: {done}"
                with open(part, "wb") as file:
                    file.write(data[:n] + bytes([data[n] ^ 0x55]) + data[n + 1:])
                done = run(program, "heads", "--dump", part)
                if done.returncode not in (0, 1) or done.returncode and done.stdout:
                    return f"{ending} damaged at {n}: {done}"
    return None


def numbers_of_svg(path):
    """What the titles of an SVG's cells say, hidden ones as None; the file must be XML."""
    titles = [e.text for e in xml.etree.ElementTree.parse(path).iter() if e.tag.endswith("title")]
    words = [title.rsplit(": ", 1)[1] for title in titles if title.startswith("query ")]
    return [None if word == "hidden" else float(word) for word in words]


def data_of_page(path):
    """The JSON inside an HTML page, which must be the only element that a prompt reaches."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if text.count("<script") != 2 or text.count("</script>") != 2 or "http-equiv" not in text:
        raise AssertionError("a prompt became markup")
    return json.loads(text.split('id="trace">', 1)[1].split("</script>", 1)[0])


def check_pictures_show_what_json_says(program):
    """look writes the same numbers into SVG and HTML, hostile prompts too (published model)"""
    with tempfile.TemporaryDirectory() as folder:
        for prompt in (*HOSTILE, '</script><b>"&amp;<!--'):
            view = ["look", "-m", MODEL, "-L", "2", "-H", "1"]
            # Millions of pixels take a sanitizer a minute: pictures of the short ones.
            kinds = ("svg", "html", "png")[:3 if len(prompt) < 200 else 2]
            paths = {kind: os.path.join(folder, "x." + kind) for kind in kinds}
            for kind, path in paths.items():
                zoom = ["--zoom", "2"] if kind == "png" else []
                done = run(program, *view, "-o", path, *zoom, "--", prompt)
                if done.returncode or done.stdout:
                    return f"{path} {prompt!r}: {done.returncode} {done.stdout} {done.stderr}"
            masked = read_json(program, *view, "--stage", "mask", "--", prompt)["heads"][0]
            weights = read_json(program, *view, "--", prompt)["heads"][0]
            wanted = [[None if s is None else w for s, w in zip(*rows)]
                      for rows in zip(masked["values"], weights["values"])]
            if data_of_page(paths["html"])["heads"][0]["values"] != wanted:
                return f"html differs: {prompt!r}"
            drawn = numbers_of_svg(paths["svg"])
            for got, want in zip(drawn, sum(wanted, []), strict=True):
                if (got is None) != (want is None) or (want and abs(got / want - 1) > 1e-5):
                    return f"svg: {got}, not {want}: {prompt!r}"
            if "png" not in paths:
                continue
            with open(paths["png"], "rb") as file:
                head = file.read(24)
            side = 12 * len(wanted) + 8 + 8  # cells of 6 pixels, twice as large, and a gap around
            if head[:8] != b"\x89PNG\r\n\x1a\n" or struct.unpack(">II", head[16:]) != (side, side):
                return f"png: {head}, not {side}"
    return None


def check_svg_cells_tile(program):
    """cells of an SVG of a long text lie side by side (published model)"""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "x.svg")
        done = run(program, "look", "-m", MODEL, "-L", "0", "--first", "show", "-o", path,
                   "word " * 35)
        if done.returncode:
            return done.stderr.decode()
        elements = xml.etree.ElementTree.parse(path).iter()
        rects = [e.attrib for e in elements if e.tag.endswith("rect")]
    cells = [r for r in rects[1:] if r.get("height") != "14"]
    side, per_map = float(cells[0]["width"]), round(math.sqrt(len(cells) / 8))
    if len(cells) != 8 * per_map * per_map or per_map < 100:
        return f"{len(cells)} cells"
    for number in range(8):
        one = cells[number * per_map * per_map:(number + 1) * per_map * per_map]
        left, top = float(one[0]["x"]), float(one[0]["y"])
        for n, cell in enumerate(one):
            wanted = left + n % per_map * side, top + n // per_map * side
            if far([float(cell["x"]), float(cell["y"])], list(wanted), 0.01 * side):
                return f"map {number}, cell {n}: {cell}, not {wanted}"
    return None


def check_svg_of_a_hostile_name(program):
    """a control character in a model's file name leaves an SVG well-formed"""
    with tempfile.TemporaryDirectory() as folder:
        for name in (b"a\x01b\x1b<&.gguf", b"bad\xff\xc3.gguf", "ü".encode() * 100 + b".gguf"):
            model, path = os.path.join(folder.encode(), name), os.path.join(folder, "x.svg")
            done = run(program, "init", "llama", "--layers", "1", "-o", model, "--quiet")
            done = done if done.returncode else run(program, "look", "-m", model, "-H", "0",
                                                    "-o", path, "Hi")
            if done.returncode:
                return done.stderr.decode(errors="replace")
            title = next(e.text for e in xml.etree.ElementTree.parse(path).iter()
                         if e.tag.endswith("title"))
            if "layer 0, head 0" not in title:
                return f"title {title!r}"
    return None


def check_page_tells_nan_from_hidden(program):
    """a weight that is no number is NaN on the page, not a hidden key"""
    with tempfile.TemporaryDirectory() as folder:
        model, path = os.path.join(folder, "m"), os.path.join(folder, "x.html")
        run(program, "init", "llama", "--layers", "1", "--heads", "1", "--width", "32", "-o", model)
        weights = os.path.join(model, "model.safetensors")
        with open(weights, "r+b") as stream:
            header = stream.read(struct.unpack("<Q", stream.read(8))[0])
            begin = json.loads(header)["model.layers.0.self_attn.q_proj.weight"]["data_offsets"][0]
            stream.seek(8 + len(header) + begin)
            stream.write(struct.pack("<f", math.nan))
        done = run(program, "look", "-m", model, "-L", "0", "-H", "0", "-o", path, "Hi you")
        if done.returncode:
            return done.stderr.decode()
        values = data_of_page(path)["heads"][0]["values"]
    wanted = [["NaN" if j <= i else None for j in range(len(values))] for i in range(len(values))]
    return None if values == wanted and len(values) > 1 else f"values {values}"


def check_trace_gradients(program):
    """gradients of logits are softmax less the token that comes, of a target and of a text"""
    model = ["-m", "hand"]
    for target in ("Turing", None):
        value = read_json(program, "trace", *model, "--select", "logits,logits_grad", "--quiet",
                          *(["--target", target] if target else []))
        logits, gradients = (t["values"] for t in value["tensors"])
        if value["loss_of"] != ("target" if target else "prompt") or value.get("target") != target:
            return f"loss of {value['loss_of']}"
        tokens, losses = value["tokens"], []
        wanted = read_json(program, "tokenize", *model, "--", target)["ids"][-1] if target else None
        for i, (row, gradient) in enumerate(zip(logits, gradients)):
            last = i == len(logits) - 1
            token = (wanted if last else None) if target else (None if last else tokens[i + 1])
            total = sum(math.exp(x - max(row)) for x in row)
            p = [math.exp(x - max(row)) / total for x in row]
            counts = 1 if target else len(logits) - 1
            expected = [0.0 if token is None else (x - (k == token)) / counts
                        for k, x in enumerate(p)]
            if far(gradient, expected, 1e-6):
                return f"{target}, row {i}: {far(gradient, expected, 1e-6)}"
            if token is not None:
                losses.append(-math.log(p[token]))
        if abs(value["loss"] - sum(losses) / len(losses)) > 1e-5:
            return f"loss {value['loss']}, not {sum(losses) / len(losses)}"
    return None


def write_dump(path, shape, numbers):
    """An .npy of weights [layers,heads,queries,keys]."""
    head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {tuple(shape)}, }}"
    head = head.ljust(117) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() +
                   struct.pack(f"<{len(numbers)}f", *numbers))


def check_dumps_of_what_is_no_weight(program):
    """NaN is shown as such, by no number elsewhere; scores and no layers are refused"""
    rows = [1, 0, 0, 0.5, 0.5, 0, math.nan, math.nan, math.nan]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "a.npy")
        write_dump(path, (1, 1, 3, 3), rows)
        head = read_json(program, "heads", "--dump", path)["heads"][0]
        if any(head[name] is not None for name in ("first", "entropy", "keys", "self")):
            return f"a row without numbers has a mean: {head}"
        for view in (["look"], ["look", "-H", "0"], ["look", "-H", "0", "--digits", "2"],
                     ["look", "--color", "always"], ["heads"]):
            done = run(program, *view, "--dump", path)
            if done.returncode or (view == ["look"] and b"X" not in done.stdout):
                return f"{view}: {done}"
        for shape, numbers in (((1, 1, 1, 2), (-0.5, 1.5)), ((1, 1, 1, 2), (1, -math.inf)),
                               ((1, 1, 1, 2), (1, math.inf)), ((0, 1, 2, 2), ())):
            write_dump(path, shape, numbers)
            for view in ("look", "heads"):
                done = run(program, view, "--dump", path)
                if done.returncode != 1 or done.stdout or done.stderr.count(b"\n") != 1:
                    return f"{view} {shape} {numbers}: {done}"
    return None


def check_dump_of_a_step(program):
    """rows of a step of generation stand where they stand, and all of them count"""
    rows = [0.5, 0.25, 0.125, 0.125, 0, 0.1, 0.2, 0.3, 0.3, 0.1]
    with tempfile.TemporaryDirectory() as folder:
        path, texts = os.path.join(folder, "a.npy"), os.path.join(folder, "t.txt")
        write_dump(path, (1, 1, 2, 5), rows)
        with open(texts, "w", encoding="utf-8") as file:
            file.write("a\nb\na\nb\na\n")
        said = read_json(program, "heads", "--dump", path, "--tokens", texts)
        head, near = said["heads"][0], [0.0] * 8
        for i, row in enumerate((rows[:5], rows[5:])):
            for j, weight in enumerate(row[:4 + i]):
                near[3 + i - j] += weight / 2
        if far([head["weight_by_distance"]], [near], 1e-7) or abs(head["first"] - 0.3) > 1e-7:
            return f"{head}, not {near}"
        if said["query_texts"] != ["b", "a"] or any(key.endswith("_tokens") for key in said):
            return f"tokens of texts: {said}"
        shown = run(program, "look", "-H", "0", "--dump", path, "--tokens", texts).stdout.decode()
        if "\n3 b" not in shown or "\n4 a" not in shown or "30 % of the weight" not in shown:
            return shown
    return None


def check_words_sum_keys_and_average_queries(program):
    """look --words: rows sum to 1 and are what the tokens' are (published model)"""
    prompt = ["-m", MODEL, "--quiet", "Lily  didn't see\nunbelievably big dogs."]
    said = read_json(program, "look", "--words", *prompt)
    plain = read_json(program, "look", *prompt)
    want = ["<s>", "Lily", "didn't", "see", "unbelievably", "big", "dogs."]
    if said["query_texts"] != want or "mean over queries" not in said["words"]:
        return f"words {said['query_texts']}"
    spans, text = read_json(program, "tokenize", *prompt)["spans"], prompt[-1]
    word, last = [], -1
    for begin, end in spans: # a word's number is how many have begun before its last letter
        word.append(len(text[:end].split()) if end > begin else 0)
        if word[-1] < last:
            return f"spans {spans}"
        last = word[-1]
    for i, number in enumerate(word): # spaces alone belong to what follows
        if not text[spans[i][0]:spans[i][1]].strip() and spans[i][1] > spans[i][0]:
            word[i] = number + 1
    for tokens, words in zip(plain["heads"], said["heads"], strict=True):
        for w, row in enumerate(words["values"]):
            mine = [values for values, number in zip(tokens["values"], word) if number == w]
            wanted = [sum(x for values in mine for x, number in zip(values, word) if number == v)
                      / len(mine) for v in range(len(want))]
            if far(row, wanted, 1e-6):
                return f"word {w}: {far(row, wanted, 1e-6)}"
    return None


def check_words_are_the_same_in_every_view(program):
    """explain --words and heads --words: of the map that look --words draws"""
    prompt = ["-m", MODEL, "--quiet", "Lily didn't see unbelievably big dogs that big dogs saw."]
    head = ["-L", "3", "-H", "2"]
    seen = read_json(program, "look", "--words", *head, *prompt)
    rows, texts = seen["heads"][0]["values"], seen["query_texts"]
    tokens = read_json(program, "tokenize", *prompt)["ids"]
    for query in (5, len(tokens) - 1):
        said = read_json(program, "explain", "--words", *head, "--query", str(query), *prompt)["words"]
        keys = said["keys"]
        if said["aggregation"] != seen["words"] or [key["word"] for key in keys] != texts:
            return f"words {said}"
        if [key["first"] for key in keys[1:]] + [len(tokens)] != [key["end"] for key in keys]:
            return f"tokens of words {keys}"
        mine = keys[said["query"]]
        if not mine["first"] <= query < mine["end"]:
            return f"token {query} is not of word {mine}"
        if [key["weight"] for key in keys] != rows[said["query"]]:
            return f"row of token {query}"
    heads = read_json(program, "heads", "--words", *prompt)
    one = next(h for h in heads["heads"] if (h["layer"], h["head"]) == (3, 2))
    before = [row[i] for i, row in enumerate(rows[1:])]
    again = [sum(row[j] for j in range(i) if texts[j] == texts[i]) for i, row in enumerate(rows)]
    if heads["words"] != seen["words"] or heads["query_texts"] != texts:
        return f"words {heads['query_texts']}"
    if abs(one["previous"] - sum(before) / len(before)) > 1e-6:
        return f"previous {one['previous']}"
    places = [i for i in range(len(texts)) if texts[i] in texts[:i]]
    if abs(one["duplicate"] - sum(again[i] for i in places) / len(places)) > 1e-6:
        return f"duplicate {one['duplicate']}"
    return None
