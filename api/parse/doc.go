// Package parse finds tool calls and reasoning in the text of a model. It is
// pure: a Parser is a function of the bytes fed so far, and how they were cut
// into chunks makes no difference to the concatenation of its events.
//
// It owns the formats in which models write calls and thoughts. It does not
// own call ids (the door makes them), templates, or the grammars that force
// a call (see package grammar).
//
// # Tool formats
//
//	hermes    <tool_call>{"name": …, "arguments": {…}}</tool_call>   Hermes, Qwen 2.5 and 3
//	llama3    {"name": …, "parameters": {…}} as the whole message, several
//	          separated by ";" or white space, or anywhere after <|python_tag|>
//	mistral   [TOOL_CALLS][{"name": …, "arguments": {…}}, …]
//	          and [TOOL_CALLS]name[ARGS]{…}
//	deepseek  <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>… of V3 and R1 (type,
//	          separator, name, fenced JSON) and of V3.1 (name, separator, JSON)
//	pythonic  [name(argument=value, …), …] as the whole message
//	none      no calls: the text is content
//
// FormatFor answers none for templates with calls in other shapes, such as the
// XML of Qwen3-Coder. The markers of llama3, mistral and deepseek can be control tokens, which an
// engine hides unless it is asked to show them: see NeedsControlText.
//
// # Reasoning formats
//
//	think     <think>…</think>
//	brackets  [THINK]…[/THINK]
//	none      no reasoning
//
// Config can name other tags. An opening tag counts at the start of the
// message only; Config.InReasoning says that the template has written it
// already (OpensReasoning tells from the prompt). Calls inside reasoning are
// reasoning. White space around the tags belongs to the tags.
//
// # What becomes of each byte
//
//   - Text outside of reasoning and calls is Content, each byte exactly once.
//     White space (up to MaxSpaceBytes) before the first call of a message
//     that holds nothing else, between calls, and after the last one is part
//     of the calls' syntax and is dropped.
//   - Until a call's name is known to be one that was offered and its
//     arguments begin, nothing of it is shown. If it turns out malformed, names
//     an unknown tool or exceeds a limit before that, all that was held back
//     becomes Content and scanning goes on with the byte that broke it.
//   - From then on arguments are shown as they come, always a prefix of a JSON
//     object (raw control characters inside strings are escaped). If they turn
//     out malformed, ToolEnd with Complete unset follows and the text goes on
//     as Content with the byte that broke it. The same ToolEnd, without more
//     text, closes a call that the final Feed leaves open.
//   - Other keys beside name and arguments, and closing markers that are
//     missing, are tolerated; the keys are dropped.
//
// What is held back is never more than what may still turn out to be a marker
// or the head of a call, and is bounded by limits.go. The work is linear in
// the text.
package parse
