"""What the openai client for Python sees of a node. IEG_BASE_URL names it.

Prints a line a case and "N passed, N failed"; exits 1 if any failed.
"""

import base64
import json
import math
import os
import struct
import sys
import time
import traceback
import urllib.request

import openai
from pydantic import BaseModel

base = os.environ["IEG_BASE_URL"].rstrip("/")
client = openai.OpenAI(base_url=base + "/v1", api_key=os.environ.get("IEG_API_KEY", "none"), max_retries=0, timeout=120)
names = [m.id for m in client.models.list().data]
embedder = next(n for n in names if "minilm" in n.lower())
chat_model = next(n for n in names if n != embedder)

CASES = []

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "The weather in a city",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}, "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]}},
                "required": ["city", "unit"],
                "additionalProperties": False,
            },
        },
    },
    {
        "type": "function",
        "function": {
            "name": "get_time",
            "description": "The time in a city",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}},
                "required": ["city"],
                "additionalProperties": False,
            },
        },
    },
]


def case(f):
    CASES.append(f)
    return f


def ask(text="Say hello.", **more):
    more.setdefault("model", chat_model)
    more.setdefault("max_completion_tokens", 24)
    return client.chat.completions.create(messages=[{"role": "user", "content": text}], **more)


def arguments(call):
    args = json.loads(call.function.arguments)
    assert isinstance(args["city"], str), args
    if call.function.name == "get_weather":
        assert args["unit"] in ("celsius", "fahrenheit"), args
    return args


def metric(name):
    with urllib.request.urlopen(base + "/metrics") as r:
        lines = r.read().decode().splitlines()
    values = [float(l.rsplit(" ", 1)[1]) for l in lines if l.startswith(name) and l[len(name)] in " {"]
    assert values, f"no metric {name}"
    return sum(values)


def eventually(what, seconds, condition):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(0.02)


@case
def chat():
    r = ask()
    assert r.object == "chat.completion" and r.id.startswith("chatcmpl-"), r
    c = r.choices[0]
    assert c.message.role == "assistant" and c.message.content, c
    assert c.finish_reason in ("stop", "length"), c
    assert 0 < r.usage.completion_tokens <= 24 and r.usage.prompt_tokens > 0, r.usage
    assert r.usage.total_tokens == r.usage.prompt_tokens + r.usage.completion_tokens, r.usage


@case
def length():
    r = ask("Count from one to a thousand.", max_completion_tokens=5)
    assert r.choices[0].finish_reason == "length" and r.usage.completion_tokens == 5, r


@case
def cached_tokens():
    text = "Repeat: " + "the quick brown fox jumps over the lazy dog. " * 20
    ask(text, max_completion_tokens=2)
    u = ask(text, max_completion_tokens=2).usage
    assert u.prompt_tokens_details.cached_tokens >= u.prompt_tokens * 0.9, u


@case
def streaming():
    text, finishes, usage, roles = "", [], None, []
    for chunk in ask("Tell me about rivers.", stream=True, stream_options={"include_usage": True}):
        assert chunk.object == "chat.completion.chunk", chunk
        if not chunk.choices:
            usage = chunk.usage
            continue
        assert usage is None, "usage came before the last chunk"
        d = chunk.choices[0].delta
        if d.role:
            roles.append(d.role)
        text += d.content or ""
        if chunk.choices[0].finish_reason:
            finishes.append(chunk.choices[0].finish_reason)
    assert text and roles == ["assistant"] and len(finishes) == 1, (text, roles, finishes)
    assert usage and 0 < usage.completion_tokens <= 24, usage


@case
def stop_string():
    r = ask("Count: 1, 2, 3, 4, 5, 6, 7, 8, 9. Go on counting.", stop=[",", "\n"], max_completion_tokens=60)
    c = r.choices[0]
    assert "," not in c.message.content and "\n" not in c.message.content, c


@case
def two_choices():
    r = ask("Write a sentence.", n=2, temperature=1.0, seed=7)
    assert sorted(c.index for c in r.choices) == [0, 1], r
    assert all(c.message.content for c in r.choices), r
    assert r.choices[0].message.content != r.choices[1].message.content, "both choices drew the same"


@case
def two_choices_streaming():
    text, finishes = {0: "", 1: ""}, {}
    for chunk in ask("Write a sentence.", n=2, temperature=1.0, stream=True):
        for c in chunk.choices:
            text[c.index] += c.delta.content or ""
            if c.finish_reason:
                assert c.index not in finishes, "a choice finished twice"
                finishes[c.index] = c.finish_reason
    assert all(text.values()) and set(finishes) == {0, 1}, (text, finishes)


