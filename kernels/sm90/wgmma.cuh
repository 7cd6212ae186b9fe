// SPDX-License-Identifier: Apache-2.0
//
// wgmma.mma_async for every accumulator width: D[64 x n] += A[64 x 16] B[n x 16]^T, B in shared memory, A
// there or in registers, K innermost, float32 accumulators (PTX ISA, "Asynchronous Warpgroup Level Matrix
// Multiply-Accumulate"). Thread t of the warpgroup holds, for each group j of eight columns, d[4j], d[4j+1]:
// row 16 (t / 32) + (t % 32) / 4, columns 8j + 2 (t % 4) and the next; d[4j+2], d[4j+3]: the same columns
// eight rows below. A in registers: pairs of 16-bit elements of the same rows, a[0] and a[1] columns 2 (t %
// 4) and the next of both rows, a[2] and a[3] eight columns further: two groups of D, packed, are a piece of
// A.
#pragma once
#include "numbers.cuh"
#include "sm90/ptx.cuh"

namespace ingot {
namespace sm90 {

// Operand lists of 4, 8, ... 128 registers, each from the one before: S the text, O the operands.
#define INGOT_O4 "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
#define INGOT_S4 "%0,%1,%2,%3"
#define INGOT_O8 INGOT_O4, "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7])
#define INGOT_S8 INGOT_S4 ",%4,%5,%6,%7"
#define INGOT_O12 INGOT_O8, "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11])
#define INGOT_S12 INGOT_S8 ",%8,%9,%10,%11"
#define INGOT_O16 INGOT_O12, "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15])
#define INGOT_S16 INGOT_S12 ",%12,%13,%14,%15"
#define INGOT_O20 INGOT_O16, "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19])
#define INGOT_S20 INGOT_S16 ",%16,%17,%18,%19"
#define INGOT_O24 INGOT_O20, "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23])
#define INGOT_S24 INGOT_S20 ",%20,%21,%22,%23"
#define INGOT_O28 INGOT_O24, "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27])
#define INGOT_S28 INGOT_S24 ",%24,%25,%26,%27"
#define INGOT_O32 INGOT_O28, "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
#define INGOT_S32 INGOT_S28 ",%28,%29,%30,%31"
#define INGOT_O36 INGOT_O32, "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35])
#define INGOT_S36 INGOT_S32 ",%32,%33,%34,%35"
#define INGOT_O40 INGOT_O36, "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39])
#define INGOT_S40 INGOT_S36 ",%36,%37,%38,%39"
#define INGOT_O44 INGOT_O40, "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43])
#define INGOT_S44 INGOT_S40 ",%40,%41,%42,%43"
#define INGOT_O48 INGOT_O44, "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47])
#define INGOT_S48 INGOT_S44 ",%44,%45,%46,%47"
#define INGOT_O52 INGOT_O48, "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51])
#define INGOT_S52 INGOT_S48 ",%48,%49,%50,%51"
#define INGOT_O56 INGOT_O52, "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55])
#define INGOT_S56 INGOT_S52 ",%52,%53,%54,%55"
#define INGOT_O60 INGOT_O56, "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59])
#define INGOT_S60 INGOT_S56 ",%56,%57,%58,%59"
#define INGOT_O64 INGOT_O60, "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
#define INGOT_S64 INGOT_S60 ",%60,%61,%62,%63"
#define INGOT_O68 INGOT_O64, "+f"(d[64]), "+f"(d[65]), "+f"(d[66]), "+f"(d[67])
#define INGOT_S68 INGOT_S64 ",%64,%65,%66,%67"
#define INGOT_O72 INGOT_O68, "+f"(d[68]), "+f"(d[69]), "+f"(d[70]), "+f"(d[71])
#define INGOT_S72 INGOT_S68 ",%68,%69,%70,%71"
#define INGOT_O76 INGOT_O72, "+f"(d[72]), "+f"(d[73]), "+f"(d[74]), "+f"(d[75])
#define INGOT_S76 INGOT_S72 ",%72,%73,%74,%75"
#define INGOT_O80 INGOT_O76, "+f"(d[76]), "+f"(d[77]), "+f"(d[78]), "+f"(d[79])
#define INGOT_S80 INGOT_S76 ",%76,%77,%78,%79"
#define INGOT_O84 INGOT_O80, "+f"(d[80]), "+f"(d[81]), "+f"(d[82]), "+f"(d[83])
#define INGOT_S84 INGOT_S80 ",%80,%81,%82,%83"
#define INGOT_O88 INGOT_O84, "+f"(d[84]), "+f"(d[85]), "+f"(d[86]), "+f"(d[87])
#define INGOT_S88 INGOT_S84 ",%84,%85,%86,%87"
#define INGOT_O92 INGOT_O88, "+f"(d[88]), "+f"(d[89]), "+f"(d[90]), "+f"(d[91])
#define INGOT_S92 INGOT_S88 ",%88,%89,%90,%91"
#define INGOT_O96 INGOT_O92, "+f"(d[92]), "+f"(d[93]), "+f"(d[94]), "+f"(d[95])
#define INGOT_S96 INGOT_S92 ",%92,%93,%94,%95"
#define INGOT_O100 INGOT_O96, "+f"(d[96]), "+f"(d[97]), "+f"(d[98]), "+f"(d[99])
#define INGOT_S100 INGOT_S96 ",%96,%97,%98,%99"
#define INGOT_O104 INGOT_O100, "+f"(d[100]), "+f"(d[101]), "+f"(d[102]), "+f"(d[103])
#define INGOT_S104 INGOT_S100 ",%100,%101,%102,%103"
#define INGOT_O108 INGOT_O104, "+f"(d[104]), "+f"(d[105]), "+f"(d[106]), "+f"(d[107])
#define INGOT_S108 INGOT_S104 ",%104,%105,%106,%107"
#define INGOT_O112 INGOT_O108, "+f"(d[108]), "+f"(d[109]), "+f"(d[110]), "+f"(d[111])
#define INGOT_S112 INGOT_S108 ",%108,%109,%110,%111"
#define INGOT_O116 INGOT_O112, "+f"(d[112]), "+f"(d[113]), "+f"(d[114]), "+f"(d[115])
#define INGOT_S116 INGOT_S112 ",%112,%113,%114,%115"
#define INGOT_O120 INGOT_O116, "+f"(d[116]), "+f"(d[117]), "+f"(d[118]), "+f"(d[119])
#define INGOT_S120 INGOT_S116 ",%116,%117,%118,%119"
#define INGOT_O124 INGOT_O120, "+f"(d[120]), "+f"(d[121]), "+f"(d[122]), "+f"(d[123])
#define INGOT_S124 INGOT_S120 ",%120,%121,%122,%123"
#define INGOT_O128 INGOT_O124, "+f"(d[124]), "+f"(d[125]), "+f"(d[126]), "+f"(d[127])
#define INGOT_S128 INGOT_S124 ",%124,%125,%126,%127"

template <class Element>
constexpr bool is_bf16 = false;
template <>
constexpr bool is_bf16<device::bf16> = true;

template <int kCols>
struct Wgmma;

// accumulate == 0 ignores what D held. E0 to E5: the operands behind D.
#define INGOT_WGMMA_TEXT(N, R, TYPE, A, B, P)                                                        \
  "{\n.reg .pred p;\nsetp.ne.b32 p, " P ", 0;\nwgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE \
  " {" INGOT_S##R "}, " A ", " B ", p, 1, 1, 0"
#define INGOT_WGMMA(N, R, E0, E1, E2, E3, E4, E5)                                                        \
  template <>                                                                                            \
  struct Wgmma<N> {                                                                                      \
    template <class Element>                                                                             \
    static INGOT_DEVICE void multiply(float (&d)[R], u64 a, u64 b, int accumulate) {                     \
      if constexpr (is_bf16<Element>) {                                                                  \
        asm volatile(INGOT_WGMMA_TEXT(N, R, "bf16.bf16", E0, E1, E2) ", 0;\n}"                           \
                     : INGOT_O##R                                                                        \
                     : "l"(a), "l"(b), "r"(accumulate));                                                 \
      } else {                                                                                           \
        asm volatile(INGOT_WGMMA_TEXT(N, R, "f16.f16", E0, E1, E2) ", 0;\n}"                             \
                     : INGOT_O##R                                                                        \
                     : "l"(a), "l"(b), "r"(accumulate));                                                 \
      }                                                                                                  \
    }                                                                                                    \
    template <class Element>                                                                             \
    static INGOT_DEVICE void multiply(float (&d)[R], const u32 (&a)[4], u64 b, int accumulate) {         \
      if constexpr (is_bf16<Element>) {                                                                  \
        asm volatile(INGOT_WGMMA_TEXT(N, R, "bf16.bf16", "{" E0 "," E1 "," E2 "," E3 "}", E4, E5) ";\n}" \
                     : INGOT_O##R                                                                        \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate));             \
      } else {                                                                                           \
        asm volatile(INGOT_WGMMA_TEXT(N, R, "f16.f16", "{" E0 "," E1 "," E2 "," E3 "}", E4, E5) ";\n}"   \
                     : INGOT_O##R                                                                        \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate));             \
      }                                                                                                  \
    }                                                                                                    \
  }
INGOT_WGMMA(8, 4, "%4", "%5", "%6", "%7", "%8", "%9");
INGOT_WGMMA(16, 8, "%8", "%9", "%10", "%11", "%12", "%13");
INGOT_WGMMA(24, 12, "%12", "%13", "%14", "%15", "%16", "%17");
INGOT_WGMMA(32, 16, "%16", "%17", "%18", "%19", "%20", "%21");
INGOT_WGMMA(40, 20, "%20", "%21", "%22", "%23", "%24", "%25");
INGOT_WGMMA(48, 24, "%24", "%25", "%26", "%27", "%28", "%29");
INGOT_WGMMA(56, 28, "%28", "%29", "%30", "%31", "%32", "%33");
INGOT_WGMMA(64, 32, "%32", "%33", "%34", "%35", "%36", "%37");
INGOT_WGMMA(72, 36, "%36", "%37", "%38", "%39", "%40", "%41");
INGOT_WGMMA(80, 40, "%40", "%41", "%42", "%43", "%44", "%45");
INGOT_WGMMA(88, 44, "%44", "%45", "%46", "%47", "%48", "%49");
INGOT_WGMMA(96, 48, "%48", "%49", "%50", "%51", "%52", "%53");
INGOT_WGMMA(104, 52, "%52", "%53", "%54", "%55", "%56", "%57");
INGOT_WGMMA(112, 56, "%56", "%57", "%58", "%59", "%60", "%61");
INGOT_WGMMA(120, 60, "%60", "%61", "%62", "%63", "%64", "%65");
INGOT_WGMMA(128, 64, "%64", "%65", "%66", "%67", "%68", "%69");
INGOT_WGMMA(136, 68, "%68", "%69", "%70", "%71", "%72", "%73");
INGOT_WGMMA(144, 72, "%72", "%73", "%74", "%75", "%76", "%77");
INGOT_WGMMA(152, 76, "%76", "%77", "%78", "%79", "%80", "%81");
INGOT_WGMMA(160, 80, "%80", "%81", "%82", "%83", "%84", "%85");
INGOT_WGMMA(168, 84, "%84", "%85", "%86", "%87", "%88", "%89");
INGOT_WGMMA(176, 88, "%88", "%89", "%90", "%91", "%92", "%93");
INGOT_WGMMA(184, 92, "%92", "%93", "%94", "%95", "%96", "%97");
INGOT_WGMMA(192, 96, "%96", "%97", "%98", "%99", "%100", "%101");
INGOT_WGMMA(200, 100, "%100", "%101", "%102", "%103", "%104", "%105");
INGOT_WGMMA(208, 104, "%104", "%105", "%106", "%107", "%108", "%109");
INGOT_WGMMA(216, 108, "%108", "%109", "%110", "%111", "%112", "%113");
INGOT_WGMMA(224, 112, "%112", "%113", "%114", "%115", "%116", "%117");
INGOT_WGMMA(232, 116, "%116", "%117", "%118", "%119", "%120", "%121");
INGOT_WGMMA(240, 120, "%120", "%121", "%122", "%123", "%124", "%125");
INGOT_WGMMA(248, 124, "%124", "%125", "%126", "%127", "%128", "%129");
INGOT_WGMMA(256, 128, "%128", "%129", "%130", "%131", "%132", "%133");

#undef INGOT_WGMMA_TEXT
#undef INGOT_WGMMA

}  // namespace sm90
}  // namespace ingot
