package events

import "testing"

func TestParseEndpoint(t *testing.T) {
	for text, want := range map[string]Endpoint{
		"tcp://127.0.0.1:5557":                 {Publish: "127.0.0.1:5557"},
		"tcp://:5557":                          {Publish: "127.0.0.1:5557"},
		"tcp://*:5557?replay=5558":             {Publish: ":5557", Replay: ":5558"},
		"tcp://[::1]:0?events=arrays&replay=0": {Publish: "[::1]:0", Replay: "[::1]:0", Form: Arrays},
		"tcp://node-7.local:5557?events=maps":  {Publish: "node-7.local:5557"},
		"":                                     {},
		"5557":                                 {},
		"127.0.0.1:5557":                       {},
		"tcp://127.0.0.1":                      {},
		"tcp://127.0.0.1:99999":                {},
		"tcp://127.0.0.1:5557/kv":              {},
		"tcp://me@127.0.0.1:5557":              {},
		"ipc:///tmp/kv":                        {},
		"tcp://127.0.0.1:5557?replay=tcp://*:5558":     {},
		"tcp://127.0.0.1:5557?replay=":                 {},
		"tcp://127.0.0.1:5557?events=protobuf":         {},
		"tcp://127.0.0.1:5557?topic=kv":                {},
		"tcp://127.0.0.1:5557?replay=5558;events=maps": {},
	} {
		got, err := ParseEndpoint(text)
		if want == (Endpoint{}) {
			if err == nil {
				t.Errorf("%q is accepted: %+v", text, got)
			}
		} else if err != nil || got != want {
			t.Errorf("%q: %+v, %v; want %+v", text, got, err, want)
		}
	}
}
