package grammar

// The limits of the package.
const (
	// MaxSchemaBytes is the longest schema (all tools of a call together).
	MaxSchemaBytes = 256 << 10
	// MaxSchemaDepth is the deepest nesting of a schema's JSON, and of schemas
	// reached through references.
	MaxSchemaDepth = 64
	// MaxKeyBytes is the longest key inside a schema.
	MaxKeyBytes = 1024
	// MaxProperties is the most properties of one object.
	MaxProperties = 512
	// MaxEnum is the most values of one enum and the most choices.
	MaxEnum = 2048
	// MaxTools is the most tools of one grammar.
	MaxTools = 256
	// MaxCalls is the most calls of one message.
	MaxCalls = 32
	// MaxToolName is the longest name of a tool, in bytes.
	MaxToolName = 128
	// MaxPatternBytes is the longest regular expression.
	MaxPatternBytes = 2048
	// MaxBranches is the most alternatives into which anchors split a pattern.
	MaxBranches = 64
	// MaxCount is the largest minLength, maxLength, minItems, maxItems.
	MaxCount = 100_000
	// MaxRepeat is the largest count written as {m,n}; llama.cpp refuses 2,000.
	MaxRepeat = 1000
	// MaxNodes bounds the expressions of a grammar, counts expanded.
	MaxNodes = 1 << 16
	// MaxRules bounds its rules.
	MaxRules = 1 << 13
	// MaxGrammarBytes bounds its text.
	MaxGrammarBytes = 1 << 20
	// MaxIndent is the longest indentation of a line.
	MaxIndent = 20
	// MaxIntegerDigits and MaxFractionDigits bound the digits of a number.
	MaxIntegerDigits  = 18
	MaxFractionDigits = 15
	// MaxBoundDigits is the most fraction digits of a minimum or maximum.
	MaxBoundDigits = 9
)
