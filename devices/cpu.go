package devices

import (
	"path"
	"slices"
	"strconv"
	"strings"
)

// CPU is the processor and what of it this process may use.
type CPU struct {
	Model, Vendor string
	Online        int // logical processors of the machine
	Physical      int // cores of the machine, 0 if not told
	Allowed       int // those that affinity and cpuset leave
	// Quota is the cores' time that the control group grants, such as 1.5;
	// 0: all of it.
	Quota float64
	// Granted is the number of threads that can run all the time: Allowed, or
	// Quota rounded down, at least 1.
	Granted int
	Flags   []string // instruction sets, as Linux names them
}

// Has tells whether the processor has an instruction set.
func (c *CPU) Has(flag string) bool { return slices.Contains(c.Flags, flag) }

func (t tree) cpu(groups map[string]group) CPU {
	var c CPU
	processors := 0
	cores := map[string]bool{}
	socket := ""
	t.fields("proc/cpuinfo", ":", func(key, value string) {
		switch key {
		case "processor":
			processors++
		case "vendor_id", "CPU implementer":
			c.Vendor = vendorName(value)
		case "model name":
			c.Model = value
		case "physical id":
			socket = value
		case "core id":
			cores[socket+"/"+value] = true
		case "flags", "Features":
			if c.Flags == nil {
				c.Flags = strings.Fields(value)
			}
		}
	})
	if c.Model == "" {
		c.Model = "unknown processor"
	}
	c.Physical = len(cores)
	c.Online = max(processors, 1)
	if n, ok := countList(t.text("sys/devices/system/cpu/online")); ok {
		c.Online = n
	}
	c.Allowed = c.Online
	t.fields("proc/self/status", ":", func(key, value string) {
		if n, ok := countList(value); ok && key == "Cpus_allowed_list" {
			c.Allowed = min(c.Allowed, n)
		}
	})
	c.Allowed = min(c.Allowed, t.cpuset(groups))
	c.Quota = t.quota(groups)
	c.Granted = c.Allowed
	if c.Quota > 0 {
		c.Granted = min(c.Granted, int(c.Quota))
	}
	c.Granted = max(c.Granted, 1)
	return c
}

func vendorName(id string) string {
	switch id {
	case "AuthenticAMD":
		return "AMD"
	case "GenuineIntel":
		return "Intel"
	case "0x41":
		return "ARM"
	}
	return id
}

// cpuset is the number of processors that the control groups allow.
func (t tree) cpuset(groups map[string]group) int {
	n := 1 << 30
	for controller, file := range map[string]string{"": "cpuset.cpus.effective", "cpuset": "cpuset.effective_cpus"} {
		for _, dir := range groups[controller] {
			if k, ok := countList(t.text(path.Join(dir, file))); ok {
				n = min(n, k)
			}
		}
	}
	return n
}

// quota is the least of the quotas from the process's group upwards, in cores;
// 0: none.
func (t tree) quota(groups map[string]group) float64 {
	least := 0.0
	take := func(quota, period float64) {
		if quota > 0 && period > 0 && (least == 0 || quota/period < least) {
			least = quota / period
		}
	}
	for _, dir := range groups[""] {
		f := strings.Fields(t.text(path.Join(dir, "cpu.max")))
		if len(f) == 2 {
			q, _ := strconv.ParseFloat(f[0], 64) // "max" gives 0: no quota
			p, _ := strconv.ParseFloat(f[1], 64)
			take(q, p)
		}
	}
	for _, dir := range groups["cpu"] {
		q, _ := t.number(path.Join(dir, "cpu.cfs_quota_us"))
		p, _ := t.number(path.Join(dir, "cpu.cfs_period_us"))
		take(float64(q), float64(p))
	}
	return least
}

// precisions are the number formats that the CPU backend of ggml computes
// with; those without own instructions are widened.
func (c *CPU) precisions() []string {
	list := []string{"fp32", "fp16", "int8"}
	if c.Has("avx512_bf16") || c.Has("amx_bf16") || c.Has("bf16") {
		list = append(list, "bf16")
	}
	return list
}

// widths names the vector instructions, the widest first.
func (c *CPU) widths() []string {
	var list []string
	for _, w := range [...]struct{ flag, name string }{
		{"amx_int8", "AMX"}, {"avx512_bf16", "AVX-512 BF16"}, {"avx512_vnni", "AVX-512 VNNI"}, {"avx512f", "AVX-512"},
		{"avx2", "AVX2"}, {"sve", "SVE"}, {"asimd", "NEON"},
	} {
		if c.Has(w.flag) {
			list = append(list, w.name)
		}
	}
	if list == nil {
		list = []string{"no vector instructions that the engine uses"}
	}
	return list
}