@case
def logprobs():
    r = ask(logprobs=True, top_logprobs=3, temperature=0)
    c = r.choices[0]
    raw = b""
    for t in c.logprobs.content:
        assert t.logprob <= 0 and len(t.top_logprobs) == 3, t
        assert t.top_logprobs[0].logprob >= t.top_logprobs[1].logprob >= t.top_logprobs[2].logprob, t
        assert t.token == t.top_logprobs[0].token, "greedy, but not the best"
        raw += bytes(t.bytes)
    assert raw.decode().startswith(c.message.content), (raw, c.message.content)


@case
def tools_required():
    r = ask("What is the weather in Paris?", tools=TOOLS, tool_choice="required", parallel_tool_calls=False, max_completion_tokens=160)
    c = r.choices[0]
    assert c.finish_reason == "tool_calls" and len(c.message.tool_calls) == 1, c
    call = c.message.tool_calls[0]
    assert call.id and call.type == "function" and call.function.name in ("get_weather", "get_time"), call
    arguments(call)


@case
def tools_parallel():
    r = ask("What are the weather and the time in Paris?", tools=TOOLS, tool_choice="required", max_completion_tokens=160)
    c = r.choices[0]
    calls = c.message.tool_calls
    assert calls and len({call.id for call in calls}) == len(calls), c
    if c.finish_reason == "length":  # a small model goes on calling; the last call may be cut
        calls = calls[:-1]
    else:
        assert c.finish_reason == "tool_calls", c
    for call in calls:
        arguments(call)


@case
def tools_named():
    choice = {"type": "function", "function": {"name": "get_time"}}
    r = ask("What is the weather in Paris?", tools=TOOLS, tool_choice=choice, max_completion_tokens=160)
    calls = r.choices[0].message.tool_calls
    assert [c.function.name for c in calls] == ["get_time"], calls
    arguments(calls[0])


@case
def tools_auto():
    r = ask("What is the weather in Paris?", tools=TOOLS, tool_choice="auto", max_completion_tokens=80)
    c = r.choices[0]
    assert bool(c.message.tool_calls) == (c.finish_reason == "tool_calls"), c
    assert c.message.tool_calls or c.message.content, c
    for call in c.message.tool_calls or []:
        json.loads(call.function.arguments)


@case
def tools_none():
    c = ask("What is the weather in Paris?", tools=TOOLS, tool_choice="none").choices[0]
    assert not c.message.tool_calls and c.message.content, c


@case
def tools_streaming():
    calls, finish = {}, None
    stream = ask("Weather in Rome?", tools=TOOLS, tool_choice="required", parallel_tool_calls=False, stream=True, max_completion_tokens=160)
    pieces = 0
    for chunk in stream:
        for d in chunk.choices[0].delta.tool_calls or []:
            if d.index not in calls:
                assert d.id and d.function.name, "a call begins with its id and name"
                calls[d.index] = [d.function.name, ""]
            else:
                assert not d.id and not d.function.name, "id and name come once"
            pieces += bool(d.function.arguments)
            calls[d.index][1] += d.function.arguments or ""
        finish = chunk.choices[0].finish_reason or finish
    assert finish == "tool_calls" and calls, (finish, calls)
    for name, args in calls.values():
        assert name in ("get_weather", "get_time"), name
        json.loads(args)
    assert pieces > 1, "arguments are streamed, not sent at the end"


