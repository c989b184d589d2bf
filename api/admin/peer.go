package admin

import (
	"context"
	"net"
	"net/http"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
)

// permission is what a route needs and what a peer has.
type permission uint8

const (
	read    permission = 1 << iota // look at the node's state
	write                          // change it
	content                        // see what users sent and got
)

// peer is the process at the other end of a connection.
type peer struct {
	uid, gid uint32
	err      error
}

type peerKey struct{}

func withPeer(ctx context.Context, c net.Conn) context.Context {
	var p peer
	cred, err := credentials(c)
	if err != nil {
		p.err = err
	} else {
		p.uid, p.gid = cred.Uid, cred.Gid
	}
	return context.WithValue(ctx, peerKey{}, p)
}

// granted is what the peer of a request may do. gid -1: no group.
func granted(ctx context.Context, gid int) permission {
	p, ok := ctx.Value(peerKey{}).(peer)
	if !ok || p.err != nil {
		return 0
	}
	return p.granted(uint32(os.Geteuid()), gid, inGroup)
}

func (p peer) granted(self uint32, gid int, member func(uid uint32, gid int) bool) permission {
	switch {
	case p.uid == self || p.uid == 0:
		return read | write | content
	case gid >= 0 && (p.gid == uint32(gid) || member(p.uid, gid)):
		return read | write
	}
	return 0
}

func inGroup(uid uint32, gid int) bool {
	u, err := user.LookupId(strconv.FormatUint(uint64(uid), 10))
	if err != nil {
		return false
	}
	ids, err := u.GroupIds()
	return err == nil && slices.Contains(ids, strconv.Itoa(gid))
}

// fromBrowser tells requests that a page in a browser could have caused, by
// way of a proxy that forwards to the socket.
func fromBrowser(r *http.Request) bool {
	for _, h := range []string{"Origin", "Referer", "Sec-Fetch-Site", "Sec-Fetch-Mode", "Cookie"} {
		if r.Header.Get(h) != "" {
			return true
		}
	}
	host := strings.ToLower(r.Host)
	return host != "" && host != hostName && host != "localhost"
}
