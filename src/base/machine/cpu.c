// SPDX-License-Identifier: MIT
// Asks the processor: cpuid on x86, the operating system on ARM. A WebAssembly module has the features that it was
// compiled for. Other processors report no features.
#include "base/machine/cpu.h"
#include "base/thread/thread.h"

#include <stdio.h>
#include <string.h>

enum { NAME_BYTES = 128 };

static unsigned features;
static char name[NAME_BYTES];
static frit_once detected;

#if defined(__x86_64__) || defined(__i386__) || defined(_M_X64)

#if defined(_MSC_VER)
#include <intrin.h>
#else
#include <cpuid.h>
#endif
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

enum { EAX, EBX, ECX, EDX };

// Runs cpuid; `out` is all zeros if the processor does not know the leaf.
static void cpuid(unsigned leaf, unsigned subleaf, unsigned out[4])
{
    memset(out, 0, 4 * sizeof *out);
#if defined(_MSC_VER)
    int r[4];
    __cpuid(r, (int)(leaf & 0x80000000u));
    if ((unsigned)r[EAX] < leaf) return;
    __cpuidex(r, (int)leaf, (int)subleaf);
    memcpy(out, r, sizeof r);
#else
    __get_cpuid_count(leaf, subleaf, &out[EAX], &out[EBX], &out[ECX], &out[EDX]);
#endif
}

// The registers that the operating system saves when it switches threads, as bits of XCR0.
static unsigned saved_registers(void)
{
#if defined(_MSC_VER)
    return (unsigned)_xgetbv(0);
#else
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
#endif
}

// Linux gives the 8 KiB of tile registers only to processes that request them.
static bool may_use_tiles(void)
{
#if defined(__linux__) && defined(__x86_64__)
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
    return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
#else
    return false;
#endif
}

static bool has(const unsigned regs[4], int reg, unsigned bits)
{
    return (regs[reg] & bits) == bits;
}

static unsigned detect_features(void)
{
    enum { FMA = 1 << 12, OSXSAVE = 1 << 27, AVX = 1 << 28, F16C = 1 << 29 };            // leaf 1, ecx
    enum { AVX2 = 1 << 5, AVX512F = 1 << 16, AVX512DQ = 1 << 17, AVX512BW = 1 << 30 };   // leaf 7, ebx
    const unsigned AVX512VL = 1u << 31;
    enum { AVX512_VBMI = 1 << 1, AVX512_VNNI = 1 << 11 };                  // leaf 7, ecx
    enum { AMX_BF16 = 1 << 22, AMX_TILE = 1 << 24, AMX_INT8 = 1 << 25 };   // leaf 7, edx
    enum { AVX_VNNI = 1 << 4, AVX512_BF16 = 1 << 5 };                      // leaf 7.1, eax
    enum { YMM = 0x6, ZMM = 0xe6, TILES = 0x60000 };                       // xcr0
    unsigned one[4], seven[4], seven1[4], f = 0;
    cpuid(1, 0, one);
    cpuid(7, 0, seven);
    cpuid(7, 1, seven1);
    if (!has(one, ECX, OSXSAVE | AVX | FMA | F16C) || !has(seven, EBX, AVX2)) return 0;
    unsigned saved = saved_registers();
    if ((saved & YMM) != YMM) return 0;
    f |= FRIT_CPU_AVX2;
    if (has(seven1, EAX, AVX_VNNI)) f |= FRIT_CPU_AVX_VNNI;
    if ((saved & ZMM) != ZMM || !has(seven, EBX, AVX512F | AVX512DQ | AVX512BW | AVX512VL)) return f;
    f |= FRIT_CPU_AVX512;
    if (has(seven, ECX, AVX512_VNNI)) f |= FRIT_CPU_AVX512_VNNI;
    if (has(seven, ECX, AVX512_VBMI)) f |= FRIT_CPU_AVX512_VBMI;
    if (has(seven1, EAX, AVX512_BF16)) f |= FRIT_CPU_AVX512_BF16;
    if ((saved & TILES) != TILES || !has(seven, EDX, AMX_TILE) || !may_use_tiles()) return f;
    if (has(seven, EDX, AMX_INT8)) f |= FRIT_CPU_AMX_INT8;
    if (has(seven, EDX, AMX_BF16)) f |= FRIT_CPU_AMX_BF16;
    return f;
}

static void detect_name(char *out)
{
    unsigned regs[4];
    for (unsigned i = 0; i < 3; i++) {
        cpuid(0x80000002u + i, 0, regs);
        memcpy(out + 16 * i, regs, sizeof regs);
    }
    out[48] = 0;
}

#elif defined(__aarch64__) || defined(_M_ARM64)

#if defined(__APPLE__)
#include <sys/sysctl.h>

static bool flag(const char *key)
{
    int value = 0;
    size_t size = sizeof value;
    return sysctlbyname(key, &value, &size, NULL, 0) == 0 && value != 0;
}

static unsigned detect_features(void)
{
    unsigned f = FRIT_CPU_NEON;
    if (flag("hw.optional.arm.FEAT_DotProd")) f |= FRIT_CPU_DOTPROD;
    if (flag("hw.optional.arm.FEAT_I8MM")) f |= FRIT_CPU_I8MM;
    if (flag("hw.optional.arm.FEAT_BF16")) f |= FRIT_CPU_BF16;
    return f;
}

