package main

import (
	op "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// unpack writes an unpacker.
func (g *writer) unpack(t elem) {
	g.open(g.name("unpack", t), "func(raw, scales, q []byte)", "is unpackPlain"+t.name+".")
	var odd, half reg.VecVirtual
	if t == bf16 {
		odd, half = g.longs(1), g.longs(0x7fff)
	}
	zero := g.GP32()
	g.XORL(zero, zero)

	g.Label("group")
	scale := g.scale(t, zero)
	for i := 0; i < groupElem; i += 16 {
		a, b := g.product(scale, i), g.product(scale, i+8)
		switch {
		case t == bf16:
			g.nearest(a, odd, half)
			g.nearest(b, odd, half)
			g.VPACKUSDW(b, a, a)
			g.VPERMQ(op.U8(0xd8), a, a)
			g.move(a, g.raw.Offset(2*i))
		case g.past:
			g.VCVTPS2PH(op.U8(0), a, a.AsX())
			g.VCVTPS2PH(op.U8(0), b, b.AsX())
			g.VINSERTI128(op.U8(1), b.AsX(), a, a)
			g.move(a, g.raw.Offset(2*i))
		default:
			g.VCVTPS2PH(op.U8(0), a, g.raw.Offset(2*i))
			g.VCVTPS2PH(op.U8(0), b, g.raw.Offset(2*i+16))
		}
	}
	g.next(1)
	g.JNZ(op.LabelRef("group"))
	g.done()
}

// scale is the group's scale in each lane, 0 if it is not finite.
func (g *writer) scale(t elem, zero reg.Register) reg.VecVirtual {
	bits, size, y := g.GP32(), g.GP32(), g.YMM()
	g.MOVWLZX(g.scales, bits)
	g.MOVL(bits, size)
	g.ANDL(op.U32(0x7fff), size)
	g.CMPL(size, op.U32(t.finite))
	g.CMOVLHI(zero, bits)
	if t == bf16 {
		g.SHLL(op.U8(16), bits)
	}
	g.VMOVD(bits, y.AsX())
	if t == f16 {
		g.VCVTPH2PS(y.AsX(), y.AsX())
	}
	g.VBROADCASTSS(y.AsX(), y)
	return y
}

// product is 8 elements from i on as float32.
func (g *writer) product(scale reg.VecVirtual, i int) reg.VecVirtual {
	y := g.YMM()
	g.VPMOVSXBD(g.q.Offset(i), y)
	g.VCVTDQ2PS(y, y)
	g.VMULPS(scale, y, y)
	return y
}

// nearest rounds to the nearest even bf16, in the low half of each lane.
func (g *writer) nearest(y, odd, half reg.VecVirtual) {
	t := g.YMM()
	g.VPSRLD(op.U8(16), y, t)
	g.VPAND(odd, t, t)
	g.VPADDD(half, t, t)
	g.VPADDD(t, y, y)
	g.VPSRLD(op.U8(16), y, y)
}
