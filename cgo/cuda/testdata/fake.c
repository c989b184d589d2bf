/* A driver's library without a device, for tests. Signatures are those of the
   public header. Each call is a line in the file FAKE_CUDA_LOG names; FAKE_CUDA
   is a list of NAME=CODE: what fails, and with which code. NAME#2 is the second
   call. Every thread has the context 0x77 when it is asked. */
#define _GNU_SOURCE
#include <stddef.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static __thread void *current;
static int asked, sets; /* the thread that was asked for its context */

static const char *where(void) { return asked == gettid() ? "" : " in another thread"; }

static void say(const char *form, ...) {
	FILE *f = fopen(getenv("FAKE_CUDA_LOG"), "a");
	va_list a;
	va_start(a, form);
	vfprintf(f, form, a);
	va_end(a);
	fputs("\n", f);
	fclose(f);
}

static int fails(const char *name) {
	const char *list = getenv("FAKE_CUDA"), *at;
	size_t n = strlen(name);
	for (at = list; at && (at = strstr(at, name)); at += n)
		if ((at == list || at[-1] == ' ') && at[n] == '=')
			return atoi(at + n + 1);
	return 0;
}

int cuInit(unsigned int flags) {
	say("cuInit %u", flags);
	return fails("cuInit");
}

int cuDeviceGet(int *device, int ordinal) {
	say("cuDeviceGet %d", ordinal);
	if (ordinal > 1) return 101;
	*device = ordinal + 40;
	return fails("cuDeviceGet");
}

int cuDevicePrimaryCtxRetain(void **ctx, int device) {
	say("cuDevicePrimaryCtxRetain %d", device);
	*ctx = (void *)0x7fff00000040;
	return fails("cuDevicePrimaryCtxRetain");
}

int cuDevicePrimaryCtxRelease_v2(int device) {
	say("cuDevicePrimaryCtxRelease_v2 %d", device);
	return fails("cuDevicePrimaryCtxRelease_v2");
}

int cuCtxGetCurrent(void **ctx) {
	asked = gettid(), sets = 0;
	say("cuCtxGetCurrent");
	*ctx = current = (void *)0x77;
	return fails("cuCtxGetCurrent");
}

int cuCtxSetCurrent(void *ctx) {
	int code = fails(++sets == 2 ? "cuCtxSetCurrent#2" : "cuCtxSetCurrent");
	say("cuCtxSetCurrent %p%s", ctx, where());
	if (!code) current = ctx;
	return code;
}

int cuMemHostRegister_v2(void *p, size_t bytes, unsigned int flags) {
	say("cuMemHostRegister_v2 %p %zu %u under %p%s", p, bytes, flags, current, where());
	return fails("cuMemHostRegister_v2");
}

#ifndef OLD
int cuMemHostUnregister(void *p) {
	say("cuMemHostUnregister %p", p);
	return fails("cuMemHostUnregister");
}
#endif

int cuGetErrorName(int code, const char **text) {
	switch (code) {
	case 2: *text = "CUDA_ERROR_OUT_OF_MEMORY"; return 0;
	case 100: *text = "CUDA_ERROR_NO_DEVICE"; return 0;
	case 101: *text = "CUDA_ERROR_INVALID_DEVICE"; return 0;
	case 712: *text = "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED"; return 0;
	}
	*text = NULL;
	return 1;
}

int cuGetErrorString(int code, const char **text) {
	switch (code) {
	case 2: *text = "out of memory"; return 0;
	case 100: *text = "no CUDA-capable device is detected"; return 0;
	case 101: *text = "invalid device ordinal"; return 0;
	case 712: *text = "part or all of the requested memory range is already mapped"; return 0;
	}
	*text = NULL;
	return 1;
}
