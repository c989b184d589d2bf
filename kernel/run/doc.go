// Package run gives the machine of package kernel a clock and hands: one
// goroutine takes facts from a bounded inbox, applies them, and carries out
// what the machine wants done. It is the only place where decisions meet
// action; the small interfaces it needs are declared here and plugged in by
// the program.
//
// Order promised: facts are applied in the order in which they were posted.
// Results of one sequence reach its sink in order, each before its Finish.
// Sinks are called from the loop's goroutine only and must not block; only a
// request that comes when the loop ends may get its Finish from the goroutine
// that submits it.
//
// Locks: the loop's goroutine owns the machine; readers get published copies.
package run
