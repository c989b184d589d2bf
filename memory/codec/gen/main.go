package main

import (
	"fmt"
	"os"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/printer"
	"github.com/mmcloughlin/avo/reg"
)

// The files that are written.
const (
	assembly = "int8_amd64.s"
	stubs    = "int8_amd64.go"
)

func main() {
	for name, text := range generate() {
		if err := os.WriteFile(name, text, 0o644); err != nil {
			fmt.Fprintln(os.Stderr, "gen:", err)
			os.Exit(1)
		}
	}
}

// generate returns the files' texts by their names.
func generate() map[string][]byte {
	g := &writer{Context: build.NewContext()}
	g.ConstraintExpr("amd64")
	g.order = g.StaticGlobal("order")
	g.DataAttributes(8 | 16) // RODATA, NOPTR
	for i, v := range order {
		g.AddDatum(4*i, operand.U32(v))
	}
	for _, t := range []elem{f16, bf16} {
		for _, past := range []bool{false, true} {
			g.past = past
			g.pack(t)
			g.unpack(t)
		}
	}
	g.aligned()
	file, err := g.Result()
	if err == nil {
		err = pass.Compile.Execute(file)
	}
	if err != nil {
		panic(err)
	}
	cfg := printer.Config{Name: "gen", Argv: []string{"go", "generate"}, Pkg: "codec"}
	return map[string][]byte{
		assembly: printed(printer.NewGoAsm(cfg), file),
		stubs:    printed(printer.NewStubs(cfg), file),
	}
}

func printed(p printer.Printer, f *ir.File) []byte {
	text, err := p.Print(f)
	if err != nil {
		panic(err)
	}
	return text
}

// elem is an element type: the patterns without sign of its largest finite
// number and of the largest that is packed as it is.
type elem struct {
	name          string
	finite, limit uint32
}

var (
	f16  = elem{"F16", 0x7bff, 0x7bfd}
	bf16 = elem{"BF16", 0x7f7f, 0x7f7e}
)

// Bits of float32 numbers.
const (
	one       = 0x3f800000
	maxByte   = 0x42fe0000 // 127
	minF16    = 0x33800000 // 2^-24
	minBF16   = 0x0080     // 2^-126 as bf16
	groupElem = 64
)

// writer writes functions. It keeps the cursors of the one at hand.
type writer struct {
	*build.Context
	order          operand.Mem
	scales, q, raw operand.Mem
	left           reg.Register // bytes of q
	past           bool         // stores go past the caches
}

// open begins a function over whole groups.
func (g *writer) open(name, signature, doc string) {
	g.Function(name)
	g.Attributes(1 << 2) // NOSPLIT
	g.SignatureExpr(signature)
	g.Doc(name+" "+doc, "The slices hold whole groups; it needs AVX2 and F16C.")
	g.Pragma("noescape")
	at := func(param string) operand.Mem {
		return operand.Mem{Base: g.Load(g.Param(param).Base(), g.GP64())}
	}
	g.scales, g.q, g.raw = at("scales"), at("q"), at("raw")
	g.left = g.Load(g.Param("q").Len(), g.GP64())
}

// name is a function's name for an element type.
func (g *writer) name(what string, t elem) string {
	if g.past {
		what += "Past"
	}
	return what + "AVX2" + t.name
}

// move stores a register at to. Past the caches, what is there before isn't
// read, as it would be by a plain store.
func (g *writer) move(y reg.VecVirtual, to operand.Mem) {
	if g.past {
		g.VMOVNTDQ(y, to)
	} else {
		g.VMOVDQU(y, to)
	}
}

// done ends a function. What went past the caches is ordered before all later
// stores.
func (g *writer) done() {
	if g.past {
		g.SFENCE()
	}
	g.VZEROUPPER()
	g.RET()
}

// aligned writes the test of what stores past the caches need.
func (g *writer) aligned() {
	g.Function("aligned")
	g.Attributes(1 << 2) // NOSPLIT
	g.SignatureExpr("func(b []byte) bool")
	g.Doc("aligned tells whether b begins at a multiple of 32 bytes.")
	g.Pragma("noescape")
	at, yes := g.Load(g.Param("b").Base(), g.GP64()), g.GP8()
	g.TESTQ(operand.U32(31), at)
	g.SETEQ(yes)
	g.Store(yes, g.ReturnIndex(0))
	g.RET()
}

// next moves the cursors by some groups.
func (g *writer) next(groups uint32) {
	g.ADDQ(operand.U8(2*groups), g.scales.Base)
	g.ADDQ(operand.U32(groups*groupElem), g.q.Base)
	g.ADDQ(operand.U32(groups*2*groupElem), g.raw.Base)
	g.SUBQ(operand.U32(groups*groupElem), g.left)
}

// float is a register that holds one float32.
func (g *writer) float(bits uint32) reg.VecVirtual {
	r, x := g.GP32(), g.XMM()
	g.MOVL(operand.U32(bits), r)
	g.VMOVD(r, x)
	return x
}

// words and longs are registers full of one 16-bit or 32-bit number.
func (g *writer) words(v uint32) reg.VecVirtual { return g.longs(v | v<<16) }

func (g *writer) longs(v uint32) reg.VecVirtual {
	y := g.YMM()
	g.VPBROADCASTD(g.float(v), y)
	return y
}
