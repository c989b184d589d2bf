package llamax

// Limits of the captured log.
const (
	// logLines is the number of error and warning lines kept.
	logLines = 8
	// logLineBytes bounds one kept line; longer ones are cut.
	logLineBytes = 400
)

// Limits of looking into the library's objects.
const (
	// viewDepth bounds a chain of views of views.
	viewDepth = 16
	// contextHead is the part of a context in which its callback is looked
	// for; the parameters stand at its beginning.
	contextHead = 512
)
