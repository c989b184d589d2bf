// Package openai is the HTTP front door: OpenAI's API with the extensions of
// vLLM that make sense here.
//
// It owns HTTP: routes, keys, Origin and Host, decoding and its bounds, chat
// templates, tool and reasoning parsers, response formats, JSON and SSE, slow
// readers, errors. It does not own scheduling, sampling or the text of tokens:
// a request leaves as an ieg.Request through the interface Node, and its
// output comes back through a Sink.
//
// # Routes
//
//	POST /v1/chat/completions, /v1/completions, /v1/embeddings
//	GET  /v1/models, /v1/models/{id}
//	POST /tokenize, /detokenize
//	GET  /health, /ping, /version, /metrics
//
// With API keys all of them but the last four need "Authorization: Bearer".
// On a loopback listener only loopback names are taken as Host and Origin,
// plus those configured, so that no web page elsewhere can reach the node.
//
// # Choices made where clients leave room
//
//   - Class: header X-Vllm-Priority, else body priority: below 0 is P0, above
//     0 is P2. With neither, service_tier "flex" or "batch" is P2; else a
//     streamed request is P0, any other P1.
//   - Tenant: cache_salt. Prompts of different salts share no KV.
//   - store: false keeps the request's KV on the device: nothing of its text
//     is written to host memory or to disk. A missing one is true.
//   - model: a missing one is the first loaded.
//   - max_tokens: for chats the rest of the context, for completions 16; cut
//     to the context. A prompt that fills the context is refused.
//   - The prompt of /v1/completions is the caller's own template: control
//     tokens spelled in it count, unless parse_special is false. Messages and
//     embedding inputs never spell control tokens.
//   - tool_choice "none" hides the tools from the model. "required" and a
//     named function force the format by a grammar; "auto" does so from the
//     opening marker on if a function has strict: true. A model whose template
//     knows no tools, or a format that no parser knows, is told of them in
//     Hermes' format.
//   - response_format and structured_outputs (and guided_json, guided_regex,
//     guided_choice) become a grammar, see package grammar for what it takes.
//   - reasoning_effort "none" also sets enable_thinking to false for the
//     template. Reasoning is shown as reasoning and as reasoning_content.
//   - dimensions cuts an embedding and scales it to length 1 again.
//
// # Streams
//
// Status 200 leaves with the first output or, after Config.KeepAlive, with a
// comment line; errors before that are plain HTTP errors. A request that
// fails later ends with data: {"error":…} and data: [DONE]; it never gets a
// finish_reason. Output waits in a buffer per response: past
// PauseBacklogBytes the runtime pauses the request, below half of it it is
// resumed, and a client that takes nothing for Config.WriteStall is cancelled.
//
// A client that ends its sending side after the request looks to net/http as
// if it had left, and may be listening still. What is ready by then it gets;
// the rest is cancelled and its connection cut, so that it sees neither a
// fault of the node nor an answer that looks whole.
//
// # Goroutines and locks
//
// One goroutine a request, the HTTP server's. The runtime's loop calls Sinks,
// which parse, copy into the response's buffer and signal; formatting and
// writing happen on the request's goroutine, all that waits in one write.
// A buffer has one lock, held for copies only. No lock is held while calling
// the Node.
package openai