@case
def tool_result():
    call = {"id": "call_1", "type": "function", "function": {"name": "get_time", "arguments": '{"city":"Rome"}'}}
    r = client.chat.completions.create(
        model=chat_model,
        max_completion_tokens=24,
        tools=TOOLS,
        tool_choice="none",
        messages=[
            {"role": "user", "content": "What time is it in Rome?"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_1", "content": "12:30"},
        ],
    )
    assert r.choices[0].message.content, r


class Person(BaseModel):
    name: str
    age: int
    hobbies: list[str]


@case
def json_schema():
    r = client.chat.completions.parse(
        model=chat_model,
        max_completion_tokens=300,
        messages=[{"role": "user", "content": "Describe a person named Ann, 30 years old, who likes chess."}],
        response_format=Person,
        temperature=0,
        frequency_penalty=0.5,
    )
    c = r.choices[0]
    assert c.finish_reason == "stop" and isinstance(c.message.parsed, Person), c


@case
def json_schema_enum():
    schema = {
        "type": "object",
        "properties": {"mood": {"enum": ["good", "bad"]}, "score": {"type": "integer"}},
        "required": ["mood", "score"],
        "additionalProperties": False,
    }
    wanted = {"type": "json_schema", "json_schema": {"name": "m", "schema": schema, "strict": True}}
    for temperature in (0, 1.5):
        c = ask("I am happy!", response_format=wanted, max_completion_tokens=80, temperature=temperature).choices[0]
        if c.finish_reason == "stop":
            v = json.loads(c.message.content)
            assert v["mood"] in ("good", "bad") and isinstance(v["score"], int) and len(v) == 2, v
        else:
            assert c.finish_reason == "length" and c.message.content.lstrip().startswith("{"), c


@case
def json_object():
    c = ask("Give me a JSON object with a colour.", response_format={"type": "json_object"}, max_completion_tokens=200, temperature=0).choices[0]
    assert c.message.content.lstrip().startswith("{"), c
    if c.finish_reason == "stop":
        assert isinstance(json.loads(c.message.content), dict), c


@case
def completions():
    r = client.completions.create(model=chat_model, prompt="Once upon a time", max_tokens=8, logprobs=2, temperature=0)
    c = r.choices[0]
    assert c.text and r.usage.completion_tokens <= 8, r
    assert len(c.logprobs.tokens) == len(c.logprobs.token_logprobs) == len(c.logprobs.text_offset), c.logprobs


@case
def embeddings():
    texts = ["A man is eating food.", "Someone has a meal", "The stock market fell."]
    r = client.embeddings.create(model=embedder, input=texts)  # asks for base64
    v = [d.embedding for d in r.data]
    assert [d.index for d in r.data] == [0, 1, 2] and all(len(x) == 384 for x in v), r.usage
    dot = lambda a, b: sum(x * y for x, y in zip(a, b))
    assert all(abs(dot(x, x) - 1) < 1e-3 for x in v), "not of unit length"
    assert dot(v[0], v[1]) > 0.6 > 0.3 > dot(v[0], v[2]), (dot(v[0], v[1]), dot(v[0], v[2]))
    assert r.usage.prompt_tokens == r.usage.total_tokens > 0, r.usage
    raw = client.embeddings.create(model=embedder, input=texts[0], encoding_format="float").data[0].embedding
    assert dot(raw, v[0]) > 0.9999, "float and base64 differ"
    packed = client.embeddings.with_raw_response.create(model=embedder, input=texts[0], encoding_format="base64").http_response.json()
    packed = base64.b64decode(packed["data"][0]["embedding"])
    assert abs(dot(struct.unpack(f"<{len(packed) // 4}f", packed), raw) - 1) < 1e-3
    assert math.isclose(dot(raw, raw), 1, abs_tol=1e-3)


@case
def cancel_mid_stream():
    stream = ask("Write a very long story.", stream=True, max_completion_tokens=1000, extra_body={"ignore_eos": True})
    seen = 0
    for chunk in stream:
        seen += bool(chunk.choices and chunk.choices[0].delta.content)
        if seen == 3:
            break
    before = metric("ieg_requests_running")
    stream.close()
    assert before >= 1, before
    eventually("the cancelled request stops", 1, lambda: metric("ieg_requests_running") < before)
    assert ask().choices[0].message.content


def refused(error, status, f):
    try:
        f()
    except error as e:
        assert e.status_code == status, e
        body = e.body
        assert isinstance(body, dict) and body.get("message") and "code" in body and "type" in body, body
        return e
    raise AssertionError(f"accepted; want {status}")


@case
def unknown_model():
    refused(openai.NotFoundError, 404, lambda: ask(model="no-such-model"))


@case
def long_prompt():
    e = refused(openai.BadRequestError, 400, lambda: ask("word " * 60000))
    assert e.code == "context_length_exceeded", e.body


@case
def bad_values():
    refused(openai.BadRequestError, 400, lambda: ask(temperature=-1))
    refused(openai.BadRequestError, 400, lambda: ask(n=0))
    refused(openai.BadRequestError, 400, lambda: ask(tool_choice="required"))
    assert ask(extra_body={"some_unknown_field": {"a": 1}}).choices[0].message.content


def main():
    failed = 0
    for f in CASES:
        began = time.monotonic()
        try:
            f()
            print(f"ok    {f.__name__} ({time.monotonic() - began:.1f} s)", flush=True)
        except Exception:
            failed += 1
            print(f"FAIL  {f.__name__}\n{traceback.format_exc()}", flush=True)
    print(f"{len(CASES) - failed} passed, {failed} failed")
    sys.exit(failed > 0)


main()
