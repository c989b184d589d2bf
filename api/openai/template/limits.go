package template

// Limits of one prompt.
const (
	// MaxControlBytes is the longest spelling of a control token that is
	// guarded; longer ones are no control tokens of any known model.
	MaxControlBytes = 256
	// markRunes is the number of private-use characters tried as marks.
	markRunes = 256
)
