// Command ieg serves language models on one host and is its own client.
//
// "ieg up" is the node; every other command speaks to it through the admin
// socket or, for chat, through the HTTP API. The composition root of the node
// is up.go.
//
// # Exit codes
//
//	0    done
//	1    failed
//	2    wrong usage or configuration
//	3    no node is running
//	4    refused: already running, busy, draining, not permitted
//	5    not found: no such model, request or segment
//	130  interrupted
package main
