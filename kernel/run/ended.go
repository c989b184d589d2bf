package run

// Done is closed when the loop has ended.
func (l *Loop) Done() <-chan struct{} { return l.done }
