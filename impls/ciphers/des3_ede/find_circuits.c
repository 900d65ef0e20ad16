/* SPDX-License-Identifier: Apache-2.0
 *
 * Searches small Boolean circuits for the S-boxes of DES; find_circuits.py builds and runs it.
 *
 *     find_circuits N SEED...     for S-box N, 1 to 8, one circuit from each seed
 *
 * Equal seeds give equal circuits. A function of the six input bits is its truth table, bit v the value at input v; it and
 * its complement are one function here, because an AND whose inputs and output may be complemented is one instruction
 * where there is an AND-NOT. A gate is such an AND, or an exclusive or.
 *
 * A search begins with a circuit that splits the outputs by one input after the other, and rewrites it at random. It
 * takes some gate, notes for which inputs a wrong value of it would reach an output (for the others it may be anything),
 * and looks for other nodes that could stand for it: one alone, or two joined by one gate, or by two. A circuit of the
 * same size always replaces the old one, a greater one now and then: most steps save nothing, but lead to where some do.
 */
#include <stdio.h>
#include <stdlib.h>

#include "subject_bytes.h"

#include "des3_ede_tables.h"

enum {
    INPUTS = 6,
    OUTPUTS = 4,
    BOXES = 8,
    MAX_NODES = 256,
    PATIENCE = 4000000 /* steps without a better circuit after which a search ends */
};

/* Input i: bit 0 is the last of the six bits of B. */
static const uint64_t input_tables[INPUTS] = {UINT64_C(0xaaaaaaaaaaaaaaaa), UINT64_C(0xcccccccccccccccc),
                                              UINT64_C(0xf0f0f0f0f0f0f0f0), UINT64_C(0xff00ff00ff00ff00),
                                              UINT64_C(0xffff0000ffff0000), UINT64_C(0xffffffff00000000)};

/* (left ^ flip_left) & (right ^ flip_right), or left ^ right ^ flip_left ^ flip_right; flips are all zeros or ones. */
struct gate {
    int exclusive;
    int left, right;
    uint64_t flip_left, flip_right;
};

/* Nodes in an order in which each can be computed, the inputs first. */
struct circuit {
    int size;
    struct gate gate[MAX_NODES];
    uint64_t value[MAX_NODES];
    int output[OUTPUTS];
};

static uint64_t random_state;

/* xorshift64*. */
static unsigned random_below(unsigned n)
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return (unsigned)((random_state * UINT64_C(0x2545f4914f6cdd1d)) >> 33) % n;
}

static uint64_t evaluate(const struct gate *g, const uint64_t *value)
{
    uint64_t left = value[g->left] ^ g->flip_left, right = value[g->right] ^ g->flip_right;

    return g->exclusive ? left ^ right : left & right;
}

static void begin(struct circuit *c)
{
    c->size = INPUTS;
    memcpy(c->value, input_tables, sizeof(input_tables));
}

/* The node that computes this function or its complement, or -1. */
static int node_of(const struct circuit *c, uint64_t value)
{
    for (int i = 0; i < c->size; i++) {
        if (c->value[i] == value || c->value[i] == ~value) {
            return i;
        }
    }
    return -1;
}

static int add_gate(struct circuit *c, struct gate g)
{
    uint64_t value = evaluate(&g, c->value);
    int node = node_of(c, value);

    if (node >= 0) {
        return node;
    }
    if (c->size == MAX_NODES) {
        fprintf(stderr, "find_circuits: more than %d nodes\n", MAX_NODES);
        exit(1);
    }
    c->gate[c->size] = g;
    c->value[c->size] = value;
    return c->size++;
}

/* All ones where the node holds the complement of the function. */
static uint64_t flip_of(const struct circuit *c, int node, uint64_t function)
{
    return c->value[node] == function ? 0 : ~UINT64_C(0);
}

/* A node for a function that is not constant, split by the inputs in this order: f = f0 ^ x (f0 ^ f1), or
 * f = f1 ^ ~x (f0 ^ f1). */
