package tiertest

const (
	// fakeBytes is the room of a Fake by default.
	fakeBytes = 1 << 30
	// maxBlockBytes is the longest block that Make makes.
	maxBlockBytes = 1 << 30
)
