// SPDX-License-Identifier: Apache-2.0
#include "coordinator/job/found_lines.h"

#include "kernels/text/text_grams.h"

#define SHOWN_BYTES 400

// What line `row` says, fit to be printed.
static enum bsw_status read_line(const struct bsw_text_lines *lines, uint64_t row,
                                 struct bsw_buffer *buffer, char out[SHOWN_BYTES],
                                 struct bsw_error *err)
{
    const char *text;
    size_t bytes;
    out[0] = '\0';
    if (!lines || row >= lines->num_lines) return BSW_OK;
    BSW_TRY(bsw_text_lines_read(lines, row, buffer, err));
    BSW_TRY(bsw_text_lines_column(lines, row, lines->name.column, buffer, &text, &bytes, err));
    bsw_text_clean(text, bytes, out, SHOWN_BYTES);
    return BSW_OK;
}

static enum bsw_status tell_one(struct bsw_facts *facts, const struct bsw_results *answers,
                                const struct bsw_text_lines *lines, uint64_t place,
                                struct bsw_buffer *buffer, struct bsw_error *err)
{
    char text[SHOWN_BYTES];
    int64_t id = answers->ids[place];
    if (id < 0) return BSW_OK; // an empty place
    BSW_TRY(read_line(lines, (uint64_t)id, buffer, text, err));
    bsw_facts_open_object(facts, NULL);
    bsw_fact_integer(facts, "query", place / answers->k, NULL);
    bsw_fact_real(facts, "value", (double)answers->values[place], "%9.4f");
    bsw_fact_integer(facts, "row", (uint64_t)id, "  %8d");
    bsw_fact_text(facts, "text", lines ? text : NULL, "  %s");
    bsw_facts_say(facts, "\n");
    bsw_facts_close(facts);
    return BSW_OK;
}

enum bsw_status bsw_found_lines_tell(struct bsw_facts *facts, const struct bsw_results *answers,
                                     const struct bsw_text_lines *lines, struct bsw_error *err)
{
    struct bsw_buffer buffer = {0};
    enum bsw_status status = BSW_OK;
    uint64_t count = answers->num_queries * answers->k;
    bsw_facts_say(facts, "    value       row%s\n", lines ? "  text" : "");
    bsw_facts_open_list(facts, "found");
    for (uint64_t place = 0; place < count && status == BSW_OK; place++) {
        if (place % answers->k == 0 && answers->num_queries > 1)
            bsw_facts_say(facts, "query %llu\n", (unsigned long long)(place / answers->k));
        status = tell_one(facts, answers, lines, place, &buffer, err);
    }
    bsw_facts_close(facts);
    bsw_buffer_deinit(&buffer);
    return status;
}