static int decompose(struct circuit *c, uint64_t function, const int *order)
{
    int node = node_of(c, function);
    int input = order[0], shift = 1 << input;
    uint64_t low = function & ~input_tables[input], high = function & input_tables[input];
    uint64_t base, difference;
    struct gate product = {0, input, input, 0, 0};

    if (node >= 0) {
        return node;
    }
    low |= low << shift;
    high |= high >> shift;
    if (low == high) {
        return decompose(c, function, order + 1);
    }
    difference = low ^ high;
    base = low;
    if (random_below(2) == 1) {
        base = high;
        product.flip_left = product.flip_right = ~UINT64_C(0);
    }
    if (difference + 1 > 1) {
        product.right = decompose(c, difference, order + 1);
        product.flip_right = flip_of(c, product.right, difference);
    }
    node = add_gate(c, product);
    if (base + 1 > 1) {
        struct gate sum = {1, node, decompose(c, base, order + 1), 0, 0};
        node = add_gate(c, sum);
    }
    return node;
}

/* Appends the node, and before it what it needs, to a new circuit; equal nodes become one. flip says where the new
 * node holds the complement. */
static void copy_node(struct circuit *to, const struct circuit *from, int node, int *map, uint64_t *flip)
{
    struct gate g = from->gate[node];
    uint64_t value, sum = 0;

    if (map[node] >= 0) {
        return;
    }
    copy_node(to, from, g.left, map, flip);
    copy_node(to, from, g.right, map, flip);
    g.flip_left ^= flip[g.left];
    g.flip_right ^= flip[g.right];
    g.left = map[g.left];
    g.right = map[g.right];
    if (g.exclusive) {
        sum = g.flip_left ^ g.flip_right;
        g.flip_left = g.flip_right = 0;
    }
    value = evaluate(&g, to->value);
    map[node] = add_gate(to, g);
    flip[node] = sum ^ flip_of(to, map[node], value);
}

/* Puts the nodes in order again, without those that no output needs. */
static void renumber(struct circuit *c)
{
    struct circuit out;
    int map[MAX_NODES];
    uint64_t flip[MAX_NODES] = {0};

    begin(&out);
    for (int i = 0; i < c->size; i++) {
        map[i] = i < INPUTS ? i : -1;
    }
    for (int i = 0; i < OUTPUTS; i++) {
        copy_node(&out, c, c->output[i], map, flip);
        out.output[i] = map[c->output[i]];
    }
    c->size = out.size;
    memcpy(c->gate, out.gate, sizeof(out.gate[0]) * (size_t)out.size);
    memcpy(c->value, out.value, sizeof(out.value[0]) * (size_t)out.size);
    memcpy(c->output, out.output, sizeof(out.output));
}

/* One gate among those that fit, each with the same chance; those that need nothing that could go come first. */
struct choice {
    unsigned num, num_saving;
    struct gate gate, saving;
};

static void choose(struct choice *choice, struct gate g, const char *only_here)
{
    if (random_below(++choice->num) == 0) {
        choice->gate = g;
    }
    if (!only_here[g.left] && !only_here[g.right] && random_below(++choice->num_saving) == 0) {
        choice->saving = g;
    }
}

/* Gates of two of the nodes that agree with a function, or its complement, where care is set. */
static void fitting_gates(struct choice *choice, const uint64_t *value, const int *nodes, int num, uint64_t function,
                          uint64_t care, const struct gate *except, const char *only_here)
{
    struct {
        int node;
        uint64_t flip, surplus;
    } literal[2 * MAX_NODES];

    for (int complement = 0; complement < 2; complement++) {
        uint64_t wanted = (complement ? ~function : function) & care;
        int count = 0;
        for (int i = 0; i < 2 * num; i++) {
            uint64_t flip = 0 - (uint64_t)(i & 1), v = value[nodes[i / 2]] ^ flip;
            if ((wanted & ~v) == 0) {
                literal[count].node = nodes[i / 2];
                literal[count].flip = flip;
                literal[count++].surplus = v & care & ~wanted;
            }
        }
        for (int i = 0; i < count; i++) {
            for (int j = i + 1; j < count; j++) {
                struct gate g = {0, literal[i].node, literal[j].node, literal[i].flip, literal[j].flip};
                if ((literal[i].surplus & literal[j].surplus) == 0 && g.left != g.right &&
                    !(g.left == except->left && g.right == except->right)) {
                    choose(choice, g, only_here);
                }
            }
        }
    }
    for (int i = 0; i < num; i++) {
        for (int j = i + 1; j < num; j++) {
            struct gate g = {1, nodes[i], nodes[j], 0, 0};
            uint64_t wrong = (value[g.left] ^ value[g.right] ^ function) & care;
            if ((wrong == 0 || wrong == care) && !(g.left == except->left && g.right == except->right)) {
                choose(choice, g, only_here);
            }
        }
    }
}

