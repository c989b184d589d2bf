package main

import (
	op "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// blockGroups is the number of groups whose scales fill one register.
const blockGroups = 8

// aheadBlocks is how many blocks ahead of its use raw is fetched.
const aheadBlocks = 2

// block packs eight groups, or leaves for the label "single" if one of them
// has an element that can't be packed as it is. It reads memory twice, the
// second time from the nearest cache: so no group waits for another's scale.
func (g *packer) block() {
	g.ahead()
	tops := g.tops()
	// Complements turn the order: below the limit's, some group is wild.
	wild, flags := g.XMM(), g.GP32()
	g.VPCMPGTW(tops, g.words(0x7fff-g.t.limit).AsX(), wild)
	g.VPMOVMSKB(wild, flags)
	g.TESTL(flags, flags)
	g.JNZ(op.LabelRef("single"))
	g.VPXOR(g.sign.AsX(), tops, tops)

	invs := g.AllocLocal(4 * blockGroups)
	if g.t == f16 {
		g.VMOVUPS(g.scalesF16(tops), invs)
	} else {
		g.VMOVUPS(g.scalesBF16(tops), invs)
	}
	for i := range blockGroups {
		inv := g.YMM()
		g.VBROADCASTSS(invs.Offset(4*i), inv)
		g.store(inv, g.q.Offset(groupElem*i), func(j int) op.Op { return g.part(i, j) })
	}
}

// ahead fetches a block that follows: arithmetic fills the processor's window, so
// that it doesn't see loads far enough ahead by itself. Beyond the end of raw
// this does nothing.
func (g *packer) ahead() {
	const block = blockGroups * 2 * groupElem
	for i := 0; i < block; i += 64 {
		g.PREFETCHT0(g.raw.Offset(aheadBlocks*block + i))
	}
}

// part is the place of the 16 elements j of group i.
func (g *packer) part(i, j int) op.Mem { return g.raw.Offset(2*groupElem*i + 32*j) }

// tops is the magnitudes of eight groups, one in each word.
func (g *packer) tops() reg.VecVirtual {
	var m [blockGroups]reg.VecVirtual
	for i := range m {
		m[i] = g.magnitude(g.part(i, 0), g.part(i, 1), g.part(i, 2), g.part(i, 3))
	}
	for i := 0; i < len(m); i += 2 {
		g.VPUNPCKLWD(m[i+1], m[i], m[i])
	}
	for i := 0; i < len(m); i += 4 {
		g.VPUNPCKLDQ(m[i+2], m[i], m[i])
	}
	g.VPUNPCKLQDQ(m[4], m[0], m[0])
	return m[0]
}

// scalesF16 stores the scales and returns their inverses.
func (g *packer) scalesF16(tops reg.VecVirtual) reg.VecVirtual {
	s := g.YMM()
	g.VCVTPH2PS(tops, s)
	g.VDIVPS(g.c127, s, s)
	g.VCVTPS2PH(op.U8(2), s, s.AsX()) // up
	g.VMOVDQU(s.AsX(), g.scales)
	g.VCVTPH2PS(s.AsX(), s)
	g.VMAXPS(g.floor, s, s)
	g.VDIVPS(s, g.c1, s)
	return s
}

// scalesBF16 is scalesF16 for bf16.
func (g *packer) scalesBF16(tops reg.VecVirtual) reg.VecVirtual {
	s, none, stored := g.YMM(), g.YMM(), g.YMM()
	g.VPMOVZXWD(tops, s)
	g.VPCMPEQD(g.zero, s, none)
	g.VPSLLD(op.U8(16), s, s)
	g.VDIVPS(g.c127, s, s)
	g.VPADDD(g.longs(0xffff), s, s)
	g.VPSRLD(op.U8(16), s, s)
	g.VPMAXUD(g.longs(minBF16), s, s)
	g.VPANDN(s, none, stored)
	g.VPACKUSDW(stored, stored, stored)
	g.VPERMQ(op.U8(0xd8), stored, stored)
	g.VMOVDQU(stored.AsX(), g.scales)
	g.VPSLLD(op.U8(16), s, s)
	g.VDIVPS(s, g.c1, s)
	return s
}
