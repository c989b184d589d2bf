// Package devicestest holds whole machines as data, for tests of what looks at
// machines: a small virtual machine, a server with two sockets, a GPU box,
// containers with limits of both versions of control groups, and a broken
// driver.
//
// Each is a devices.Source; edit its Root (a fstest.MapFS) to make a variant.
package devicestest
