package llama

import (
	"fmt"
	"os"
	"testing"
	"time"

	yz "github.com/hybridgroup/yzma/pkg/llama"
	"ieg/cgo/llamax"
)

type xb struct {
	tok []yz.Token; pos []yz.Pos; seq []yz.SeqId; out []int8; ns []int32; ps []*yz.SeqId; n int
}
func nb(n int) *xb { b := &xb{make([]yz.Token,n),make([]yz.Pos,n),make([]yz.SeqId,n),make([]int8,n),make([]int32,n),make([]*yz.SeqId,n+1),0}
 for i:=range n { b.ns[i]=1; b.ps[i]=&b.seq[i] }; return b }
func (b *xb) add(t yz.Token,p int,s int,o bool) { i:=b.n; b.tok[i],b.pos[i],b.seq[i],b.out[i]=t,yz.Pos(p),yz.SeqId(s),0; if o {b.out[i]=1}; b.n++ }
func (b *xb) dec(c yz.Context) int32 { r,_ := yz.Decode(c, yz.Batch{BatchData: yz.BatchData{NTokens:int32(b.n),Token:&b.tok[0],Pos:&b.pos[0],NSeqId:&b.ns[0],SeqId:&b.ps[0],Logits:&b.out[0]}}); return r }

func TestExp(t *testing.T) {
	home,_ := os.UserCacheDir()
	l, err := openLibrary(home+"/ieg/lib/linux-x64-cpu-v0.5.0")
	if err != nil { t.Fatal(err) }
	mp := yz.ModelDefaultParams(); mp.SetCPUOnly()
	t0 := time.Now()
	m, err := yz.ModelLoadFromFile(home+"/ieg/models/SmolLM2-135M-Instruct.Q4_1.gguf", mp)
	if err != nil { t.Fatal(err, l.log.Take()) }
	fmt.Println("load", time.Since(t0), l.x.Version())
	mk := func(slots, ctx, th int, uni uint8, fa yz.FlashAttentionType) (yz.Context, yz.Memory, yz.Threadpool) {
		p := yz.ContextDefaultParams()
		p.NCtx = uint32(slots*ctx); p.NSeqMax=uint32(slots); p.NBatch=512; p.NUbatch=512; p.NThreads=int32(th); p.NThreadsBatch=int32(th)
		p.KVUnified = uni; p.FlashAttentionType = fa; p.SwaFull=1; p.NoPerf=1
		t0 := time.Now()
		c, err := yz.InitFromModel(m, p)
		if err != nil { t.Fatal(err, l.log.Take()) }
		d0 := time.Since(t0)
		tp := yz.ThreadpoolParamsDefault(int32(th))
		pool, err := yz.ThreadpoolNew(&tp); if err != nil { t.Fatal(err) }
		yz.AttachThreadpool(c, uintptr(pool), uintptr(pool))
		mem,_ := yz.GetMemory(c)
		fmt.Println("ctx", slots, ctx, "uni", uni, "fa", fa, d0)
		return c, mem, pool
	}
	th := 2; if os.Getenv("TH")!="" { th = 1 }
	// gaps
	for _, uni := range []uint8{0,1} {
		c, mem, pool := mk(8, 1024, th, uni, 1)
		b := nb(512)
		for s := range 8 { b.n=0; for i:=range 256 { b.add(yz.Token(100+i+s),i,s,i==255) }; t0:=time.Now(); b.dec(c); if s==0||s==7 {fmt.Println("prefill 256 at slot", s, time.Since(t0))} }
		lens := [8]int{256,256,256,256,256,256,256,256}
		run := func(name string, slots []int, dummy []int) {
			best := time.Hour; var sum time.Duration
			for r := range 30 {
				b.n=0
				all := map[int]bool{}
				for _,s := range slots { all[s]=true }
				dm := map[int]bool{}
				for _,s := range dummy { dm[s]=true }
				for s := range 8 { if all[s] { b.add(yz.Token(500+r),lens[s],s,true); lens[s]++ } else if dm[s] { b.add(1,lens[s],s,false) } }
				t0 := time.Now(); if x:=b.dec(c); x!=0 { t.Fatal(x) }
				l.x.Logits(uintptr(c), len(slots), 49152)
				for s := range dm { yz.MemorySeqRm(mem, yz.SeqId(s), yz.Pos(lens[s]), -1) }
				d := time.Since(t0); sum+=d; if d<best {best=d}
			}
			fmt.Printf("uni %d %-24s best %v mean %v\n", uni, name, best, sum/30)
		}
		run("{0}", []int{0}, nil)
		run("{0,1}", []int{0,1}, nil)
		run("{0,1,2}", []int{0,1,2}, nil)
		run("{0,1,2,3}", []int{0,1,2,3}, nil)
		run("{0,2,4,6}", []int{0,2,4,6}, nil)
		run("{0,2,4,6}+dummies", []int{0,2,4,6}, []int{1,3,5})
		run("{0,7}", []int{0,7}, nil)
		run("{0,2}", []int{0,2}, nil)
		run("{0,2}+d", []int{0,2}, []int{1})
		run("{0..6}", []int{0,1,2,3,4,5,6}, nil)
		run("{0,1,2,4,5,6,7}", []int{0,1,2,4,5,6,7}, nil)
		run("{0,1,2,4,5,6,7}+d", []int{0,1,2,4,5,6,7}, []int{3})
		run("{0..7}", []int{0,1,2,3,4,5,6,7}, nil)
		run("{0,1,2,4,5,6}", []int{0,1,2,4,5,6}, nil)
		run("{0,1,2,4,5,6}+d", []int{0,1,2,4,5,6}, []int{3})
		yz.Free(c); yz.ThreadpoolFree(pool)
	}
	// copies
	for _, cs := range []int{1024, 4096} {
		c, mem, pool := mk(4, cs, th, 0, 1)
		b := nb(512)
		for k := range 2 { b.n=0; for i:=range 500 { b.add(yz.Token(100+i),k*500+i,0,i==499) }; b.dec(c) }
		b.n=0; b.add(7, 0, 3, true); b.dec(c)
		t0 := time.Now(); yz.MemorySeqCp(mem, 0, 1, -1, -1); d1 := time.Since(t0)
		yz.MemorySeqRm(mem, 1, 900, -1)
		b.n=0; b.add(7, 1, 3, true); t0=time.Now(); b.dec(c); d2 := time.Since(t0)
		b.n=0; b.add(7, 2, 3, true); t0=time.Now(); b.dec(c); d3 := time.Since(t0)
		n := yz.StateSeqGetSize(c, 0); buf := make([]byte, n)
		t0=time.Now(); yz.StateSeqGetData(c, buf, 0); d4 := time.Since(t0)
		t0=time.Now(); r := yz.StateSeqSetData(c, buf, 2); d5 := time.Since(t0)
		t0=time.Now(); r = yz.StateSeqSetData(c, buf, 2); d6 := time.Since(t0)
		fmt.Println("ctx", cs, "cp call", d1, "decode with copy", d2, "plain", d3, "export", n, d4, "import", d5, d6, r)
		// abort
		f := llamax.NewFlag(); l.x.AbortOn(uintptr(c), f)
		b.n=0; for i:=range 24 { b.add(yz.Token(100+i),3+i,3,false) }
		go func(){ time.Sleep(20*time.Millisecond); f.Set() }()
		b.n=0; for i:=range 512 { b.add(yz.Token(100+i),3+i,3,false) }
		t0=time.Now(); rr := b.dec(c); fmt.Println("abort", rr, time.Since(t0)); f.Clear()
		pm,_ := yz.MemorySeqPosMax(mem, 3); fmt.Println("posmax 3", pm)
		yz.Free(c); yz.ThreadpoolFree(pool)
	}
	_ = mk
	for _, cs := range []int{2048, 8192} {
	c, _, pool := mk(16, cs, th, 0, 1); yz.Free(c); yz.ThreadpoolFree(pool)
	}
}
