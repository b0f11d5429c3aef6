// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "dataset.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

/// Softmax regression by hand: one linear layer, cross-entropy loss, gradient descent with momentum.
///
/// Shapes: x (features); W (classes, features); b (classes); z = W x + b, logits (classes); q = softmax(z) (classes).
/// The loss of an image with label y is -log q[y]; its gradient is q - onehot(y) for b, and that times x for W.
///
/// Sums that are to be vectorised name their lanes, so that compilers need no leave to reorder additions: the order,
/// and with it every bit that a build gives, is the one written here.
namespace fashion_mnist {

/// Parameters, or a gradient, as one buffer for one all-reduce: W row by row, then b.
inline constexpr std::size_t parameter_count = classes * features + classes;
using parameters_view = std::span<const float, parameter_count>;
using gradient_view = std::span<float, parameter_count>;

namespace detail {

/// The dot product of two rows of `features` elements, in sixteen interleaved sums.
inline float dot(const float* a, const float* b) {
  constexpr std::size_t lanes = 16;
  static_assert(features % lanes == 0);
  std::array<float, lanes> sums{};
  for (std::size_t i = 0; i < features; i += lanes) {
    for (std::size_t lane = 0; lane < lanes; ++lane) sums[lane] += a[i + lane] * b[i + lane];
  }
  for (std::size_t half = lanes / 2; half > 0; half /= 2) {
    for (std::size_t lane = 0; lane < half; ++lane) sums[lane] += sums[lane + half];
  }
  return sums[0];
}

/// y += factor * x over `features` elements.
inline void add_multiple(float* __restrict y, float factor, const float* __restrict x) {
  for (std::size_t i = 0; i < features; ++i) y[i] += factor * x[i];
}

inline std::array<float, classes> logits(parameters_view parameters, const std::array<float, features>& x) {
  std::array<float, classes> z;
  for (std::size_t c = 0; c < classes; ++c) {
    z[c] = dot(parameters.data() + c * features, x.data()) + parameters[classes * features + c];
  }
  return z;
}

}  // namespace detail

/// Loss and hits over a number of images; adds up over images and over ranks.
struct score {
  double loss = 0;          ///< the sum of the losses
  std::uint64_t right = 0;  ///< how many images were classified right

  friend score operator+(const score& a, const score& b) { return {a.loss + b.loss, a.right + b.right}; }
};

/// The score of one image, and its share of the gradient.
/// @param parameters  W and b
/// @param x           the standardised image
/// @param label       its class
/// @param gradient    in/out: the gradient of the loss of this image is added to it
inline score learn(parameters_view parameters, const std::array<float, features>& x, std::size_t label,
                   gradient_view gradient) {
  const std::array<float, classes> z = detail::logits(parameters, x);
  const auto largest = std::max_element(z.begin(), z.end());
  std::array<double, classes> q;
  double total = 0;
  for (std::size_t c = 0; c < classes; ++c) {
    q[c] = std::exp(static_cast<double>(z[c] - *largest));  // shifted: cannot overflow
    total += q[c];
  }
  for (std::size_t c = 0; c < classes; ++c) {
    const auto delta = static_cast<float>(q[c] / total - (c == label ? 1 : 0));
    detail::add_multiple(gradient.data() + c * features, delta, x.data());
    gradient[classes * features + c] += delta;
  }
  const bool hit = static_cast<std::size_t>(largest - z.begin()) == label;
  return {std::log(total) - static_cast<double>(z[label] - *largest), hit ? 1U : 0U};
}

/// The class that the model gives an image; the first of several that are equally likely.
inline std::size_t classify(parameters_view parameters, const std::array<float, features>& x) {
  const std::array<float, classes> z = detail::logits(parameters, x);
  return static_cast<std::size_t>(std::max_element(z.begin(), z.end()) - z.begin());
}

/// Gradient descent with momentum: v = momentum * v + g; w = w - rate * v.
class momentum_descent {
 public:
  explicit momentum_descent(float momentum) : m_momentum(momentum), m_velocity(parameter_count) {}

  /// @param parameters  in/out: W and b
  /// @param gradient    the sum of the gradients of `images` images
  /// @param images      at least 1; the step is taken along the mean gradient
  /// @param rate        the learning rate
  void step(std::span<float, parameter_count> parameters, parameters_view gradient, std::size_t images, float rate) {
    const float share = 1.0F / static_cast<float>(images);
    for (std::size_t i = 0; i < parameter_count; ++i) {
      m_velocity[i] = m_momentum * m_velocity[i] + share * gradient[i];
      parameters[i] -= rate * m_velocity[i];
    }
  }

 private:
  float m_momentum;
  std::vector<float> m_velocity;
};

}  // namespace fashion_mnist
