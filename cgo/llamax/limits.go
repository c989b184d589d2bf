package llamax

// Limits of the captured log.
const (
	// logLines is the number of error and warning lines kept.
	logLines = 8
	// logLineBytes bounds one kept line; longer ones are cut.
	logLineBytes = 400
)
