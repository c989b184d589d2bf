package jinja

// Limits of one template and one render. All are counts, so the outcome does
// not depend on the speed of the machine.
const (
	// SourceBytes is the longest template source.
	SourceBytes = 1 << 20
	// ParseDepth is the deepest nesting of expressions and statements.
	ParseDepth = 200
	// RenderSteps is the number of evaluated syntax nodes, visited list items
	// and the like in one render (about 0.2 s of work).
	RenderSteps = 4 << 20
	// RenderBytes bounds the sum of the lengths of all strings made in one
	// render, including those that are not printed.
	RenderBytes = 256 << 20
	// OutputBytes is the longest rendered text.
	OutputBytes = 32 << 20
	// RenderDepth is the deepest nesting of macro calls and recursive loops.
	RenderDepth = 100
	// JSONDepth is the deepest nesting of a JSON text turned into a Value.
	JSONDepth = 64
)
