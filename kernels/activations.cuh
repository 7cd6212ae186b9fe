// SPDX-License-Identifier: Apache-2.0
//
// Every activation Ingot knows, once: the host parser, the help text, the CPU rungs, the float64 reference,
// the tests and the run-time compiled kernels all read this file. To add one: a line in INGOT_ACTIVATIONS and
// a struct of the same name below it. The file stays inside the subset that C++17, nvcc and NVRTC share;
// under NVRTC it includes nothing.
//
// Each struct has
//   exact<T>(x)  the definition, T = float or double, with the C library's functions;
//   approx(x)    float, for inner loops. On the host branch-free so that compilers vectorise it, within a few
//   units in
//                the last place; on the device built on the special function unit, each with its error
//                stated.
#ifndef INGOT_ACTIVATIONS_CUH  // by name: a test meets this file and the copy of it that the public headers
                               // include
#define INGOT_ACTIVATIONS_CUH

#if !defined(__CUDACC_RTC__)
#include <cmath>
#endif

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define INGOT_FUNCTION __host__ __device__ __forceinline__
#else
#define INGOT_FUNCTION inline __attribute__((always_inline))
#endif

// X(name, formula)
#define INGOT_ACTIVATIONS(X)                                        \
  X(relu, "max(x, 0)")                                              \
  X(gelu_erf, "x/2 * (1 + erf(x/sqrt(2)))")                         \
  X(gelu_tanh, "x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3)))") \
  X(quick_gelu, "x * sigmoid(1.702 x)")                             \
  X(silu, "x * sigmoid(x)")                                         \
  X(identity, "x")

