package nvml

const (
	// maxDevices bounds the devices listed.
	maxDevices = 64
	// maxLinks is the most NVLinks of a device.
	maxLinks = 36
)
