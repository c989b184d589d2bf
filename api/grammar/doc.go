// Package grammar turns JSON schemas, regular expressions, choices and tool
// definitions into GBNF, the grammar language of llama.cpp's sampler. It is
// pure. It owns the translation and its bounds; it neither samples nor checks
// text, and knows nothing of requests.
//
// What it returns can always be parsed: every rule is defined, none is left
// recursive, every rule can end, repetitions stay under llama.cpp's limits and
// the text under MaxGrammarBytes. All else is an *Error that names the JSON
// pointer of the keyword at fault.
//
// # JSON schema
//
// A grammar accepts only instances that are valid under the schema, with one
// exception (oneOf). It does not accept every spelling of every valid
// instance:
//
//   - Properties come in the order of the schema, optional ones may be left
//     out, additional ones follow.
//   - White space is one space, or one line's end with up to MaxIndent spaces
//     or tabs, and only where pretty-printers put it.
//   - Objects that declare properties are closed unless additionalProperties
//     opens them; arrays that declare prefixItems, unless items does.
//   - Numbers have at most MaxIntegerDigits digits before and MaxFractionDigits
//     after the point; bounded ones have no exponent.
//
// Supported keywords:
//
//	type (also lists), enum, const
//	properties, required, additionalProperties
//	items, prefixItems, minItems, maxItems
//	minLength, maxLength, pattern (see Regex), format: date, time, date-time,
//	  uuid, email, ipv4
//	minimum, maximum, exclusiveMinimum, exclusiveMaximum
//	anyOf; oneOf, read as anyOf; allOf, merged
//	$ref to "#", "#/$defs/…", "#/definitions/…" or any other local pointer, also
//	  recursive, with $defs, definitions
//	true and false as schemas (false where it says "no more")
//
// Ignored, since they assert nothing: title, description, default, examples,
// deprecated, readOnly, writeOnly, $comment, $schema, $id; uniqueItems: false.
//
// Every other keyword is refused. pattern and format exclude each other and
// minLength, maxLength; enum and const go with type only. allOf, anyOf beside
// other keywords, and $ref beside others are merged keyword by keyword: types
// are intersected, properties and required united; where both sides say
// something else about the same thing, or one closes what the other opens, the
// merge is refused.
//
// # Regular expressions
//
// RE2 syntax without word boundaries and flags that change anchors. Anchors may
// stand at the ends of the expression or of its alternatives only. What may be
// empty may not be repeated without bound. In pattern the expression is
// searched for, as JSON schema wants; Regex matches the whole text.
//
// # Tool calls
//
// ToolCalls writes the formats of package parse: the same names, one format of
// each that the parser accepts. The grammar begins with the format's opening
// marker, so that it can be used from the first token on (forced calls), or
// from where a trigger was found (lazily; the text from the trigger on is fed
// to the grammar).
package grammar
