// SPDX-License-Identifier: Apache-2.0
// --entries and what belongs to it, made valid.
#ifndef BITSWEEP_COORDINATOR_SELECTION_SETTINGS_H
#define BITSWEEP_COORDINATOR_SELECTION_SETTINGS_H

#include "coordinator/search/search_settings.h"

// Settles the request for an index whose codes have tables; has_table: --table was given. An
// impossible request is BSW_ERROR_USAGE in one line that names the option.
enum bsw_status bsw_selection_settle(const struct bsw_selection_request *asked,
                                     const struct bsw_manifest *manifest, const char *index,
                                     int has_table, struct bsw_selection_settings *out,
                                     struct bsw_error *err);
// For codes without tables: anything asked for is BSW_ERROR_USAGE.
enum bsw_status bsw_selection_refuse(const struct bsw_selection_request *asked, const char *codec,
                                     struct bsw_error *err);

// "0.5", "inf" to a scale of radii.
enum bsw_status bsw_radius_scale_parse(const char *text, double *out, struct bsw_error *err);

const char *bsw_selection_mode_name(enum bsw_selection_mode mode);
const char *bsw_radii_kind_name(enum bsw_radii_kind kind);
const char *bsw_selection_miss_name(const struct bsw_selection_settings *settings); // of --miss

#endif
