package nvml

const (
	// maxDevices bounds the devices listed.
	maxDevices = 64
	// maxLinks is the most NVLinks of a device.
	maxLinks = 36
	// textBytes bounds a name, an id or a version.
	textBytes = 96
)
