// Package admin is the node's admin door: HTTP over a Unix socket, its server
// and its client, so that the wire types exist once.
//
// It owns the socket (where it lies, who listens on it, what a stale file is),
// the check of the peer's credentials, the table of routes with the permission
// that each needs, and the JSON of requests, answers and errors. It does not
// decide or hold anything about the node: the small interfaces in node.go are
// what it asks for, and the composition root plugs the node into them.
//
// Who may do what. The kernel of the operating system tells the uid and gid of
// the process at the other end. The uid that runs the node, and root, may do
// everything. Members of the configured group may read and write, but not see
// content of users: flight-recorder segments are redacted for them. Everybody
// else is refused. Requests that look like a browser's (an Origin, a Referer,
// a Sec-Fetch header or a foreign Host) are refused whoever sends them.
//
// Ordering: requests are independent; an answer reflects what the node had
// published when the request was served.
package admin
