package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"ieg"
	"ieg/api/admin"
)

// printKV draws the tiers.
func printKV(w io.Writer, t *admin.KVTiers) {
	_ = table(w, tierRows(t))
	for _, n := range t.Host.Notes {
		fmt.Fprintf(w, "  host: %s\n", n)
	}
	fmt.Fprintln(w, "\nprompt tokens, by where their KV came from")
	_ = table(w, tokenRows(t.Tokens))
	c := &t.Kernel.Counts
	fmt.Fprintln(w)
	rows := [][]string{{"speed", speeds(t)}}
	if c.LongestCopy > 0 {
		rows = append(rows, []string{"longest copy", span(c.LongestCopy) + " beside streams, " + span(c.LongestRun) + " of processor time"})
	}
	rows = append(rows,
		[]string{"device → host", moved(c.Saves, "block", c.SavedBytes)}, []string{"host → device", moved(c.Loads, "time", c.LoadedBytes)},
		[]string{"host → nvme", moved(c.Stores, "block", c.StoredBytes)}, []string{"nvme → host", moved(c.Fetches, "block", c.FetchedBytes)},
		[]string{"not done", undone(t)})
	if c.Diverged > 0 {
		rows = append(rows, []string{"left behind", count(c.Diverged, "token") + " of blocks that texts begin alike and then leave"})
	}
	if t.Kernel.Moves+t.Kernel.Queued > 0 {
		rows = append(rows, []string{"under way", fmt.Sprintf("%s, %d more wait", count(int64(t.Kernel.Moves), "move"), t.Kernel.Queued)})
	}
	_ = table(w, rows)
}

// triedAgain tells a tier that is down from one that is off.
const triedAgain = "it is tried again by itself"

func tierRows(t *admin.KVTiers) [][]string {
	rows := [][]string{{"TIER", "MODEL", "FILL", "", "NOTE"}}
	add := func(tier, of string, part, whole float64, fill, note string) {
		rows = append(rows, []string{tier, of, fill, bar(part, whole, KVBarCells), note})
	}
	for _, e := range t.Engines {
		if m := &e.Info.Model; m.Embedding && !m.Generative && e.Info.KVToken == 0 {
			add("device", m.Name, 0, 0, "–", "an embedding model: it keeps no KV")
			continue
		}
		note := fmt.Sprintf("%d in use, %d kept", e.CellsUsed, e.CellsIdle)
		if leave := leaves(e.Info.KVToken, e.Info.KVNote); e.State == ieg.EngineUp && e.Info.KVToken == 0 {
			note += "; " + leave
		}
		used := e.CellsUsed + e.CellsIdle
		add("device", e.Info.Model.Name, float64(used), float64(e.Info.Cells), fmt.Sprintf("%d of %d tokens", used, e.Info.Cells), note)
	}
	if k := &t.Kernel; t.Host.Off != "" {
		add("host", "", 0, 0, "off", t.Host.Off)
	} else {
		used := int64(k.Pages-k.FreePages) * k.PageBytes
		add("host", "", float64(used), float64(t.Host.Bytes), size(used)+" of "+size(t.Host.Bytes), count(int64(k.Blocks), "block")+", "+count(int64(k.Leases[2]), "pin"))
	}
	n := &t.NVMe
	switch n.State {
	case admin.NVMeOff, admin.NVMeOpening:
		add("nvme", "", 0, 0, n.State, n.Why)
	case admin.NVMeDown:
		add("nvme", "", 0, 0, n.State, n.Why+"; "+triedAgain)
	default:
		note := fmt.Sprintf("%s; %s of the disk free; %s written within a day", count(int64(n.Blocks), "block"), size(n.Free), size(n.WrittenToday))
		if n.Encrypted {
			note += "; encrypted"
		}
		if n.Why != "" {
			note += "; " + n.Why
		}
		add("nvme", "", float64(n.Bytes), float64(n.Size), size(n.Bytes)+" of "+size(n.Size), note)
	}
	return rows
}

