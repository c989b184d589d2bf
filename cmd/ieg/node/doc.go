// Package node joins the loop of the kernel, the supervised engines and the
// doors of one host.
//
// It owns the table of models: which engine number stands for which model,
// what was asked to be loaded, the child that runs it, and what the child last
// said of itself. It turns the children's notes into events of the kernel, the
// kernel's Loads and Unloads into children, and answers what api/openai and
// api/admin ask for. It decides nothing about requests, and it opens no
// socket: the composition root in cmd/ieg does.
//
// Order: events of one engine reach the kernel in the order of its notes. A
// model is in the table before its engine is in the kernel, and leaves it
// after.
//
// Locks: Node.mu guards the table and is held for map and slice work only,
// never while an event is posted, a child is called or a file is read. The
// loop may take it; nobody who holds it may wait for the loop.
package node
