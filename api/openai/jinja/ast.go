package jinja

// expr is a node that has a value, stmt one that writes or binds.
type (
	expr interface{ eval(r *run, f *frame) Value }
	stmt interface{ exec(r *run, f *frame) signal }
)

// signal tells how a statement ended.
type signal uint8

const (
	goOn signal = iota
	doBreak
	doContinue
)

// Expressions.
type (
	literal  struct{ v Value }
	nameExpr struct{ name string }
	listExpr struct {
		items []expr
		tuple bool
	}
	dictExpr struct{ keys, vals []expr }
	attrExpr struct {
		of   expr
		name string
	}
	indexExpr struct{ of, at expr }
	sliceExpr struct{ of, from, to, step expr }
	callExpr  struct {
		fn   expr
		args callArgs
	}
	filterExpr struct {
		of   expr // nil in a filter block
		name string
		args callArgs
		line int
	}
	testExpr struct {
		of   expr
		name string
		args callArgs
		not  bool
		line int
	}
	unaryExpr struct {
		op string
		x  expr
	}
	binaryExpr struct {
		op   string
		x, y expr
	}
	compareExpr struct {
		x    expr
		ops  []string
		rest []expr
	}
	condExpr struct{ test, yes, no expr } // no may be nil
)

type callArgs struct {
	pos    []expr
	names  []string // of kw
	kw     []expr
	spread expr // *args or nil
}

// Statements.
type (
	textStmt   struct{ s string }
	outputStmt struct{ x expr }
	block      []stmt
	ifStmt     struct {
		tests  []expr
		bodies []block
		other  block
	}
	forStmt struct {
		targets   []string
		in        expr
		filter    expr
		body      block
		other     block
		recursive bool
	}
	setStmt struct {
		targets []target
		x       expr
	}
	setBlockStmt struct {
		to      target
		filters []filterExpr
		body    block
	}
	filterBlockStmt struct {
		filters []filterExpr
		body    block
	}
	withStmt struct {
		names []string
		vals  []expr
		body  block
	}
	macroStmt struct {
		name     string
		params   []string
		defaults []expr // of the last params
		body     block
	}
	callBlockStmt struct {
		call  *callExpr
		macro *macroStmt // the body as a nameless macro: caller()
	}
	doStmt     struct{ x expr }
	signalStmt struct{ s signal }
)

// target is what a set statement assigns to: a name or an attribute of a
// namespace.
type target struct{ name, attr string }
