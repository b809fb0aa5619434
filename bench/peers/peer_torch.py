#!/usr/bin/env python3
"""PyTorch's scaled_dot_product_attention on the CPU, behind the protocol of the peers.

Takes the public function of PyTorch 2, or the private one that 1.13 has (which
knows no grouped heads, so keys and values are expanded beforehand, outside the clock).
"""
import ctypes
import sys
import time


def say(line):
    print(line, flush=True)


try:
    import torch
except ImportError as error:
    say(f"absent\tpython3-torch cannot be loaded: {str(error).splitlines()[0]}")
    sys.exit(0)

functional = torch.nn.functional
PUBLIC = getattr(functional, "scaled_dot_product_attention", None)
PRIVATE = getattr(functional, "_scaled_dot_product_attention", None)
state = {}


def attend(q, k, v, causal):
    if PUBLIC:
        return PUBLIC(q, k, v, is_causal=causal)
    return PRIVATE(q, k, v, is_causal=causal)[0]


def load(case, name, heads, n):
    half = case["dtype"] == "f16"
    shape = (case["b"], heads, n, case["d"])
    path = f"{case['folder']}/{name}.{case['dtype']}"
    count = shape[0] * shape[1] * shape[2] * shape[3]
    return torch.from_file(path, size=count, dtype=torch.float16 if half else torch.float32
                           ).clone().reshape(shape)


def prepare(case):
    torch.set_num_threads(case["threads"])
    q = load(case, "q", case["h"], case["t"])
    k, v = (load(case, name, case["g"], case["s"]) for name in "kv")
    group = case["h"] // case["g"]
    if group > 1:
        k, v = k.repeat_interleave(group, dim=1), v.repeat_interleave(group, dim=1)
    state.update(case=case, q=q, k=k, v=v)
    call()
    return None


def call():
    case, x = state["case"], state["q"]
    causal = bool(case["causal"]) and case["t"] > 1
    with torch.no_grad():
        for _ in range(case["chain"]):
            x = attend(x, state["k"], state["v"], causal)
    state["out"] = x


def measure():
    """As in worker.c: short ones are warmed up and repeated for about 20 ms."""
    chain, start = state["case"]["chain"], time.perf_counter()
    call()
    once = time.perf_counter() - start
    if once > 0.05:
        return once / chain
    times = 1 + int(0.02 / max(once, 1e-6))
    start = time.perf_counter()
    for _ in range(times):
        call()
    return (time.perf_counter() - start) / times / chain


def dump(path):
    data = state["out"].float().contiguous()
    with open(path, "wb") as stream:
        stream.write(ctypes.string_at(data.data_ptr(), data.numel() * 4))
    return "done"


NAMES = "folder b h g d t s causal dtype threads chain variant".split()


def read_case(words):
    case = dict(zip(NAMES, words))
    case.update({name: int(case[name]) for name in "b h g d t s causal threads chain".split()})
    return case


def answer(line):
    command, *words = line.split()
    if command == "case":
        no = prepare(read_case(words))
        return f"no {no}" if no else "ready"
    if command == "run":
        return f"{measure():.9f}"
    if command == "dump":
        return dump(words[0])
    return "no such command"


def main():
    if not (PUBLIC or PRIVATE):
        say(f"absent\tPyTorch {torch.__version__} has no scaled_dot_product_attention")
        return
    say(f"peer\tPyTorch\t{torch.__version__}\tsdpa")
    for line in sys.stdin:
        try:
            say(answer(line.strip()))
        except (RuntimeError, TypeError, MemoryError) as error:
            say("no " + str(error).splitlines()[0])


main()
