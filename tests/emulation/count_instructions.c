// SPDX-License-Identifier: Apache-2.0
// Counts machine instructions of kernels in a cubin, of sm_70 and later: what a kernel costs at
// least, without a GPU.
// usage: count_instructions CUBIN KERNEL FROM TO
//   KERNEL: a part of a kernel's mangled name; FROM, TO: instructions. Of every kernel whose name
//   has that part: how many come after the last FROM before the first TO that follows one. FROM and
//   TO `-`: all of the kernel. FROM `LOOP`, TO `NAME:NUMBER`: those of the shortest loop that has
//   so many of them, loops inside it once. FROM `PATH`: those that are run on the shortest way once
//   through a loop that runs so many of them, or `NAME:NUMBER,NAME:NUMBER` of two: what is done
//   where nothing rare is to do. One number, the largest; exit code 1 where there is none.
#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INSTRUCTION_BYTES = 16 };

// By bits 0 to 8 of an instruction, those above being the form of its operands.
static const struct {
    const char *name;
    unsigned code;
} names[] = {{"VOTE", 0x006},   {"BAR", 0x11d},   {"IMMA", 0x037},  {"HMMA", 0x03c},
             {"BMMA", 0x03d},   {"POPC", 0x109},  {"EXIT", 0x14d},  {"LDS", 0x184},
             {"STS", 0x188},    {"REDUX", 0x1c4}, {"IGMMA", 0x1f1}, {"WARPSYNC", 0x148},
             {"UBLKCP", 0x1ba}, {"IDP", 0x026},   {"PRMT", 0x016},  {"LDG", 0x181},
             {"MUFU", 0x108}};

static void fail(const char *what, const char *which)
{
    fprintf(stderr, "count_instructions: %s: %s\n", which, what);
    exit(2);
}

static unsigned code_of(const char *name)
{
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(names[i].name, name) == 0) return names[i].code;
    }
    fail("no instruction that is known here", name);
    return 0;
}

static unsigned char *read_file(const char *path, size_t *bytes)
{
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0) fail("cannot be read", path);
    *bytes = (size_t)ftell(file);
    rewind(file);
    unsigned char *data = malloc(*bytes + 1);
    if (!data || fread(data, 1, *bytes, file) != *bytes) fail("cannot be read", path);
    fclose(file);
    data[*bytes] = '\0';
    if (*bytes < sizeof(Elf64_Ehdr) || memcmp(data, ELFMAG, SELFMAG) != 0) fail("no cubin", path);
    return data;
}

static unsigned code_at(const unsigned char *text, size_t i)
{
    uint16_t low;
    memcpy(&low, text + i * INSTRUCTION_BYTES, sizeof low);
    return low & 0x1ff;
}

// Where a branch at i goes: by bits 34 to 81 in units of 4 bytes, from the next instruction on;
// from sm_90 on bits 16 to 23 are below them. -1: it is none.
static long target_of(const unsigned char *text, size_t i, unsigned architecture)
{
    enum { BRANCH = 0x947 };
    uint64_t low, high, offset;
    memcpy(&low, text + i * INSTRUCTION_BYTES, sizeof low);
    memcpy(&high, text + i * INSTRUCTION_BYTES + sizeof low, sizeof high);
    if ((low & 0xfff) != BRANCH) return -1;
    offset = low >> 34 | (high & 0x3ffff) << 30;
    int64_t words = (int64_t)(offset << 16) / 65536;
    if (architecture >= 90) words = words * 256 + (int64_t)(low >> 16 & 0xff);
    return (long)i + 1 + (long)(words * 4 / INSTRUCTION_BYTES);
}

// So many of one instruction, and so many of another.
struct wanted {
    unsigned codes[2], numbers[2];
};

static struct wanted parse_wanted(const char *text)
{
    char first[16], second[16];
    struct wanted out = {{~0u, ~0u}, {0, 0}};
    const int found =
        sscanf(text, "%15[A-Z]:%u,%15[A-Z]:%u", first, &out.numbers[0], second, &out.numbers[1]);
    if ((found != 2 && found != 4) || out.numbers[0] > 127 || out.numbers[1] > 127)
        fail("not NAME:NUMBER or NAME:NUMBER,NAME:NUMBER", text);
    out.codes[0] = code_of(first);
    if (found == 4) out.codes[1] = code_of(second);
    return out;
}

// Whether what follows in memory may be run next: all but a branch that is always taken, EXIT and
// RET. Bits 12 to 15 are the instruction's predicate, 7 being none, bits 87 and above a branch's
// second one and its mode.
static int may_go_on(const unsigned char *text, size_t i)
{
    enum { BRANCH = 0x947, EXIT = 0x94d, RETURN = 0x950, JUMP_BY_TABLE = 0x949 };
    uint64_t low, high;
    memcpy(&low, text + i * INSTRUCTION_BYTES, sizeof low);
    memcpy(&high, text + i * INSTRUCTION_BYTES + sizeof low, sizeof high);
    const unsigned code = low & 0xfff;
    if ((low >> 12 & 0xf) != 7) return 1;
    if (code == BRANCH) return (high >> 23 & 0x1ff) != 7;
    return code != EXIT && code != RETURN && code != JUMP_BY_TABLE;
}

