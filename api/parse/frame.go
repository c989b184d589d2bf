package parse

import "strings"

// action is what a marker does when it has been read whole.
type action uint8

const (
	actOpen   action = iota // a call's frame begins
	actCall                 // one call begins inside or without a frame (DeepSeek)
	actBare                 // the first byte of a call that has no marker
	actItem                 // the next call of a list
	actClose                // an end marker: dropped, once per call
	actReason               // reasoning begins
)

// marker is a literal with its action.
type marker struct {
	text string
	act  action
}

// frame is what a tool format looks like around its calls.
type frame struct {
	// opens are looked for anywhere in content, and between calls.
	opens []marker
	// bare are looked for where nothing but calls came before.
	bare []marker
	// closers are dropped after a call, each once.
	closers []marker
	// listClosers replace closers while calls are items of a list.
	listClosers []marker
	// strict: an unknown key ends the hope for a call.
	strict bool
}

// The full-width bar and the lower block are part of DeepSeek's markers; some
// conversions spell the block as an underscore or a space.
func deepSeekSpellings(act action, words ...string) []marker {
	var out []marker
	for _, sep := range []string{"▁", "_", " "} {
		out = append(out, marker{"<｜" + strings.Join(words, sep) + "｜>", act})
	}
	return out
}

func concat(lists ...[]marker) []marker {
	var out []marker
	for _, l := range lists {
		out = append(out, l...)
	}
	return out
}

var deepSeekSeps = deepSeekSpellings(actOpen, "tool", "sep")

var frames = map[string]*frame{
	Hermes: {
		opens:   []marker{{"<tool_call>", actOpen}},
		closers: []marker{{"</tool_call>", actClose}},
	},
	Llama3: {
		opens:   []marker{{"<|python_tag|>", actOpen}},
		bare:    []marker{{"{", actBare}},
		closers: []marker{{";", actClose}, {"<|eom_id|>", actClose}, {"<|eot_id|>", actClose}},
		strict:  true,
	},
	Mistral: {
		opens:       []marker{{"[TOOL_CALLS]", actOpen}},
		listClosers: []marker{{",", actItem}, {"]", actClose}},
	},
	DeepSeek: {
		opens: concat(deepSeekSpellings(actOpen, "tool", "calls", "begin"),
			deepSeekSpellings(actCall, "tool", "call", "begin")),
		closers: concat([]marker{{"```", actClose}},
			deepSeekSpellings(actClose, "tool", "call", "end"),
			deepSeekSpellings(actClose, "tool", "calls", "end")),
	},
	Pythonic: {
		bare: []marker{{"[", actBare}},
	},
}

var reasoningTags = map[string][2]string{
	Think:    {"<think>", "</think>"},
	Brackets: {"[THINK]", "[/THINK]"},
}

// ToolFormats lists the names that Config.ToolFormat takes.
func ToolFormats() []string {
	return []string{None, Hermes, Llama3, Mistral, DeepSeek, Pythonic}
}

// ReasoningFormats lists the names that Config.ReasoningFormat takes.
func ReasoningFormats() []string { return []string{None, Think, Brackets} }

// NeedsControlText tells whether the format's markers can be control tokens,
// so that the engine must show those as text.
func NeedsControlText(toolFormat string) bool {
	return toolFormat == Llama3 || toolFormat == Mistral || toolFormat == DeepSeek
}

// FormatFor chooses the formats of a model by what its chat template spells;
// arch (the GGUF architecture) decides where templates are alike. None means
// that the template says nothing of calls, or of reasoning.
func FormatFor(chatTemplate, arch string) (tool, reasoning string) {
	return toolFormatFor(chatTemplate, arch), reasoningFormatFor(chatTemplate)
}

func toolFormatFor(template, arch string) string {
	has := func(s string) bool { return strings.Contains(template, s) }
	switch {
	case !has("tools") && !has("tool_calls"):
		return None
	case has("<｜tool▁calls▁begin｜>"), has("<｜tool▁call▁begin｜>"):
		return DeepSeek
	case has("[TOOL_CALLS]"):
		return Mistral
	case has("<tool_call>") && !has("<function="):
		return Hermes
	case has("<|python_tag|>"), has("<|start_header_id|>") && has(`"parameters"`):
		return Llama3
	case has("<|start_header_id|>") && has("[func_name1("), arch == "llama4":
		return Pythonic
	}
	return None
}

func reasoningFormatFor(template string) string {
	for _, name := range []string{Think, Brackets} {
		if strings.Contains(template, reasoningTags[name][1]) {
			return name
		}
	}
	return None
}

// OpensReasoning tells whether a rendered prompt ends inside reasoning: its
// last opening tag is not closed and only white space follows it.
func OpensReasoning(prompt, reasoningFormat string) bool {
	tags, ok := reasoningTags[reasoningFormat]
	return ok && strings.HasSuffix(strings.TrimRight(prompt, " \t\r\n"), tags[0])
}
