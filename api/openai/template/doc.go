// Package template turns chat messages into the prompt of a model by the
// model's own Jinja template. It is pure: the date is an argument.
//
// It owns what lies between OpenAI's messages and the text of a prompt: how
// messages, tools and options become the template's variables, what happens
// when a template lacks a feature, and the rule that text from users never
// becomes a control token. It does not tokenise.
//
// # What a template can't do is done here
//
// Compile renders a few probes to learn what a template knows. What it
// doesn't know gets a default:
//
//   - No template in the model: ChatML, "<|im_start|>role\ntext<|im_end|>\n".
//   - No tools: the tools are described in the system message, in Hermes'
//     manner: the definitions as JSON lines inside <tools>…</tools>, and the
//     model is told to answer with <tool_call>{"name":…,"arguments":…}</tool_call>.
//     Calls in the history are written in that form, too.
//   - No tool role: results become a user message that holds them inside
//     <tool_response>…</tool_response>, those in a row in one message.
//   - No system role: the system text is put before the first user message.
//   - The arguments of earlier calls are handed over as an object or, where
//     the template only takes that, as JSON text; a missing content as None
//     or, where the template would print that word, as "".
//
// # Control tokens
//
// A prompt is a list of Parts. The tokeniser reads each part by itself, and
// spelled control tokens count in Special parts. Before rendering, a mark (a
// private-use character that occurs nowhere in the input) is put inside every
// control token that a string from the user spells. The rendered text is then
// cut at the marks, so no part holds a control token that is not the
// template's own. Where strings from the user could form a control token
// together with what the template puts around them, or after the template cut
// them up, the prompt is rendered a second time, with marks at their ends and
// around each character that begins a control token; if the two differ in
// their number of control tokens, the second one is used. A control token of
// a single character can't be broken and is not guarded.
package template
