package main

import (
	op "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// order undoes what packing in 128-bit halves does to 32-bit lanes that were
// widened 8 elements at a time.
var order = [8]uint32{0, 4, 1, 5, 2, 6, 3, 7}

// packer writes a packer and keeps the registers that hold constants.
type packer struct {
	*writer
	t                           elem
	sign, c127, c1, floor, perm reg.VecVirtual
	zero                        reg.VecVirtual
}

// pack writes a packer. Eight groups at a time find their scales together;
// what is left, and groups with elements that can't be packed as they are, go
// one by one.
func (w *writer) pack(t elem) {
	w.open(w.name("pack", t), "func(scales, q, raw []byte)", "is packPlain"+t.name+".")
	g := packer{writer: w, t: t, sign: w.words(0x7fff), c127: w.longs(maxByte), c1: w.longs(one), perm: w.YMM()}
	if t == f16 {
		g.floor = w.longs(minF16)
		g.VMOVDQU(g.order, g.perm)
	} else {
		g.zero = w.YMM()
		g.VPXOR(g.zero, g.zero, g.zero)
	}
	g.Label("block")
	g.CMPQ(g.left, op.U32(blockGroups*groupElem))
	g.JCS(op.LabelRef("single"))
	g.block()
	g.next(blockGroups)
	g.JNZ(op.LabelRef("block"))
	g.done()

	g.Label("single")
	g.single()
	g.next(1)
	g.JNZ(op.LabelRef("block"))
	g.done()
}

// single packs a group that is held in four registers of 16 elements.
func (g *packer) single() {
	var x [4]reg.VecVirtual
	for i := range x {
		x[i] = g.YMM()
		g.VMOVDQU(g.raw.Offset(32*i), x[i])
	}
	g.Label("again")
	top := g.GP32()
	m := g.magnitude(x[0], x[1], x[2], x[3])
	g.VMOVD(m, top)
	g.ANDL(op.U32(0x7fff), top)
	g.XORL(op.U32(0x7fff), top)
	g.CMPL(top, op.U32(g.t.limit))
	g.JLS(op.LabelRef("tamed"))
	g.tame(x)
	g.JMP(op.LabelRef("again"))

	g.Label("tamed")
	inv := g.YMM()
	if g.t == f16 {
		g.VBROADCASTSS(g.scaleF16(top), inv)
	} else {
		g.VBROADCASTSS(g.scaleBF16(top), inv)
	}
	g.store(inv, g.q, func(i int) op.Op { return x[i] })
}

// magnitude returns the complement, within 15 bits, of the largest pattern
// without its sign in the lowest word. There is a horizontal minimum and no
// maximum.
func (g *packer) magnitude(x ...op.Op) reg.VecVirtual {
	a, b := g.YMM(), g.YMM()
	g.VPAND(x[0], g.sign, a)
	for _, v := range x[1:] {
		g.VPAND(v, g.sign, b)
		g.VPMAXUW(b, a, a)
	}
	low := g.XMM()
	g.VEXTRACTI128(op.U8(1), a, b.AsX())
	g.VPMAXUW(b.AsX(), a.AsX(), low)
	g.VPXOR(g.sign.AsX(), low, low)
	g.VPHMINPOSUW(low, low)
	return low
}

// store writes the bytes of a group, whose 16 elements i are at x(i).
func (g *packer) store(inv reg.VecVirtual, q op.Mem, x func(i int) op.Op) {
	for i := 0; i < 4; i += 2 {
		a, b := g.narrow(inv, x(i)), g.narrow(inv, x(i+1))
		g.VPACKSSWB(b, a, a)
		if g.t == f16 {
			g.VPERMD(a, g.perm, a)
		} else {
			g.VPERMQ(op.U8(0xd8), a, a)
		}
		g.move(a, q.Offset(16*i))
	}
}

// narrow makes 16 words of 16 elements. f16 are widened 8 at once; bf16 by
// pairing them with zeros within 128-bit halves, which packing undoes.
func (g *packer) narrow(inv reg.VecVirtual, x op.Op) reg.VecVirtual {
	low, high := g.YMM(), g.YMM()
	switch mem, inMemory := x.(op.Mem); {
	case g.t == f16 && inMemory:
		g.VCVTPH2PS(mem, low)
		g.VCVTPH2PS(mem.Offset(16), high)
	case g.t == f16:
		g.VEXTRACTI128(op.U8(1), x, high.AsX())
		g.VCVTPH2PS(high.AsX(), high)
		g.VCVTPH2PS(x.(reg.VecVirtual).AsX(), low)
	default:
		g.VPUNPCKHWD(x, g.zero, high)
		g.VPUNPCKLWD(x, g.zero, low)
	}
	for _, v := range []reg.VecVirtual{low, high} {
		g.VMULPS(inv, v, v)
		g.VCVTPS2DQ(v, v)
	}
	g.VPACKSSDW(high, low, low)
	return low
}

// scaleF16 stores the scale and returns its inverse.
func (g *packer) scaleF16(top reg.Register) reg.VecVirtual {
	s, bits := g.XMM(), g.GP32()
	g.VMOVD(top, s)
	g.VCVTPH2PS(s, s)
	g.VDIVSS(g.c127.AsX(), s, s)
	g.VCVTPS2PH(op.U8(2), s, s) // up
	g.VMOVD(s, bits)
	g.MOVW(bits.As16(), g.scales)
	g.VCVTPH2PS(s, s)
	g.VMAXSS(g.floor.AsX(), s, s)
	g.VDIVSS(s, g.c1.AsX(), s)
	return s
}

// scaleBF16 is scaleF16 for bf16.
func (g *packer) scaleBF16(top reg.Register) reg.VecVirtual {
	s, bits, low := g.XMM(), g.GP32(), g.GP32()
	g.MOVL(top, bits)
	g.SHLL(op.U8(16), bits)
	g.VMOVD(bits, s)
	g.VDIVSS(g.c127.AsX(), s, s)
	g.VMOVD(s, bits)
	g.ADDL(op.U32(0xffff), bits)
	g.SHRL(op.U8(16), bits)
	g.MOVL(op.U32(minBF16), low)
	g.CMPL(bits, low)
	g.CMOVLCS(low, bits)
	g.MOVL(bits, low)
	g.SHLL(op.U8(16), low)
	g.VMOVD(low, s)
	g.VDIVSS(s, g.c1.AsX(), s)
	g.XORL(low, low)
	g.TESTL(top, top)
	g.CMOVLEQ(low, bits)
	g.MOVW(bits.As16(), g.scales)
	return s
}

// tame replaces what can't be packed.
func (g *packer) tame(x [4]reg.VecVirtual) {
	finite, limit := g.words(g.t.finite), g.words(g.t.limit)
	for _, v := range x {
		a, wild := g.YMM(), g.YMM()
		g.VPAND(g.sign, v, a)
		g.VPANDN(v, g.sign, v) // the signs
		g.VPCMPGTW(finite, a, wild)
		g.VPANDN(a, wild, a)
		g.VPMINUW(limit, a, a)
		g.VPOR(a, v, v)
	}
}