/* What the circuit loses with a gate: marks the nodes that nothing else needs. */
static void mark_only_here(const struct circuit *c, int gate, char *only_here)
{
    int uses[MAX_NODES] = {0};

    memset(only_here, 0, MAX_NODES);
    for (int i = INPUTS; i < c->size; i++) {
        uses[c->gate[i].left]++;
        uses[c->gate[i].right]++;
    }
    for (int i = 0; i < OUTPUTS; i++) {
        uses[c->output[i]]++;
    }
    for (int i = gate; i >= INPUTS; i--) {
        if (i == gate || only_here[i]) {
            int operand[2] = {c->gate[i].left, c->gate[i].right};
            for (int k = 0; k < 2; k++) {
                if (--uses[operand[k]] == 0 && operand[k] >= INPUTS) {
                    only_here[operand[k]] = 1;
                }
            }
        }
    }
}

/* Whoever uses a node that held `function` where it matters is adapted to a complement; then all is in order again. */
static void settle(struct circuit *c, int node, int by, uint64_t function, uint64_t value, uint64_t care)
{
    uint64_t flip = ((value ^ function) & care) == 0 ? 0 : ~UINT64_C(0);

    for (int i = INPUTS; i < c->size; i++) {
        struct gate *g = &c->gate[i];
        if (g->left == node && i != by) {
            g->left = by;
            g->flip_left ^= flip;
        }
        if (g->right == node && i != by) {
            g->right = by;
            g->flip_right ^= flip;
        }
    }
    for (int i = 0; i < OUTPUTS; i++) {
        c->output[i] = c->output[i] == node ? by : c->output[i];
    }
    renumber(c);
}

/* One gate, which with some node gives the function where it matters; 0 where the node cannot be part of it. */
static int split(struct gate *top, uint64_t *function, uint64_t *care, int node, uint64_t value)
{
    uint64_t flip = 0 - (uint64_t)random_below(2);

    *top = (struct gate){random_below(3) == 0, node, node, 0, 0};
    if (top->exclusive) {
        *function ^= value;
        return 1;
    }
    top->flip_left = flip;
    value ^= flip;
    if ((*function & ~value & *care) != 0) {
        *function = ~*function;
    }
    if ((*function & ~value & *care) != 0) {
        return 0;
    }
    *care &= value;
    return 1;
}

/* How far a search may go uphill: the chance, in 1024, to take a circuit with a gate more, and by how many in all. */
struct slope {
    unsigned chance;
    int most;
};

static void step(struct circuit *c, int best, struct slope slope)
{
    static struct circuit before;
    int gate = INPUTS + (int)random_below((unsigned)(c->size - INPUTS)), num = 0, node;
    int nodes[MAX_NODES];
    uint64_t changed[MAX_NODES], care = 0, function = c->value[gate], part, part_care;
    char after[MAX_NODES] = {0}, only_here[MAX_NODES];
    struct choice choice = {0};
    struct gate none = {0, -1, -1, 0, 0}, top;

    memcpy(changed, c->value, sizeof(c->value[0]) * (size_t)c->size);
    changed[gate] = ~function;
    after[gate] = 1;
    for (int i = 0; i < c->size; i++) {
        if (i > gate && (after[c->gate[i].left] || after[c->gate[i].right])) {
            after[i] = 1;
            changed[i] = evaluate(&c->gate[i], changed);
        }
        if (!after[i]) {
            nodes[num++] = i;
        }
    }
    for (int i = 0; i < OUTPUTS; i++) {
        care |= changed[c->output[i]] ^ c->value[c->output[i]];
    }
    for (int i = 0; i < num; i++) {
        uint64_t wrong = (c->value[nodes[i]] ^ function) & care;
        if (wrong == 0 || wrong == care) {
            settle(c, gate, nodes[i], function, c->value[nodes[i]], care);
            return;
        }
    }
    mark_only_here(c, gate, only_here);
    if (random_below(4) != 0) {
        fitting_gates(&choice, c->value, nodes, num, function, care, &c->gate[gate], only_here);
        if (choice.num > 0) {
            c->gate[gate] = choice.num_saving > 0 ? choice.saving : choice.gate;
            settle(c, gate, gate, function, evaluate(&c->gate[gate], c->value), care);
        }
        return;
    }
    node = nodes[random_below((unsigned)num)];
    part = function;
    part_care = care;
    if (c->size == MAX_NODES || !split(&top, &part, &part_care, node, c->value[node])) {
        return;
    }
    fitting_gates(&choice, c->value, nodes, num, part, part_care, &none, only_here);
    if (choice.num == 0) {
        return;
    }
    before = *c;
    c->gate[c->size] = choice.num_saving > 0 && random_below(4) != 0 ? choice.saving : choice.gate;
    c->value[c->size] = evaluate(&c->gate[c->size], c->value);
    top.right = c->size++;
    if (!top.exclusive) {
        top.flip_right = ((c->value[top.right] ^ part) & part_care) == 0 ? 0 : ~UINT64_C(0);
    }
    c->gate[gate] = top;
    settle(c, gate, gate, function, evaluate(&top, c->value), care);
    if (c->size > before.size && (c->size > best + slope.most || random_below(1024) >= slope.chance)) {
        *c = before;
    }
}

