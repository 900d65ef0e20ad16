/* SPDX-License-Identifier: Apache-2.0
 * A libFuzzer target as one would write it by hand: two implementations of ctr on one message of MESSAGE_LEN bytes, and
 * a trap where they differ. `crosslane bench fuzz` holds a campaign's rate against it. ONE and OTHER are getters.
 * An input is key, iv and message; what it lacks is zero, so that none of them is lost. */
#include <stdlib.h>

#include "subject.h"

#define KEY_LEN 16u
#define CONTEXT_LEN 8192u

extern const struct subject_mode subject_mode_ctr;
extern subject_getter_fn ONE, OTHER;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void run(const struct subject_leaf *leaf, const uint8_t *input, uint8_t *out)
{
    static _Alignas(64) uint8_t ctx[CONTEXT_LEN];
    static struct subject_state state;
    uint8_t running[SUBJECT_MAX_BLOCK_LEN];
    struct subject_message m = {leaf, ctx, ctx, running, &state};
    memset(&state, 0, offsetof(struct subject_state, extra));
    if (subject_mode_ctr.setkey(&m, input, KEY_LEN, 0) != SUBJECT_OK ||
        subject_mode_ctr.setiv(&m, input + KEY_LEN, leaf->block_len) != SUBJECT_OK ||
        subject_mode_ctr.update(&m, out, input + KEY_LEN + leaf->block_len, MESSAGE_LEN, 1) != SUBJECT_OK ||
        subject_mode_ctr.final(&m) != SUBJECT_OK) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct subject_leaf *one, *other;
    uint8_t input[KEY_LEN + SUBJECT_MAX_BLOCK_LEN + MESSAGE_LEN] = {0};
    uint8_t out[2][MESSAGE_LEN];
    if (one == NULL) {
        one = ONE(~UINT64_C(0));
        other = OTHER(~UINT64_C(0));
        if (one == NULL || other == NULL) {
            abort();
        }
    }
    memcpy(input, data, size < sizeof input ? size : sizeof input);
    run(one, input, out[0]);
    run(other, input, out[1]);
    if (memcmp(out[0], out[1], MESSAGE_LEN) != 0) {
        abort();
    }
    return 0;
}
