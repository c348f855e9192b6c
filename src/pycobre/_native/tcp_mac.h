/* Message authentication of frames: Poly1305 with pads from BLAKE2b, as pycobre.comm.tcp.mac describes it.
 *
 * One tcp_mac serves one direction of one connection. The polynomial's point r stays the same for the whole
 * connection and tag number n is masked with pad number n, which is used once (the construction of Poly1305-AES,
 * with keyed BLAKE2b in place of AES). Numbers are exact integers, so a tag does not depend on the processor.
 */
#ifndef PYCOBRE_TCP_MAC_H
#define PYCOBRE_TCP_MAC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifndef __SIZEOF_INT128__
#error "tags need 128-bit products: the Python engine serves this machine"
#endif

#define TCP_TAG_BYTES 16
#define TCP_KEY_BYTES 48 /* 16 for r, 32 for the pads */
#define TCP_POWERS 4     /* blocks that are multiplied before one reduction */

__extension__ typedef unsigned __int128 tcp_wide;

typedef struct {
    uint64_t power[TCP_POWERS][3]; /* r, r^2, r^3, r^4 in limbs of 44, 44 and 42 bits */
    uint64_t sum[3];
    uint8_t partial[16];
    size_t held;       /* bytes of `partial` */
    uint64_t tags;     /* how many were made: the number of the next */
    uint64_t keyed[8]; /* BLAKE2b after the block of its key */
    uint8_t pads[4 * TCP_TAG_BYTES];
} tcp_mac;

static inline uint64_t tcp_load64(const uint8_t *from) {
    uint64_t value;
    memcpy(&value, from, sizeof value);
    return value;
}

/* --- BLAKE2b (RFC 7693), as much of it as one short keyed message needs --- */

static const uint64_t tcp_blake_start[8] = {
    0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b, 0xa54ff53a5f1d36f1,
    0x510e527fade682d1, 0x9b05688c2b3e6c1f, 0x1f83d9abfb41bd6b, 0x5be0cd19137e2179,
};

