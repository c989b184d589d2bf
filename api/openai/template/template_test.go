package template

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
)

var controls = map[string][]string{
	"smollm":   {"<|im_start|>", "<|im_end|>", "<|endoftext|>"},
	"qwen":     {"<|im_start|>", "<|im_end|>", "<|endoftext|>"},
	"chatml":   {"<|im_start|>", "<|im_end|>"},
	"gemma":    {"<bos>", "<eos>", "<pad>", "<start_of_turn>", "<end_of_turn>"},
	"llama":    {"<|begin_of_text|>", "<|eot_id|>", "<|start_header_id|>", "<|end_header_id|>", "<|python_tag|>"},
	"mistral":  {"<s>", "</s>", "[INST]", "[/INST]", "[TOOL_CALLS]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]"},
	"deepseek": {"<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜User｜>", "<｜Assistant｜>", "<｜tool▁calls▁begin｜>", "<｜tool▁sep｜>"},
}

var ends = map[string][2]string{
	"gemma": {"<bos>", "<eos>"}, "llama": {"<|begin_of_text|>", "<|eot_id|>"},
	"mistral": {"<s>", "</s>"}, "deepseek": {"<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"},
}

func load(t testing.TB, name string) *Template {
	t.Helper()
	src := ""
	if name != "chatml" {
		b, err := os.ReadFile("testdata/" + name + ".jinja")
		if err != nil {
			t.Fatal(err)
		}
		src = string(b)
	}
	tmpl, err := Compile(src, controls[name])
	if err != nil {
		t.Fatal(err)
	}
	return tmpl
}

// TestGolden renders chats; "¦" shows where the prompt is cut into parts.
func TestGolden(t *testing.T) {
	datadriven.RunTest(t, "testdata/render.txt", func(t *testing.T, d *datadriven.TestData) string {
		var name string
		d.ScanArgs(t, "t", &name)
		tmpl := load(t, name)
		if d.Cmd == "abilities" {
			return fmt.Sprintf("native tools %v, system %v, object arguments %v, null content %v\n",
				tmpl.native, tmpl.system, tmpl.objectArgs, tmpl.nullContent)
		}
		var in Input
		if err := json.Unmarshal([]byte(d.Input), &in); err != nil {
			t.Fatalf("%s: %v", d.Pos, err)
		}
		in.BOS, in.EOS = ends[name][0], ends[name][1]
		in.Now = time.Date(2024, 7, 26, 0, 0, 0, 0, time.UTC)
		in.Generate = !in.Continue
		parts, err := tmpl.Render(in)
		if err != nil {
			return "error: " + err.Error() + "\n"
		}
		var b strings.Builder
		for i, p := range parts {
			if i > 0 {
				b.WriteString("¦")
			}
			b.WriteString(p.Text)
		}
		return strings.ReplaceAll(b.String(), "\n", "⏎\n") + "$\n"
	})
}
