"""What a consumer of vLLM's KV events sees of a node, by libzmq and msgspec.

IEG_BASE_URL names the node, IEG_KV_EVENTS and IEG_KV_REPLAY its ports, and
IEG_KV_FORM is "maps" or "arrays". Prints a line a check; exits 1 if one failed.
"""

import json
import os
import sys
import time
import urllib.request
from typing import Any, Union

import msgspec
import zmq

base = os.environ["IEG_BASE_URL"].rstrip("/")
arrays = os.environ["IEG_KV_FORM"] == "arrays"
END = (-1).to_bytes(8, "big", signed=True)
Hash = Union[int, bytes]


# The shapes that vLLM's publisher and its consumers declare.
class Event(msgspec.Struct, array_like=arrays, omit_defaults=True, gc=False, tag=True):
    pass


class BlockStored(Event):
    block_hashes: list[Hash]
    parent_block_hash: Union[Hash, None]
    token_ids: list[int]
    block_size: int
    lora_id: Union[int, None]
    medium: Union[str, None]
    lora_name: Union[str, None]
    extra_keys: Union[list[Union[tuple[Any, ...], None]], None] = None
    group_idx: Union[int, None] = None
    kv_cache_spec_kind: Union[str, None] = None
    kv_cache_spec_sliding_window: Union[int, None] = None
    locality: Union[str, None] = None


class BlockRemoved(Event):
    block_hashes: list[Hash]
    medium: Union[str, None]
    group_idx: Union[int, None] = None
    locality: Union[str, None] = None


class AllBlocksCleared(Event):
    pass


class Batch(msgspec.Struct, array_like=True, omit_defaults=True, gc=False):
    ts: float
    events: list[Union[BlockStored, BlockRemoved, AllBlocksCleared]]
    data_parallel_rank: Union[int, None] = None


decode = msgspec.msgpack.Decoder(Batch).decode
failed = 0


def check(name, ok, detail=""):
    global failed
    failed += not ok
    print(f"{'ok  ' if ok else 'FAIL'} {name}{'' if ok else f': {detail}'}")


def chat():
    body = {"messages": [{"role": "user", "content": "Say more about it. " * 60}], "max_tokens": 300}
    request = urllib.request.Request(
        base + "/v1/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.load(response)["usage"]


class View:
    """The blocks of a node, as its events tell them."""

    def __init__(self):
        self.media = {}
        self.wrong = []

    def take(self, batch):
        for e in batch.events:
            if isinstance(e, AllBlocksCleared):
                self.media.clear()
            elif isinstance(e, BlockRemoved):
                self.media.get(e.medium, set()).difference_update(e.block_hashes)
            else:
                if len(e.token_ids) != len(e.block_hashes) * e.block_size:
                    self.wrong.append(f"{len(e.token_ids)} tokens in {len(e.block_hashes)} blocks of {e.block_size}")
                known = set().union(*self.media.values())
                if e.parent_block_hash is not None and e.parent_block_hash not in known:
                    self.wrong.append(f"unknown parent {e.parent_block_hash}")
                if e.medium not in ("GPU", "CPU", "STORAGE") or e.lora_id is not None or e.group_idx != 0:
                    self.wrong.append(str(e))
                self.media.setdefault(e.medium, set()).update(e.block_hashes)


def main():
    context = zmq.Context()
    sub = context.socket(zmq.SUB)
    sub.subscribe("kv@")
    monitor = sub.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED)
    sub.connect(os.environ["IEG_KV_EVENTS"])
    check("handshake", monitor.poll(5000), "none in 5 s")
    sub.disable_monitor()
    time.sleep(0.2)  # the subscription follows the handshake
    usage = chat()
    view, live, end = View(), [], time.monotonic() + 30
    while len(view.media.get("STORAGE", ())) < usage["prompt_tokens"] // 256 and time.monotonic() < end:
        if sub.poll(1000):
            topic, seq, payload = sub.recv_multipart()
            live.append((topic, seq, payload))
            view.take(decode(payload))
    sizes = {m: len(b) for m, b in view.media.items()}
    check("blocks on all tiers", all(sizes.get(m, 0) > 0 for m in ("GPU", "CPU", "STORAGE")), sizes)
    check("the tiers hold the same blocks", view.media.get("STORAGE", set()) <= view.media.get("CPU", set()), sizes)
    check("every event makes sense", not view.wrong, view.wrong[:3])
    check("topics name node and model", {t for t, _, _ in live} == {f"kv@{base.split('//')[1]}@m".encode()}, live[:1])
    numbers = [int.from_bytes(s, "big") for _, s, _ in live]
    check("numbers go up by one", numbers == list(range(len(live))), numbers)
    check("the first message clears", live and isinstance(decode(live[0][2]).events[0], AllBlocksCleared), live[:1])

    replay = context.socket(zmq.DEALER)
    replay.connect(os.environ["IEG_KV_REPLAY"])
    replay.send_multipart((b"", (1).to_bytes(8, "big")))
    again = []
    while replay.poll(5000):
        _, topic, seq, payload = replay.recv_multipart()
        if seq == END:
            check("the replay ends", payload == b"", payload)
            break
        again.append((topic, seq, payload))
    check("a replay repeats what was read", again[: len(live) - 1] == live[1:], f"{len(again)} of {len(live) - 1} messages")
    context.destroy(linger=0)
    sys.exit(1 if failed else 0)


main()