namespace ingot {
namespace activation {

// Leaf functions of both worlds. NVRTC and nvcc have the C names built in, overloaded for float and double;
// the host takes them from <cmath>.
namespace detail {

#if defined(__CUDACC_RTC__)
INGOT_FUNCTION float exp_of(float x) {
  return ::expf(x);
}
INGOT_FUNCTION double exp_of(double x) {
  return ::exp(x);
}
INGOT_FUNCTION float tanh_of(float x) {
  return ::tanhf(x);
}
INGOT_FUNCTION double tanh_of(double x) {
  return ::tanh(x);
}
INGOT_FUNCTION float erf_of(float x) {
  return ::erff(x);
}
INGOT_FUNCTION double erf_of(double x) {
  return ::erf(x);
}
#else
INGOT_FUNCTION float exp_of(float x) {
  return std::exp(x);
}
INGOT_FUNCTION double exp_of(double x) {
  return std::exp(x);
}
INGOT_FUNCTION float tanh_of(float x) {
  return std::tanh(x);
}
INGOT_FUNCTION double tanh_of(double x) {
  return std::tanh(x);
}
INGOT_FUNCTION float erf_of(float x) {
  return std::erf(x);
}
INGOT_FUNCTION double erf_of(double x) {
  return std::erf(x);
}
#endif

template <class T>
INGOT_FUNCTION T sigmoid_of(T x) {
  return T(1) / (T(1) + exp_of(-x));
}

#if defined(__CUDA_ARCH__)
// Largest relative error 2^-11 (PTX ISA, tanh.approx.f32; sm_75 and newer).
__device__ __forceinline__ float tanh_approx(float x) {
  float y;
  asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
// x * sigmoid(2u) = x/2 + x/2 * tanh(u): one special function instead of two (ex2 and rcp), and one
// multiply-add.
__device__ __forceinline__ float gated_by_tanh(float x, float u) {
  const float half = 0.5f * x;
  return fmaf(half, tanh_approx(u), half);
}
#else
// e^x as 2^n * e^r with |r| <= ln(2)/2: n by adding and subtracting 1.5 * 2^23, ln(2) in two parts (Cody and
// Waite, 1980), e^r by its Taylor series to r^7, whose remainder is below 2^-27. The argument is held to
// where the result is a normal number, so infinities and subnormals are left out; not-a-number passes
// through. Upwards it is held at 64, where 1 / (1 + e^x) is 0 beside anything: compilers turn the limit into
// a product of every x with that constant, and were it subnormal each would cost a hundred cycles. The same
// holds downwards at -80, where it is 1.
INGOT_FUNCTION float exp_approx(float x) {
  const float low = -80.0f, high = 64.0f;
  const float held = x < low ? low : (x > high ? high : x);
  const float shifter = 12582912.0f;
  const float shifted = held * 1.44269504f + shifter;
  const float n = shifted - shifter;
  const float r = (held - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 1.0f / 5040.0f;
  p = p * r + 1.0f / 720.0f;
  p = p * r + 1.0f / 120.0f;
  p = p * r + 1.0f / 24.0f;
  p = p * r + 1.0f / 6.0f;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  // The low bits of the shifted sum are n in two's complement: moved to the exponent they scale by 2^n.
  const unsigned exponent = __builtin_bit_cast(unsigned, shifted) << 23;
  return __builtin_bit_cast(float, __builtin_bit_cast(unsigned, p) + exponent);
}
INGOT_FUNCTION float sigmoid_approx(float x) {
  return 1.0f / (1.0f + exp_approx(-x));
}
// Normal distribution function by erfc(z) = exp(-z^2) t P(t), t = 1 / (1 + 0.45 z), the form of Hastings
// (1955). P is a minimax fit of degree 6 over z in [0, 4], made for this file with Remez' algorithm; error of
// the result 5e-10.
INGOT_FUNCTION float normal_cdf_approx(float x) {
  const float z = (x < 0.0f ? -x : x) * 0.70710678f;
  const float t = 1.0f / (1.0f + 0.45f * z);
  float p = 0.092569889f;
  p = p * t - 0.49410551f;
  p = p * t + 0.85717012f;
  p = p * t - 0.37580525f;
  p = p * t + 0.46017206f;
  p = p * t + 0.20100894f;
  p = p * t + 0.25898974f;
  const float tail = 0.5f * p * t * exp_approx(-0.5f * x * x);
  return x < 0.0f ? tail : 1.0f - tail;
}
#endif

}  // namespace detail

/// max(x, 0); not-a-number stays not-a-number, as in PyTorch.
struct relu {
  template <class T>
  static INGOT_FUNCTION T exact(T x) {
    return x < T(0) ? T(0) : x;
  }
#if defined(__CUDA_ARCH__)
  static INGOT_FUNCTION float approx(float x) {
    float y;  // one instruction, not-a-number kept
    asm("max.NaN.f32 %0, %1, 0f00000000;" : "=f"(y) : "f"(x));
    return y;
  }
#else
  static INGOT_FUNCTION float approx(float x) {
    return exact(x);
  }
#endif
};

/// x * Phi(x) with the normal distribution's Phi (Hendrycks and Gimpel, 2016, arXiv:1606.08415); PyTorch's
/// gelu(approximate="none").
struct gelu_erf {
  template <class T>
  static INGOT_FUNCTION T exact(T x) {
    return T(0.5) * x * (T(1) + detail::erf_of(x * T(0.70710678118654752440)));
  }
#if defined(__CUDA_ARCH__)
  // Phi(x) = (1 + tanh(x (a + b x^2 + c x^4))) / 2, coefficients by least squares: largest error of
  // x * Phi(x) 2.5e-5, beside tanh.approx's. x^2 is held at 64, where Phi is 0 or 1, so that the polynomial
  // keeps its sign.
  static INGOT_FUNCTION float approx(float x) {
    const float square = fminf(x * x, 64.0f);
    const float p = fmaf(square, fmaf(square, -0.00035152f, 0.0370056f), 0.7975079f);
    return detail::gated_by_tanh(x, x * p);
  }
#else
  static INGOT_FUNCTION float approx(float x) {
    return x * detail::normal_cdf_approx(x);
  }
#endif
};

/// The tanh form of the same paper; PyTorch's gelu(approximate="tanh").
struct gelu_tanh {
  template <class T>
  static INGOT_FUNCTION T exact(T x) {
    return T(0.5) * x * (T(1) + detail::tanh_of(T(0.79788456080286535588) * (x + T(0.044715) * x * x * x)));
  }
  // (1 + tanh(u)) / 2 = sigmoid(2u): no cancellation for negative x.
#if defined(__CUDA_ARCH__)
  static INGOT_FUNCTION float approx(float x) {
    return detail::gated_by_tanh(x, x * fmaf(x * x, 0.03567740814f, 0.79788456080f));
  }
#else
  static INGOT_FUNCTION float approx(float x) {
    return x * detail::sigmoid_approx(x * (1.59576912161f + 0.07135481628f * x * x));
  }
#endif
};

/// The sigmoid form of the same paper; CLIP's activation.
struct quick_gelu {
  template <class T>
  static INGOT_FUNCTION T exact(T x) {
    return x * detail::sigmoid_of(T(1.702) * x);
  }
#if defined(__CUDA_ARCH__)
  static INGOT_FUNCTION float approx(float x) {
    return detail::gated_by_tanh(x, 0.851f * x);
  }
#else
  static INGOT_FUNCTION float approx(float x) {
    return x * detail::sigmoid_approx(1.702f * x);
  }
#endif
};

/// x * sigmoid(x) (Elfwing et al., 2017, arXiv:1702.03118), also called swish.
struct silu {
  template <class T>
  static INGOT_FUNCTION T exact(T x) {
    return x * detail::sigmoid_of(x);
  }
#if defined(__CUDA_ARCH__)
  static INGOT_FUNCTION float approx(float x) {
    return detail::gated_by_tanh(x, 0.5f * x);
  }
#else
  static INGOT_FUNCTION float approx(float x) {
    return x * detail::sigmoid_approx(x);
  }
#endif
};

struct identity {
  template <class T>
  static INGOT_FUNCTION T exact(T x) {
    return x;
  }
  static INGOT_FUNCTION float approx(float x) { return x; }
};

}  // namespace activation
}  // namespace ingot

#endif  // INGOT_ACTIVATIONS_CUH
