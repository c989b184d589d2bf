package cuda

// textBytes bounds a text of the driver.
const textBytes = 256
