/* A driver's library with two devices, for tests: the same answers must come
   through both bindings. Layouts are those of the library's public header. */
#include <string.h>

typedef void *device;
typedef struct { unsigned long long total, free, used; } memory;
typedef struct { unsigned int gpu, memory; } utilization;
typedef struct {
	char legacy[16];
	unsigned int domain, bus, device, deviceID, subSysID;
	char id[32];
} pci;

static int boards[2];

int nvmlInit_v2(void) { return 0; }
int nvmlShutdown(void) { return 0; }
const char *nvmlErrorString(int code) { return "a failure"; }
int nvmlSystemGetDriverVersion(char *to, unsigned int n) { strncpy(to, "570.1", n); return 0; }
int nvmlDeviceGetCount_v2(unsigned int *n) { *n = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned int i, device *d) { *d = &boards[i]; return 0; }

static int index_of(device d) { return (int *)d - boards; }

int nvmlDeviceGetName(device d, char *to, unsigned int n) { strncpy(to, "Stub 1000", n); return 0; }
int nvmlDeviceGetUUID(device d, char *to, unsigned int n) { strncpy(to, index_of(d) ? "GPU-b" : "GPU-a", n); return 0; }
int nvmlDeviceGetPciInfo_v3(device d, pci *p) { strcpy(p->legacy, "old"); strcpy(p->id, "00000000:1B:00.0"); return 0; }
int nvmlDeviceGetCudaComputeCapability(device d, int *major, int *minor) { *major = 9; *minor = 1; return 0; }
int nvmlDeviceGetMemoryInfo(device d, memory *m) { m->total = 151ULL << 30; m->free = 100ULL << 30; m->used = 51ULL << 30; return 0; }
int nvmlDeviceGetUtilizationRates(device d, utilization *u) { u->gpu = 45; u->memory = 62; return 0; }
int nvmlDeviceGetNumGpuCores(device d, unsigned int *n) { *n = 16896; return 0; }
int nvmlDeviceGetMaxClockInfo(device d, int which, unsigned int *mhz) { *mhz = which == 1 ? 1980 : which == 2 ? 3201 : 0; return 0; }
int nvmlDeviceGetMemoryBusWidth(device d, unsigned int *bits) {
	if (index_of(d)) return 3; /* not supported */
	*bits = 6144;
	return 0;
}
int nvmlDeviceGetNvLinkState(device d, unsigned int link, int *active) { if (link >= 18) return 2; *active = link < 4; return 0; }
int nvmlDeviceGetNvLinkVersion(device d, unsigned int link, unsigned int *v) { *v = 6; return 0; }