static struct circuit search(uint64_t seed, const uint64_t tables[OUTPUTS])
{
    static struct circuit c, best;
    struct slope slope;
    int order[INPUTS];

    random_state = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15);
    for (int i = 0; i < INPUTS; i++) {
        int j = (int)random_below((unsigned)i + 1);
        order[i] = order[j];
        order[j] = i;
    }
    slope.chance = 64u << (2 * random_below(3)); /* 1/16, 1/4, 1 */
    slope.most = 2 + (int)random_below(5);
    begin(&c);
    for (int i = 0; i < OUTPUTS; i++) {
        c.output[i] = decompose(&c, tables[i], order);
    }
    renumber(&c);
    best = c;
    for (long left = PATIENCE; left > 0; left--) {
        step(&c, best.size, slope);
        if (c.size < best.size) {
            best = c;
            left = PATIENCE;
        } else if (c.size > best.size + slope.most) {
            c = best;
        }
    }
    return best;
}

/* The circuit's nodes as left, right and kind: ^, or & with a ~ before an operand that is complemented; then for each
 * output its place in the half of the block, from 0 at the left, and its node. */
static void print_circuit(int box, uint64_t seed, const struct circuit *c, const uint64_t tables[OUTPUTS],
                          const int places[OUTPUTS])
{
    printf("%d %llu %d", box, (unsigned long long)seed, c->size - INPUTS);
    for (int i = INPUTS; i < c->size; i++) {
        const struct gate *g = &c->gate[i];
        printf(" %s%d%c%s%d", g->flip_left ? "~" : "", g->left, g->exclusive ? '^' : '&', g->flip_right ? "~" : "",
               g->right);
    }
    for (int i = 0; i < OUTPUTS; i++) {
        printf(" %d=%s%d", places[i], flip_of(c, c->output[i], tables[i]) ? "~" : "", c->output[i]);
    }
    printf("\n");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    int box = argc > 1 ? atoi(argv[1]) : 0;
    uint64_t tables[OUTPUTS] = {0};
    int places[OUTPUTS], num = 0;

    if (box < 1 || box > BOXES || argc < 3) {
        fprintf(stderr, "find_circuits: give the number of an S-box, 1 to %d, and seeds\n", BOXES);
        return 2;
    }
    /* des3_ede_tables.h has the values behind P, the half turned left by one bit. */
    for (int bit = 0; bit < 32; bit++) {
        uint64_t table = 0;
        for (int v = 0; v < 64; v++) {
            table |= (uint64_t)((sp[box - 1][v] >> bit) & 1u) << v;
        }
        if (table != 0) {
            tables[num] = table;
            places[num++] = (32 - bit) % 32;
        }
    }
    for (int i = 2; i < argc; i++) {
        uint64_t seed = strtoull(argv[i], NULL, 10);
        struct circuit c = search(seed, tables);
        print_circuit(box, seed, &c, tables, places);
    }
    return 0;
}
