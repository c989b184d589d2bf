package bench

import (
	"context"
	"fmt"

	"ieg/bench/load"
	"ieg/bench/report"
)

// sampling: what drawing by temperature and by a schema costs 16 streams.
func sampling(ctx context.Context, e *Env) ([]report.Row, error) {
	const n, out = 16, 48
	srv, c, err := e.ours(ctx, shape{slots: n, context: 512})
	if err != nil {
		return nil, err
	}
	defer srv.Stop()
	rows := []report.Row{
		{Name: "top-p-16", Unit: "×", Bound: 0.97, Better: report.Higher, Against: "ours greedy"},
		{Name: "json-schema-16", Unit: "×", Bound: 0.90, Better: report.Higher, Against: "ours greedy, free text"},
	}
	variant := func(seed int, extra load.Body) (float64, error) {
		bodies := make([]load.Body, n)
		for i := range bodies {
			bodies[i] = chat("", "Describe a person: "+prose(uint64(seed*100+i), 24), out)
			for k, v := range extra {
				bodies[i][k] = v
			}
		}
		return decodeRate(c.All(ctx, "/v1/chat/completions", bodies))
	}
	var topP, schema []float64
	for round := range e.short() {
		greedy, err := variant(round, nil)
		if err != nil {
			return rows, err
		}
		drawn, err := variant(round, load.Body{"temperature": 1, "top_p": 0.95, "top_k": 0, "seed": 7})
		if err != nil {
			return rows, err
		}
		bound, err := variant(round, load.Body{"ignore_eos": false, "response_format": personSchema})
		if err != nil {
			return rows, err
		}
		again, err := variant(round, nil)
		if err != nil {
			return rows, err
		}
		greedy = (greedy + again) / 2
		topP, schema = append(topP, drawn/greedy), append(schema, bound/greedy)
		rows[0].Detail = fmt.Sprintf("%.1f against %.1f tokens/s in the last round", drawn, greedy)
		rows[1].Detail = fmt.Sprintf("%.1f against %.1f tokens/s in the last round", bound, greedy)
		e.logf("      round %d: greedy %.1f, top-p %.1f, schema %.1f tokens/s", round, greedy, drawn, bound)
	}
	rows[0].Measure(topP)
	rows[1].Measure(schema)
	return rows, nil
}

// personSchema keeps a model writing for longer than the measured output.
var personSchema = load.Body{"type": "json_schema", "json_schema": load.Body{"name": "person", "schema": load.Body{
	"type": "object", "additionalProperties": false,
	"required": []string{"name", "age", "story", "friends"},
	"properties": load.Body{
		"name":    load.Body{"type": "string", "minLength": 4, "maxLength": 40},
		"age":     load.Body{"type": "integer"},
		"story":   load.Body{"type": "string", "minLength": 200, "maxLength": 2000},
		"friends": load.Body{"type": "array", "minItems": 3, "items": load.Body{"type": "string", "maxLength": 40}},
	},
}}}