static void shorten(long *length, long to)
{
    if (*length < 0 || to < *length) *length = to;
}

// From a loop's start to its last instruction, by branches forward: lengths[i][n] is the shortest
// way to the instruction at start + i where n counts those wanted before it, the first ones and
// `step` for each of the others; -1 where there is none.
static long shortest_way(const unsigned char *text, size_t start, size_t end, unsigned architecture,
                         const struct wanted *wanted)
{
    const size_t num = end - start + 1, step = wanted->numbers[0] + 1;
    const size_t all = wanted->numbers[1] * step + wanted->numbers[0], width = all + 1;
    long *lengths = malloc(num * width * sizeof *lengths), out = -1;
    if (!lengths) fail("no memory", "path");
    for (size_t i = 0; i < num * width; i++) lengths[i] = i == 0 ? 0 : -1;
    for (size_t i = 0; i < num; i++) {
        const long target = target_of(text, start + i, architecture);
        const unsigned code = code_at(text, start + i);
        const size_t own = code == wanted->codes[0] ? 1 : code == wanted->codes[1] ? step : 0;
        for (size_t n = 0; n + own < width; n++) {
            const long length = lengths[i * width + n];
            if (length < 0 || (own == 1 && n % step == step - 1)) continue;
            if (i + 1 == num && n + own == all) out = length + 1;
            if (i + 1 < num && may_go_on(text, start + i))
                shorten(&lengths[(i + 1) * width + n + own], length + 1);
            if (target > (long)(start + i) && target <= (long)end)
                shorten(&lengths[((size_t)target - start) * width + n + own], length + 1);
        }
    }
    free(lengths);
    return out;
}

static long count_path(const unsigned char *text, size_t num, unsigned architecture,
                       const char *text_wanted)
{
    const struct wanted wanted = parse_wanted(text_wanted);
    long shortest = -1;
    for (size_t end = 0; end < num; end++) {
        const long start = target_of(text, end, architecture);
        if (start < 0 || start > (long)end) continue;
        const long own = shortest_way(text, (size_t)start, end, architecture, &wanted);
        if (own >= 0) shorten(&shortest, own);
    }
    return shortest;
}

static long count_loop(const unsigned char *text, size_t num, unsigned architecture,
                       const char *wanted)
{
    const struct wanted of = parse_wanted(wanted);
    long shortest = -1;
    for (size_t end = 0; end < num; end++) {
        const long start = target_of(text, end, architecture);
        unsigned found = 0;
        if (start < 0 || start > (long)end) continue;
        for (size_t i = (size_t)start; i <= end; i++) found += code_at(text, i) == of.codes[0];
        const long own = (long)end - start + 1;
        if (found == of.numbers[0] && (shortest < 0 || own < shortest)) shortest = own;
    }
    return shortest;
}

// -1: they are not there.
static long count(const unsigned char *text, size_t num, unsigned architecture, const char *from,
                  const char *to)
{
    long last = -1;
    if (strcmp(from, "-") == 0) return (long)num;
    if (strcmp(from, "LOOP") == 0) return count_loop(text, num, architecture, to);
    if (strcmp(from, "PATH") == 0) return count_path(text, num, architecture, to);
    unsigned first = code_of(from), end = code_of(to);
    for (size_t i = 0; i < num; i++) {
        if (code_at(text, i) == first) last = (long)i;
        if (code_at(text, i) == end && last >= 0) return (long)i - last;
    }
    return -1;
}

int main(int argc, char **argv)
{
    size_t bytes;
    long most = -1;
    if (argc != 5) fail("CUBIN KERNEL FROM TO are needed", argv[0]);
    const unsigned char *file = read_file(argv[1], &bytes);
    Elf64_Ehdr head;
    memcpy(&head, file, sizeof head);
    if (head.e_shoff + (size_t)head.e_shnum * sizeof(Elf64_Shdr) > bytes) fail("cut", argv[1]);
    Elf64_Shdr *sections = calloc(head.e_shnum, sizeof *sections);
    if (!sections) fail("no memory", argv[1]);
    memcpy(sections, file + head.e_shoff, head.e_shnum * sizeof *sections);
    for (unsigned s = 0; s < head.e_shnum; s++) {
        const char *name =
            (const char *)file + sections[head.e_shstrndx].sh_offset + sections[s].sh_name;
        if (strncmp(name, ".text.", 6) != 0 || !strstr(name, argv[2])) continue;
        long own = count(file + sections[s].sh_offset, sections[s].sh_size / INSTRUCTION_BYTES,
                         head.e_flags >> 8 & 0xff, argv[3], argv[4]);
        most = own > most ? own : most;
    }
    free(sections);
    if (most < 0) return 1;
    printf("%ld\n", most);
    return 0;
}