static void detect_name(char *out)
{
    size_t size = NAME_BYTES - 1;
    if (sysctlbyname("machdep.cpu.brand_string", out, &size, NULL, 0) != 0) out[0] = 0;
}

#elif defined(_WIN32)
#define WIN32_LEAN_AND_MEAN
#include <windows.h>

static unsigned detect_features(void)
{
    enum { V82_DOTPROD = 43, V82_I8MM = 66 };   // PF_ARM_V82_DP_INSTRUCTIONS_AVAILABLE, PF_ARM_V82_I8MM_..
    unsigned f = FRIT_CPU_NEON;
    if (IsProcessorFeaturePresent(V82_DOTPROD)) f |= FRIT_CPU_DOTPROD;
    if (IsProcessorFeaturePresent(V82_I8MM)) f |= FRIT_CPU_I8MM;
    return f;
}

static void detect_name(char *out)
{
    DWORD size = NAME_BYTES - 1;
    const char *key = "HARDWARE\\DESCRIPTION\\System\\CentralProcessor\\0";
    if (RegGetValueA(HKEY_LOCAL_MACHINE, key, "ProcessorNameString", RRF_RT_REG_SZ, NULL, out, &size) != 0) out[0] = 0;
}

#elif defined(__linux__)
#include <sys/auxv.h>

static unsigned detect_features(void)
{
    const unsigned long DOTPROD = 1ul << 20;                  // HWCAP: ASIMDDP
    const unsigned long I8MM = 1ul << 13, BF16 = 1ul << 14;   // HWCAP2
    unsigned long one = getauxval(AT_HWCAP), two = getauxval(AT_HWCAP2);
    unsigned f = FRIT_CPU_NEON;
    if (one & DOTPROD) f |= FRIT_CPU_DOTPROD;
    if (two & I8MM) f |= FRIT_CPU_I8MM;
    if (two & BF16) f |= FRIT_CPU_BF16;
    return f;
}

// Linux shows numbers: the implementer and the part of the core (MIDR_EL1).
static void detect_name(char *out)
{
    static const struct {
        unsigned implementer, part;
        const char *name;
    } cores[] = {
        {0x41, 0xd03, "ARM Cortex-A53"},  {0x41, 0xd05, "ARM Cortex-A55"},  {0x41, 0xd07, "ARM Cortex-A57"},
        {0x41, 0xd08, "ARM Cortex-A72"},  {0x41, 0xd09, "ARM Cortex-A73"},  {0x41, 0xd0a, "ARM Cortex-A75"},
        {0x41, 0xd0b, "ARM Cortex-A76"},  {0x41, 0xd0d, "ARM Cortex-A77"},  {0x41, 0xd41, "ARM Cortex-A78"},
        {0x41, 0xd0c, "ARM Neoverse N1"}, {0x41, 0xd49, "ARM Neoverse N2"}, {0x41, 0xd8e, "ARM Neoverse N3"},
        {0x41, 0xd40, "ARM Neoverse V1"}, {0x41, 0xd4f, "ARM Neoverse V2"}, {0x41, 0xd84, "ARM Neoverse V3"},
        {0xc0, 0xac3, "Ampere-1"},        {0xc0, 0xac4, "Ampere-1a"},
    };
    unsigned implementer = 0, part = 0, value;
    char line[256];
    FILE *file = fopen("/proc/cpuinfo", "re");
    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "CPU implementer : %x", &value) == 1) implementer = value;
        if (sscanf(line, "CPU part : %x", &value) == 1) part = value;   // the last line: the big cores
    }
    if (file) fclose(file);
    for (size_t i = 0; i < FRIT_COUNT(cores); i++)
        if (cores[i].implementer == implementer && cores[i].part == part)
            snprintf(out, NAME_BYTES, "%s", cores[i].name);
    if (!out[0] && part) snprintf(out, NAME_BYTES, "ARM core 0x%02x/0x%03x", implementer, part);
}

#else

static unsigned detect_features(void)
{
    return FRIT_CPU_NEON;
}

static void detect_name(char *out)
{
    out[0] = 0;
}

#endif

#elif defined(__wasm__)

static unsigned detect_features(void)
{
#if defined(FRIT_RELAXED_SIMD)
    return FRIT_CPU_SIMD128 | FRIT_CPU_RELAXED_SIMD;
#else
    return FRIT_CPU_SIMD128;
#endif
}

static void detect_name(char *out)
{
    out[0] = 0;
}

#else

static unsigned detect_features(void)
{
    return 0;
}

static void detect_name(char *out)
{
    out[0] = 0;
}

#endif

// Vendors pad with spaces; each sequence of spaces becomes one space.
static void squeeze(char *text)
{
    size_t n = 0;
    for (const char *p = text; *p; p++)
        if (*p != ' ' || (n > 0 && text[n - 1] != ' ')) text[n++] = *p;
    while (n > 0 && text[n - 1] == ' ') n--;
    text[n] = 0;
}

static void detect(void)
{
    features = detect_features();
    detect_name(name);
    squeeze(name);
    if (!name[0]) memcpy(name, "unknown", sizeof "unknown");
}

unsigned frit_cpu_features(void)
{
    frit_once_run(&detected, detect);
    return features;
}

const char *frit_cpu_name(void)
{
    frit_once_run(&detected, detect);
    return name;
}