static const uint8_t tcp_blake_order[10][16] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4}, {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
    {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13}, {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
    {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11}, {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5}, {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0},
};

static inline uint64_t tcp_rotate(uint64_t value, int bits) {
    return value >> bits | value << (64 - bits);
}

static inline void tcp_blake_mix(uint64_t *v, int a, int b, int c, int d, uint64_t x, uint64_t y) {
    v[a] += v[b] + x;
    v[d] = tcp_rotate(v[d] ^ v[a], 32);
    v[c] += v[d];
    v[b] = tcp_rotate(v[b] ^ v[c], 24);
    v[a] += v[b] + y;
    v[d] = tcp_rotate(v[d] ^ v[a], 16);
    v[c] += v[d];
    v[b] = tcp_rotate(v[b] ^ v[c], 63);
}

/* Takes in one block; `bytes` is the length of everything so far. */
static inline void tcp_blake_block(uint64_t state[8], const uint64_t block[16], uint64_t bytes, bool last) {
    uint64_t v[16];
    memcpy(v, state, 64);
    memcpy(v + 8, tcp_blake_start, 64);
    v[12] ^= bytes;
    if (last)
        v[14] = ~v[14];
    for (int round = 0; round < 12; round++) {
        const uint8_t *order = tcp_blake_order[round % 10];
        for (int i = 0; i < 4; i++)
            tcp_blake_mix(v, i, i + 4, i + 8, i + 12, block[order[2 * i]], block[order[2 * i + 1]]);
        for (int i = 0; i < 4; i++)
            tcp_blake_mix(v, i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4, block[order[8 + 2 * i]],
                          block[order[9 + 2 * i]]);
    }
    for (int i = 0; i < 8; i++)
        state[i] ^= v[i] ^ v[i + 8];
}

/* --- Poly1305 (RFC 8439) --- */

#define TCP_LIMB 0xfffffffffffULL  /* 44 bits */
#define TCP_UPPER 0x3ffffffffffULL /* 42 bits */

/* Adds a * b to the columns. 2^132 is 20 modulo 2^130 - 5. */
static inline void tcp_poly_multiply(tcp_wide column[3], const uint64_t a[3], const uint64_t b[3]) {
    uint64_t b1 = b[1] * 20, b2 = b[2] * 20;
    column[0] += (tcp_wide)a[0] * b[0] + (tcp_wide)a[1] * b2 + (tcp_wide)a[2] * b1;
    column[1] += (tcp_wide)a[0] * b[1] + (tcp_wide)a[1] * b[0] + (tcp_wide)a[2] * b2;
    column[2] += (tcp_wide)a[0] * b[2] + (tcp_wide)a[1] * b[1] + (tcp_wide)a[2] * b[0];
}

static inline void tcp_poly_carry(const tcp_wide column[3], uint64_t limb[3]) {
    tcp_wide second = column[1] + (uint64_t)(column[0] >> 44);
    tcp_wide third = column[2] + (uint64_t)(second >> 44);
    uint64_t first = ((uint64_t)column[0] & TCP_LIMB) + (uint64_t)(third >> 42) * 5;
    limb[0] = first & TCP_LIMB;
    limb[1] = ((uint64_t)second & TCP_LIMB) + (first >> 44);
    limb[2] = (uint64_t)third & TCP_UPPER;
}

/* The limbs of 16 bytes, with `top` as bit 128. */
static inline void tcp_poly_block(const uint8_t *from, uint64_t top, uint64_t limb[3]) {
    uint64_t low = tcp_load64(from), high = tcp_load64(from + 8);
    limb[0] = low & TCP_LIMB;
    limb[1] = (low >> 44 | high << 20) & TCP_LIMB;
    limb[2] = high >> 24 | top << 40;
}

static inline void tcp_poly_add(tcp_mac *mac, const uint8_t *from, uint64_t top) {
    uint64_t limb[3];
    tcp_wide column[3] = {0};
    tcp_poly_block(from, top, limb);
    for (int i = 0; i < 3; i++)
        limb[i] += mac->sum[i];
    tcp_poly_multiply(column, limb, mac->power[0]);
    tcp_poly_carry(column, mac->sum);
}

/* Four blocks and one reduction: (sum + m0) r^4 + m1 r^3 + m2 r^2 + m3 r. */
static inline void tcp_poly_add4(tcp_mac *mac, const uint8_t *from) {
    uint64_t limb[3];
    tcp_wide column[3] = {0};
    tcp_poly_block(from, 1, limb);
    for (int i = 0; i < 3; i++)
        limb[i] += mac->sum[i];
    tcp_poly_multiply(column, limb, mac->power[3]);
    for (int block = 1; block < TCP_POWERS; block++) {
        tcp_poly_block(from + 16 * block, 1, limb);
        tcp_poly_multiply(column, limb, mac->power[TCP_POWERS - 1 - block]);
    }
    tcp_poly_carry(column, mac->sum);
}

/* --- what frames use --- */

static inline void tcp_mac_start(tcp_mac *mac, const uint8_t key[TCP_KEY_BYTES]) {
    memset(mac, 0, sizeof *mac);
    uint8_t point[16];
    memcpy(point, key, sizeof point);
    for (int i = 3; i < 16; i += 4)
        point[i] &= 15;
    for (int i = 4; i < 16; i += 4)
        point[i] &= 252;
    tcp_poly_block(point, 0, mac->power[0]);
    for (int i = 1; i < TCP_POWERS; i++) {
        tcp_wide column[3] = {0};
        tcp_poly_multiply(column, mac->power[i - 1], mac->power[0]);
        tcp_poly_carry(column, mac->power[i]);
    }
    uint64_t block[16] = {0};
    memcpy(block, key + 16, 32);
    memcpy(mac->keyed, tcp_blake_start, sizeof mac->keyed);
    mac->keyed[0] ^= 0x01010000 ^ (32 << 8) ^ 64; /* key of 32 bytes, digest of 64 */
    tcp_blake_block(mac->keyed, block, 128, false);
}

/* Takes in the next bytes of what the next tag covers. */
static inline void tcp_mac_add(tcp_mac *mac, const void *data, size_t bytes) {
    const uint8_t *from = data;
    if (mac->held) {
        size_t step = 16 - mac->held < bytes ? 16 - mac->held : bytes;
        memcpy(mac->partial + mac->held, from, step);
        mac->held += step;
        from += step;
        bytes -= step;
        if (mac->held < 16)
            return;
        tcp_poly_add(mac, mac->partial, 1);
        mac->held = 0;
    }
    for (; bytes >= 16 * TCP_POWERS; from += 16 * TCP_POWERS, bytes -= 16 * TCP_POWERS)
        tcp_poly_add4(mac, from);
    for (; bytes >= 16; from += 16, bytes -= 16)
        tcp_poly_add(mac, from, 1);
    if (bytes)
        memcpy(mac->partial, from, bytes);
    mac->held = bytes;
}

/* The tag of everything taken in since the tag before. */
static inline void tcp_mac_finish(tcp_mac *mac, uint8_t tag[TCP_TAG_BYTES]) {
    if (mac->held) {
        mac->partial[mac->held] = 1;
        memset(mac->partial + mac->held + 1, 0, 15 - mac->held);
        tcp_poly_add(mac, mac->partial, 0);
        mac->held = 0;
    }
    uint64_t *h = mac->sum, carry;
    /* `sum` modulo 2^130 - 5: full carries, then sum + 5 - 2^130 if that is not negative. */
    for (int pass = 0; pass < 2; pass++) {
        carry = h[0] >> 44, h[0] &= TCP_LIMB;
        h[1] += carry, carry = h[1] >> 44, h[1] &= TCP_LIMB;
        h[2] += carry, carry = h[2] >> 42, h[2] &= TCP_UPPER;
        h[0] += carry * 5;
    }
    carry = h[0] >> 44, h[0] &= TCP_LIMB;
    h[1] += carry;
    uint64_t g0 = h[0] + 5, g1 = h[1] + (g0 >> 44), g2 = h[2] + (g1 >> 44);
    uint64_t over = -(g2 >> 42); /* all ones if sum >= 2^130 - 5 */
    h[0] = (h[0] & ~over) | (g0 & TCP_LIMB & over);
    h[1] = (h[1] & ~over) | (g1 & TCP_LIMB & over);
    h[2] = (h[2] & ~over) | (g2 & TCP_UPPER & over);
    if (mac->tags % 4 == 0) {
        uint64_t block[16] = {mac->tags / 4}, pads[8];
        memcpy(pads, mac->keyed, sizeof pads);
        tcp_blake_block(pads, block, 128 + 8, true);
        memcpy(mac->pads, pads, sizeof pads);
    }
    const uint8_t *pad = mac->pads + TCP_TAG_BYTES * (mac->tags++ % 4);
    tcp_wide sum = (tcp_wide)(h[0] | h[1] << 44) | (tcp_wide)(h[1] >> 20 | h[2] << 24) << 64;
    sum += (tcp_wide)tcp_load64(pad) | (tcp_wide)tcp_load64(pad + 8) << 64;
    memcpy(tag, &sum, TCP_TAG_BYTES);
    memset(mac->sum, 0, sizeof mac->sum);
}

/* Whether `tag` is that of everything taken in, in a time that does not depend on where it differs. */
static inline bool tcp_mac_verify(tcp_mac *mac, const uint8_t tag[TCP_TAG_BYTES]) {
    uint8_t ours[TCP_TAG_BYTES], different = 0;
    tcp_mac_finish(mac, ours);
    for (int i = 0; i < TCP_TAG_BYTES; i++)
        different |= (uint8_t)(ours[i] ^ tag[i]);
    return different == 0;
}

#endif
