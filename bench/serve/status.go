package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"

	"ieg"
)

// Status asks a node's admin socket for what it published last.
func Status(ctx context.Context, socket string) (ieg.Status, error) {
	var st ieg.Status
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://ieg/v1/status", nil)
	if err != nil {
		return st, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return st, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return st, fmt.Errorf("the admin socket answers %s", resp.Status)
	}
	return st, json.NewDecoder(resp.Body).Decode(&st)
}
