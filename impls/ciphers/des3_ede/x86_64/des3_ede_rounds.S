/* SPDX-License-Identifier: Apache-2.0 */
#include "des3_ede_rounds_x86_64.h"