// leaves tells whether a model's KV can leave its device.
func leaves(token int64, note string) string {
	if token > 0 {
		return size(token) + "/token"
	}
	if note == "" {
		return "stays on the device"
	}
	return "stays on the device: " + note
}

func tokenRows(t admin.KVTokens) (rows [][]string) {
	all := t.Device + t.Host + t.NVMe + t.Computed
	for _, r := range []struct {
		name string
		n    int64
	}{{"device", t.Device}, {"host", t.Host}, {"nvme", t.NVMe}, {"computed", t.Computed}} {
		share := "–"
		if all > 0 {
			share = fmt.Sprintf("%.1f %%", 100*float64(r.n)/float64(all))
		}
		rows = append(rows, []string{"  " + r.name, fmt.Sprint(r.n), share, bar(float64(r.n), float64(all), BarCells)})
	}
	return rows
}

// speeds lists what was measured.
func speeds(t *admin.KVTiers) string {
	var out []string
	for _, e := range t.Engines {
		if e.SaveRate > 0 || e.LoadRate > 0 {
			out = append(out, fmt.Sprintf("%s: save %s/s, load %s/s", e.Info.Model.Name, scaled(e.SaveRate, "B"), scaled(e.LoadRate, "B")))
		}
	}
	if n := t.NVMe; n.Folder != "" {
		measured := func(rate float64) string {
			if rate == 0 {
				return "not measured"
			}
			return scaled(rate, "B") + "/s"
		}
		out = append(out, fmt.Sprintf("nvme: write %s, read %s", measured(n.WriteRate), measured(n.ReadRate)))
	}
	if len(out) == 0 {
		return "–"
	}
	return strings.Join(out, "; ")
}

func moved(n int64, what string, bytes int64) string {
	if n == 0 {
		return "–"
	}
	return count(n, what) + ", " + size(bytes)
}

// count is a number of things.
func count(n int64, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// undone says what was not done, and how often.
func undone(t *admin.KVTiers) string {
	c, n := &t.Kernel.Counts, &t.NVMe
	var out []string
	for _, r := range []struct {
		n    int64
		what string
	}{
		{c.BringsDeclined, "host slower than computing"},
		{c.FetchesDeclined, "nvme slower than computing"},
		{c.FetchesLate, "nvme too late"},
		{c.FetchesFailed, "nvme failed"},
		{c.SavesRefused, "no room in host memory"},
		{c.StoresRefused, "refused by nvme"},
		{t.Kernel.Evicted, "gave way in host memory"},
		{n.Evicted, "gave way in nvme"},
		{c.Corrupt + n.Corrupt, "corrupt"},
	} {
		if r.n > 0 {
			out = append(out, fmt.Sprintf("%d %s", r.n, r.what))
		}
	}
	if len(out) == 0 {
		return "–"
	}
	return strings.Join(out, ", ")
}

// kvLine is the line of 'ieg status'.
func kvLine(t *admin.KVTiers) string {
	if t.Host.Off != "" {
		return "on the devices only: " + t.Host.Off
	}
	used := int64(t.Kernel.Pages-t.Kernel.FreePages) * t.Kernel.PageBytes
	line := fmt.Sprintf("host %s of %s", size(used), size(t.Host.Bytes))
	if n := &t.NVMe; n.Up {
		line += fmt.Sprintf(", nvme %s of %s", size(n.Bytes), size(n.Size))
		if n.Why != "" {
			line += " (" + n.Why + ")"
		}
	} else {
		line += ", nvme " + n.State + ": " + n.Why
		if n.State == admin.NVMeDown {
			line += " (" + triedAgain + ")"
		}
	}
	below := t.Tokens.Host + t.Tokens.NVMe
	if slices.ContainsFunc(t.Engines, func(e ieg.EngineStatus) bool { return e.Info.KVToken > 0 }) && below > 0 {
		line += fmt.Sprintf("; %d tokens brought back", below)
	}
	return line
}
